"""Messages as forming reads them: who spoke, whose memory it concerns, and the words without recalled memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.model.time import from_micros
from eunoe.records.rows import said_by
from eunoe.store.contract import Row

USER_ROLES = ("user", "human")
AGENT_ROLES = ("assistant", "agent", "ai", "model")
TOOL_ROLES = ("tool", "function")
_SILENT_ROLES = ("system", "developer")
_RECALLED = re.compile(
    r"<MemoryContext\b.*?(?:</MemoryContext>|\Z)|<!-- eunoe:memory -->.*?(?:<!-- /eunoe:memory -->|\Z)", re.DOTALL
)
_CHARACTERS = 4.5
"""Of one token."""
_TOKENS_OF_ONE = 1000
"""Weighted tokens of talk that a stream's limits are meant for."""
_MOST_GROWTH = 8.0
RECALL_TOOL = "search_long_term_memory"


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

    @property
    def name(self) -> str:
        """How the speaker is called in prompts and memories."""
        return self.speaker or self.user or self.role


def turns_of(rows: Iterable[Row], conversation: Scope) -> list[Turn]:
    """Rows of the log that have something to say. System prompts and recalled memory are never learned again."""
    turns = [
        Turn(
            id=row.id,
            text=said(row),
            role=row.role,
            speaker=row.speaker,
            user=user_of(row, conversation),
            time=None if row.time is None else from_micros(row.time),
        )
        for row in rows
        if row.kind == "message" and row.role.lower() not in _SILENT_ROLES
    ]
    return [turn for turn in turns if turn.text]


def weight(turns: Iterable[Turn], settings: Settings) -> float:
    """Tokens, weighted by who spoke."""
    return sum(len(turn.text) / _CHARACTERS * _share(turn.role.lower(), settings) for turn in turns)


def growth(turns: Iterable[Turn], settings: Settings) -> float:
    """How many times a stream's limits apply: they grow with the length of the talk."""
    return min(max(weight(turns, settings) / _TOKENS_OF_ONE, 1.0), _MOST_GROWTH)


def _share(role: str, settings: Settings) -> float:
    if role in USER_ROLES:
        return settings.user_weight
    if role in AGENT_ROLES:
        return settings.agent_weight
    return settings.tool_weight if role in TOOL_ROLES else settings.other_weight


def said(row: Row) -> str:
    """The words of a message without recalled memory."""
    if row.role.lower() in TOOL_ROLES and RECALL_TOOL in (row.speaker, _field(row, "name")):
        return ""
    return _RECALLED.sub("", row.text).strip()


def user_of(row: Row, conversation: Scope) -> str:
    """The user who said it: named on the message itself, else the one the conversation belongs to."""
    if row.role.lower() not in USER_ROLES:
        return ""
    return said_by(row) or conversation.get("user", "")


def users_of(rows: Sequence[Row], conversation: Scope) -> list[str]:
    return list(dict.fromkeys(user for row in rows if (user := user_of(row, conversation))))


def _field(row: Row, name: str) -> str:
    value = json.loads(row.metadata).get(name, "") if row.metadata else ""
    return value if isinstance(value, str) else ""
