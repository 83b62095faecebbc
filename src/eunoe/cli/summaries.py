"""`eunoe summaries`: every revision of a stream's summary, what it absorbed, and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import unified_diff
from typing import Annotated, Final

import typer

import eunoe
from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display.output import shorten
from eunoe.cli.display.views import Grid, item_entries, when
from eunoe.cli.forming import revision_reply
from eunoe.cli.options import FullOption, ScopeArgument, argument
from eunoe.errors import NotFoundError
from eunoe.model.atom import Item
from eunoe.model.stream import Revision

_MAX_ROW_CHARACTERS: Final = 60
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。])\s+")

NumberArgument = Annotated[int, typer.Argument(metavar="N", max=2**63 - 1, help="The number of a revision.")]
OptionalNumberArgument = Annotated[int | None, argument("[N]", "The number of a revision; else the current one.")]


@command("eunoe summaries list user=anna")
def list_(call: Call, scope: ScopeArgument) -> Reply:
    """List every revision of a summary, oldest first."""
    revisions = call.open().summaries.revisions(scope)
    names = ("revision", "from", "absorbed", "written", "by", "text")
    return Reply(revisions, Grid(names, [_row(revision) for revision in revisions]))


@command("eunoe summaries show user=anna 2")
def show(call: Call, scope: ScopeArgument, number: OptionalNumberArgument = None) -> Reply:
    """Print the text of one revision."""
    revision = _find(_revisions(call.open(), scope), scope, number)
    return Reply(revision, revision.text)


@command("eunoe summaries diff user=anna 1 2")
def diff(
    call: Call,
    scope: ScopeArgument,
    old: Annotated[int, argument("A", "The number of a revision.")],
    new: Annotated[int, argument("B", "The number of another one.")],
) -> Reply:
    """Show what changed between two revisions, sentence by sentence."""
    revisions = _revisions(call.open(), scope)
    before, after = (_sentences(_find(revisions, scope, number).text) for number in (old, new))
    lines = list(unified_diff(before, after, f"revision {old}", f"revision {new}", lineterm=""))
    return Reply(lines, "\n".join(lines), empty="they say the same")


@command("eunoe summaries lineage user=anna 2")
def lineage(call: Call, scope: ScopeArgument, number: OptionalNumberArgument = None, full: FullOption = False) -> Reply:
    """Show the memories that a revision absorbed, itself or through those it was written from."""
    memory = call.open()
    revisions = _revisions(memory, scope)
    line = _ancestors(revisions, _find(revisions, scope, number))
    items = _items(memory, scope, [id for revision in line for id in revision.absorbed])
    document = [{"revision": revision.number, "absorbed": revision.absorbed} for revision in line]
    return Reply(document, item_entries(items, full=full))


@command("eunoe summaries restore user=anna 1")
def restore(call: Call, scope: ScopeArgument, number: NumberArgument) -> Reply:
    """Make an earlier revision the current one.

    It becomes a new revision. What later ones absorbed waits again.
    """
    return revision_reply(call.open().summaries.restore(scope, number))


@command('eunoe summaries write user=anna "Anna is a cook."')
def write(
    call: Call,
    scope: ScopeArgument,
    text: Annotated[str, argument("TEXT", "The whole summary.")],
    parent: Annotated[int | None, typer.Option("--parent", help="Only if this one is still the current one.")] = None,
    author: Annotated[str, typer.Option("--author", help="Who wrote it.")] = "hand",
) -> Reply:
    """Write a summary by hand, as a new revision."""
    return revision_reply(call.open(create=True).summaries.write(scope, text, author=author, parent=parent))


def _revisions(memory: eunoe.Memory, scope: str) -> dict[int, Revision]:
    return {revision.number: revision for revision in memory.summaries.revisions(scope)}


def _find(revisions: Mapping[int, Revision], scope: str, number: int | None) -> Revision:
    if number is None:
        number = next((revision.number for revision in revisions.values() if revision.current), 0)
    if number in revisions:
        return revisions[number]
    known = f"it has {', '.join(map(str, revisions))}" if revisions else "it has none yet"
    raise NotFoundError(f"{scope} has no {f'revision {number}' if number else 'current revision'}: {known}")


def _ancestors(revisions: Mapping[int, Revision], revision: Revision) -> list[Revision]:
    """A revision and those it was written from, oldest first."""
    line = [revision]
    while (parent := revisions.get(line[-1].parent)) is not None and parent not in line:
        line.append(parent)
    return line[::-1]


def _items(memory: eunoe.Memory, scope: str, ids: Iterable[str]) -> Iterable[Item]:
    for id in ids:
        with suppress(NotFoundError):
            yield memory.get(scope, id)


def _sentences(text: str) -> list[str]:
    """Summaries are few long lines: a sentence is what changes."""
    return [sentence for line in text.splitlines() for sentence in _SENTENCE_END.split(line)]


def _row(revision: Revision) -> tuple[str, ...]:
    number = f"{revision.number} (current)" if revision.current else str(revision.number)
    parent = str(revision.parent) if revision.parent else ""
    text = shorten(revision.text, _MAX_ROW_CHARACTERS)
    return number, parent, str(len(revision.absorbed)), when(revision.recorded), revision.author, text
