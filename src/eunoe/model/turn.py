"""Messages as an extractor reads them: who spoke, whose memory it concerns, and the words without recalled memory.

The messages of a chat may each name the one that they were put after. So they are a tree, and the chat is read from it
as a list: what came later stands right behind the message that it names.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from eunoe.model.atom import Record
from eunoe.model.message import Message
from eunoe.model.scope import Scope
from eunoe.model.stream import Settings

USER_ROLES = ("user", "human")
AGENT_ROLES = ("assistant", "agent", "ai", "model")
TOOL_ROLES = ("tool", "function")
RECALL_TOOL = "search_long_term_memory"
FORMER = "former"
"""The field of a message's metadata that names who forms memories from it in place of the engine."""

SILENT_ROLES = ("system", "developer")
_RECALLED = re.compile(
    r"<MemoryContext\b.*?(?:</MemoryContext>|\Z)|<!-- eunoe:memory -->.*?(?:<!-- /eunoe:memory -->|\Z)", re.DOTALL
)
_CHARACTERS_PER_TOKEN = 4.5
_TOKENS_PER_LIMIT = 1000
"""Weighted tokens of talk that a stream's extraction limits are meant for."""
_MAX_GROWTH = 8.0
"""A chunk is at most some 6,000 tokens; beyond this more room only brings noise."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation that memories can be made from."""

    id: str
    text: str
    """Its words, without what memory had put into them."""
    role: str = "user"
    speaker: str = ""
    user: str = ""
    """The user who said it; empty if it was not one of the users."""
    time: datetime | None = None
    recorded: datetime | None = None

    @property
    def moment(self) -> datetime | None:
        """When it was said; when it was recorded, if that is not known."""
        return self.time or self.recorded

    @property
    def name(self) -> str:
        """How the speaker is called in prompts and memories."""
        return self.speaker or self.user or self.role


def user_named_by(message: Message | Record) -> str:
    """The user named on a message itself; empty if none is."""
    user = message.metadata.get("user")
    return user if isinstance(user, str) else ""


def read_turns(records: Iterable[Record], conversation: Scope) -> list[Turn]:
    """The messages that have something to say. System prompts and recalled memory are never learned again, and what was
    taken back is not learned at all."""
    turns = []
    for record in records:
        if record.kind != "message" or record.retired is not None:
            continue
        if record.role.lower() not in SILENT_ROLES and (text := said_text(record)):
            user = speaking_user(record, conversation)
            turns.append(Turn(record.id, text, record.role, record.speaker, user, record.time, record.recorded))
    return turns


def turns_to_form(records: Iterable[Record], conversation: Scope) -> list[Turn]:
    """The turns that the engine forms memories from: not those from which somebody else does."""
    return read_turns((record for record in records if FORMER not in record.metadata), conversation)


def said_text(record: Record) -> str:
    """The words of a message without recalled memory."""
    if record.role.lower() in TOOL_ROLES and RECALL_TOOL in (record.speaker, record.metadata.get("name")):
        return ""
    return _RECALLED.sub("", record.text).strip()


def speaking_user(record: Record, conversation: Scope) -> str:
    """The user who said it: named on the message itself, else the one the conversation belongs to."""
    if record.role.lower() not in USER_ROLES:
        return ""
    return user_named_by(record) or conversation.pairs.get("user", "")


def speaking_users(records: Sequence[Record], conversation: Scope) -> list[str]:
    return list(dict.fromkeys(user for record in records if (user := speaking_user(record, conversation))))


def weighted_tokens(turns: Iterable[Turn], settings: Settings) -> float:
    """The tokens of turns, weighted by who spoke."""
    return sum(len(turn.text) / _CHARACTERS_PER_TOKEN * _role_weight(turn.role.lower(), settings) for turn in turns)


def limit_growth(turns: Iterable[Turn], settings: Settings) -> float:
    """How many times a stream's extraction limits apply: they grow with the length of the talk."""
    return min(max(weighted_tokens(turns, settings) / _TOKENS_PER_LIMIT, 1.0), _MAX_GROWTH)


def _role_weight(role: str, settings: Settings) -> float:
    if role in USER_ROLES:
        return settings.user_weight
    if role in AGENT_ROLES:
        return settings.agent_weight
    return settings.tool_weight if role in TOOL_ROLES else settings.other_weight


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
