"""`eunoe revisions`: every version of a stream's summary, what it took in, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from eunoe.cli import output
from eunoe.cli.command import Listing, Settings, command
from eunoe.cli.forming import raw, show_revision
from eunoe.cli.options import FullOption, ScopeArgument
from eunoe.errors import NotFoundError
from eunoe.model.record import Item
from eunoe.model.stream import Revision

if TYPE_CHECKING:
    from eunoe.memory import Memory

Number = Annotated[int, typer.Argument(metavar="N", help="The number of a revision.", show_default=False)]
OptionalNumber = Annotated[
    int | None, typer.Argument(metavar="[N]", help="The number of a revision; else the current one.")
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Listing,
        help="Show the versions of a summary, compare them, go back to one; without a command they are listed.",
        epilog="Example: eunoe revisions user=anna",
    )
    command(group, "list", "eunoe revisions list user=anna")(list_)
    command(group, "show", "eunoe revisions show user=anna 2")(show)
    command(group, "diff", "eunoe revisions diff user=anna 1 2")(diff)
    command(group, "lineage", "eunoe revisions lineage user=anna 2")(lineage)
    command(group, "restore", "eunoe revisions restore user=anna 1")(restore)
    command(group, "write", 'eunoe revisions write user=anna "Anna is a cook."')(write)
    app.add_typer(group, name="revisions")


def list_(settings: Settings, scope: ScopeArgument) -> None:
    """List every version of a stream's summary, oldest first; the current one is marked."""
    with settings.memory() as memory:
        found = memory.summaries.revisions(scope)
    if settings.json:
        output.document(found)
    elif not found:
        output.say("nothing found")
    else:
        from eunoe.cli import tables

        names = ("revision", "from", "taken in", "written", "by", "text")
        tables.console().print(tables.grid(names, [_row(revision) for revision in found]))


def show(settings: Settings, scope: ScopeArgument, number: OptionalNumber = None) -> None:
    """Print the text of one version."""
    with settings.memory() as memory:
        revision = _one(_numbered(memory, scope), scope, number)
    if settings.json:
        output.document(revision)
    else:
        raw(revision.text)


def diff(
    settings: Settings,
    scope: ScopeArgument,
    old: Annotated[int, typer.Argument(metavar="A", help="The number of a revision.", show_default=False)],
    new: Annotated[int, typer.Argument(metavar="B", help="The number of another one.", show_default=False)],
) -> None:
    """Show what changed between two versions, sentence by sentence."""
    with settings.memory() as memory:
        found = _numbered(memory, scope)
    lines = _differences(_one(found, scope, old), _one(found, scope, new))
    if settings.json:
        output.document(lines)
    elif lines:
        raw("\n".join(lines))
    else:
        output.say("they say the same")


def lineage(settings: Settings, scope: ScopeArgument, number: OptionalNumber = None, full: FullOption = False) -> None:
    """Show which memories a version has taken in, itself and through the versions it was written from."""
    with settings.memory() as memory:
        found = _numbered(memory, scope)
        line = _ancestors(found, _one(found, scope, number))
        items = [_item(memory, scope, id) for revision in line for id in revision.absorbed]
    if settings.json:
        output.document([{"revision": one.number, "absorbed": one.absorbed} for one in line])
    elif not any(one.absorbed for one in line):
        output.say("nothing found")
    else:
        from eunoe.cli import tables

        tables.console().print(tables.items([item for item in items if item], full=full))


def restore(settings: Settings, scope: ScopeArgument, number: Number) -> None:
    """Make an earlier version the current one, as a new revision; what later ones took in waits again."""
    with settings.memory() as memory:
        revision = memory.summaries.restore(scope, number)
    show_revision(settings, revision)


def write(
    settings: Settings,
    scope: ScopeArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The whole summary.", show_default=False)],
    parent: Annotated[int | None, typer.Option("--parent", help="Only if this one is still the current one.")] = None,
    author: Annotated[str, typer.Option("--author", help="Who wrote it.")] = "hand",
) -> None:
    """Write a summary by hand, as a new revision."""
    with settings.memory(create=True) as memory:
        revision = memory.summaries.write(scope, text, author=author, parent=parent)
    show_revision(settings, revision)


def _numbered(memory: Memory, scope: str) -> dict[int, Revision]:
    return {revision.number: revision for revision in memory.summaries.revisions(scope)}


def _one(found: Mapping[int, Revision], scope: str, number: int | None) -> Revision:
    if number is None:
        number = next((revision.number for revision in found.values() if revision.current), 0)
    if number in found:
        return found[number]
    known = f"it has {', '.join(map(str, found))}" if found else "it has none yet"
    raise NotFoundError(f"{scope} has no {f'revision {number}' if number else 'current revision'}: {known}")


def _ancestors(found: Mapping[int, Revision], revision: Revision) -> list[Revision]:
    """A revision and those it was written from, oldest first."""
    line = [revision]
    while (parent := found.get(line[-1].parent)) is not None and parent not in line:
        line.append(parent)
    return line[::-1]


def _item(memory: Memory, scope: str, id: str) -> Item | None:
    try:
        return memory.get(scope, id)
    except NotFoundError:
        return None


def _differences(old: Revision, new: Revision) -> Sequence[str]:
    from difflib import unified_diff

    names = (f"revision {old.number}", f"revision {new.number}")
    return list(unified_diff(_sentences(old.text), _sentences(new.text), *names, lineterm=""))


def _sentences(text: str) -> list[str]:
    """Summaries are few long lines: a sentence is what changes."""
    import re

    return [part for line in text.splitlines() for part in re.split(r"(?<=[.!?…。])\s+", line)]


def _row(revision: Revision) -> tuple[str, ...]:
    from eunoe.cli.tables import when

    number = f"{revision.number} (current)" if revision.current else str(revision.number)
    words = " ".join(revision.text.split())
    brief = words if len(words) <= 60 else f"{words[:59].rstrip()}…"
    parent = str(revision.parent) if revision.parent else ""
    return number, parent, str(len(revision.absorbed)), when(revision.recorded), revision.author, brief
