"""`eunoe discussion show`, `search` and `forget`: what a discussion remembers, and its memories taken back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import Annotated, Final, Literal

import typer

from eunoe.apps.discussion import Discussion
from eunoe.apps.discussion.documents import StateDocument, current_summary
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    DEFAULT_USER,
    KEYWORD_MEMORY,
    ChunkMemory,
    KeywordMemory,
    chunk_memories,
    keyword_memories,
)
from eunoe.cli.command import Call, MisuseError, Reply, command
from eunoe.cli.display.output import quantity
from eunoe.cli.display.views import Entries, Entry, View, hit_entries, when
from eunoe.cli.options import FullOption, argument
from eunoe.errors import NotFoundError

Part = Literal["summary", "memories", "keywords", "state"]
IdArgument = Annotated[str, argument("ID", "The id of a discussion.")]
UserOption = Annotated[str, typer.Option("--user", metavar="NAME", help="Whose discussion it is.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_PART_HELP: Final = "Only the summary, the memories, the keywords or the state document."


@command("eunoe discussion show trip keywords")
def show(
    call: Call,
    id: IdArgument,
    part: Annotated[Part | None, argument("[PART]", _PART_HELP)] = None,
    user: UserOption = DEFAULT_USER,
    full: FullOption = False,
) -> Reply:
    """Show what a discussion remembers: its summary, memories and keyword memories, each with its id.

    `eunoe update SCOPE ID TEXT` puts a memory right, `eunoe summaries write SCOPE TEXT` the summary.
    """
    trip = find_discussion(call, id, user)
    memory, scope = trip.memory, trip.scope
    found: dict[str, str | Sequence[ChunkMemory] | Sequence[KeywordMemory]] = {
        "summary": current_summary(memory, scope),
        "memories": chunk_memories(memory, scope),
        "keywords": keyword_memories(memory, scope),
        "state": StateDocument(memory, scope).read(),
    }
    shown = {name: each for name, each in found.items() if part in (None, name)}
    views: list[View] = []
    for name, each in shown.items():
        text: View = each if isinstance(each, str) else Entries(("when",), list(_entries(each)), full)
        views += [f"{name}\n", text] if text and part is None else [text]
    hint = (
        f"to change one: eunoe update {quote(str(scope))} ID TEXT; "
        f"to remove one: eunoe discussion forget {quote(id)} ID --user {quote(user)}"
    )
    return Reply({"scope": str(scope), **shown}, *views, notes=[hint] if any(shown.values()) else [])


@command('eunoe discussion search trip "Hotel Aurora"')
def search(
    call: Call,
    id: IdArgument,
    query: Annotated[str, argument("QUERY", "The question, or some words.")],
    user: UserOption = DEFAULT_USER,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many; 10 if not given.")] = None,
    full: FullOption = False,
) -> Reply:
    """Find the memories of a discussion that bear on a question, best first, each with its id.

    `eunoe recall` finds what was said, too.
    """
    trip = find_discussion(call, id, user)
    hits = trip.memory.recall(
        trip.scope, query, kinds=["observation", "fact"], labels=[CHUNK_MEMORY, KEYWORD_MEMORY], limit=limit
    )
    return Reply(hits, hit_entries(hits, full=full), notes=hits.notes)


@command("eunoe discussion forget trip MEMORY")
def forget(
    call: Call,
    id: IdArgument,
    memories: Annotated[list[str], argument("MEMORY...", "Ids of memories, or of messages.")],
    user: UserOption = DEFAULT_USER,
    yes: YesOption = False,
) -> Reply:
    """Remove memories of a discussion for good, so that no update makes them again.

    A rebuild does. To forget what was said, name the messages.
    """
    trip = find_discussion(call, id, user)
    if not yes and not confirm(f"Remove {quantity(len(memories), 'memory')} of the discussion {id} of {user}"):
        return Reply({"forgotten": False}, "nothing was removed", code=1)
    report = trip.forget(memories)
    counts = f"{quantity(len(report.messages), 'message')}, {quantity(len(report.atoms), 'memory')}"
    return Reply(report, f"removed: {counts}", notes=report.notes, code=0 if report.total else 1)


def find_discussion(call: Call, id: str, user: str) -> Discussion:
    """A discussion that is there."""
    discussion = Discussion(call.open(), id, user)
    if discussion.status().is_empty:
        raise NotFoundError(f"there is no discussion {id} of {user}: `eunoe discussion list` shows all there are")
    return discussion


def confirm(question: str) -> bool:
    """Ask whether something is to be removed for good."""
    if not sys.stdin.isatty():
        raise MisuseError("there is nobody to ask: pass --yes to go on without a question")
    print(f"{question}, for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _entries(memories: Iterable[ChunkMemory | KeywordMemory]) -> Iterator[Entry]:
    for each in memories:
        if isinstance(each, KeywordMemory):
            words = "; ".join((*each.entities, *each.key_phrases))
            yield Entry((when(each.moment),), f"{each.title}: {each.summary}", f"{each.id} · {words}")
        else:
            yield Entry((when(each.recorded),), each.text, each.id)
