"""Chats that people have had elsewhere: read, shown and brought into the message log.

Whose they are decides the scope, and the ids of messages what is known already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from eunoe.errors import InputError
from eunoe.hosts.chats.formats import Conversation
from eunoe.hosts.chats.sources import ChatFile, open_chats
from eunoe.hosts.common import Problems
from eunoe.memory import Memory
from eunoe.model.scope import Scope, ScopeLike

__all__ = [
    "ChatFile",
    "ChatReport",
    "ChatSummary",
    "Conversation",
    "check_owners",
    "import_chats",
    "open_chats",
    "summarise_chats",
]


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """What a file holds, before anything is written."""

    format: str
    conversations: int = 0
    messages: int = 0
    left_out: int = 0
    """Messages of versions that were edited away or made anew."""
    people: Mapping[str, int] = field(default_factory=dict)
    """Conversations by whose they are; "" where the file does not say."""
    first: datetime | None = None
    last: datetime | None = None
    problems: tuple[str, ...] = ()
    """What cannot be read, each with its place."""


@dataclass(frozen=True, slots=True)
class ChatReport:
    """What came of an import."""

    conversations: int = 0
    stored: int = 0
    known: int = 0
    """Messages that were here already."""
    forgotten: int = 0
    """Messages that were forgotten here, and stay so."""
    formed: int = 0
    """Memories that were formed from them."""
    problems: tuple[str, ...] = ()
    """What was not brought in, each with its place."""


def summarise_chats(chats: ChatFile, *, progress: Callable[[int], None] | None = None) -> ChatSummary:
    """Read all of it once and write nothing."""
    people: Counter[str] = Counter()
    problems = Problems()
    messages = left_out = 0
    times: list[datetime] = []
    for number, each in enumerate(chats.conversations(problems), 1):
        people[each.person] += 1
        messages += len(each.messages)
        left_out += each.left_out
        times += filter(None, [each.started])
        if progress:
            progress(number)
    first, last = min(times, default=None), max(times, default=None)
    counts = people.total(), messages, left_out, dict(people.most_common())
    return ChatSummary(chats.format, *counts, first, last, problems.lines)


def import_chats(
    memory: Memory,
    chats: ChatFile,
    scope: ScopeLike | None = None,
    *,
    people: Mapping[str, ScopeLike] | None = None,
    form: bool = True,
    progress: Callable[[int], None] | None = None,
) -> ChatReport:
    """Store every conversation as a session of its owner's scope. Importing the same file again changes nothing.

    Args:
        scope: whose the conversations are that no entry of `people` is for.
        people: scopes by the names that the file has for its people.
        form: form memories from what is new.
        progress: is told the number of conversations so far.
    """
    owners = {name: _owner(owner) for name, owner in (people or {}).items()}
    rest = None if scope is None else _owner(scope)
    counts: Counter[str] = Counter()
    problems = Problems()
    formed = number = 0
    for number, each in enumerate(chats.conversations(problems), 1):
        owner = owners.get(each.person, rest)
        if owner is None:
            raise InputError(f"no scope for the conversation {each.id}")
        place = owner.extended({"session": each.id})
        outcomes = Counter(receipt.outcome for receipt in memory.observe(place, each.messages))
        counts.update(outcomes)
        if outcomes["conflict"]:
            problems.add(each.place, "ids of its messages stand for other words here, which stay")
        if form and outcomes["stored"]:
            formed += len(memory.form(place).stored)
        if progress:
            progress(number)
    return ChatReport(number, counts["stored"], counts["duplicate"], counts["forgotten"], formed, problems.lines)


def check_owners(summary: ChatSummary, people: Mapping[str, ScopeLike], scope: ScopeLike | None) -> None:
    """Refuse, before anything is written, conversations of people for whom there is no scope."""
    for owner in (*people.values(), *([] if scope is None else [scope])):
        _owner(owner)
    if scope is None and (unknown := [name for name in summary.people if name not in people]):
        names = ", ".join(name or "(the file does not say whose)" for name in unknown)
        raise InputError(f"no scope for the conversations of {names}: name one for them, or one for all")
    if strange := sorted(set(people) - set(summary.people)):
        raise InputError(f"the file holds nothing of {', '.join(strange)}")


def _owner(scope: ScopeLike) -> Scope:
    owner = Scope.of(scope)
    if "session" in owner:
        raise InputError(f"{owner} names a session, but each conversation becomes one: leave session= out")
    return owner
