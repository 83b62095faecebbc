"""The order of a chat whose messages name the one that they were put after.

So the messages are a tree, and the chat is read from it as a list: what came later stands right behind the message that
it names.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from eunoe.model.turn import SILENT_ROLES

AFTER: Final = "after"
"""The field of metadata with the id of the message before it; empty for the first one."""


class ChatMessage(Protocol):
    """A message or a record of one."""

    @property
    def id(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def metadata(self) -> Mapping[str, Any]: ...


M = TypeVar("M", bound=ChatMessage)


def in_order(messages: Iterable[M]) -> list[M]:
    """The messages of a chat in its order, without system prompts; they are given in the order they were recorded.

    One that names nothing known stands at the end.
    """
    behind: defaultdict[str, list[M]] = defaultdict(list)
    known, end = {""}, ""
    for message in messages:
        if message.role.lower() in SILENT_ROLES:
            continue
        named = message.metadata.get(AFTER)
        place = named if isinstance(named, str) and named in known else end
        behind[place].append(message)
        known.add(message.id)
        end = message.id if place == end else end
    waiting, ordered = behind[""], []
    while waiting:
        message = waiting.pop()  # the latest of those with the same place, and all behind it, come first
        ordered.append(message)
        waiting += behind.get(message.id, ())
    return ordered


def hand_on(ordered: Sequence[M], removed: Collection[str]) -> dict[str, str]:
    """The ids of messages that name a removed one, and what each has to name instead: the last before it that stays."""
    heirs: dict[str, str] = {}
    names: dict[str, str] = {}
    last = ""
    for message in ordered:
        named = message.metadata.get(AFTER)
        if message.id in removed:
            heirs[message.id] = last
            continue
        if isinstance(named, str) and named in heirs:
            names[message.id] = heirs[named]
        last = message.id
    return names
