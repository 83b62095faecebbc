"""Messages as dicts with a role and words, as LangChain, OpenAI and most others write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from eunoe.hosts.chats.conversation import Conversation, message

_ROLES: Final = {"human": "user", "ai": "assistant", "function": "tool"}
_CONVERSATION_NAMES: Final = ("conversation_id", "session_id", "thread_id", "session")
_PERSON_NAMES: Final = ("user_id", "user")
_TIME_NAMES: Final = ("time", "timestamp", "created_at", "create_time")


def is_message(value: object) -> bool:
    """Whether it is a dict with words: of LangChain (type and data), or with a role or a speaker."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("data"), Mapping):
        return "type" in value and "content" in value["data"]
    return ("content" in value or "text" in value) and not {"role", "type", "speaker", "name"}.isdisjoint(value)


def is_conversation(value: object) -> bool:
    """Whether it is a dict with a list of such messages."""
    messages = value.get("messages") if isinstance(value, Mapping) else None
    return isinstance(messages, list) and bool(messages) and all(map(is_message, messages))


def read_conversation(value: Mapping[str, Any], name: str) -> Conversation:
    id = _first(value, (*_CONVERSATION_NAMES, "id")) or name
    return to_conversation(id, value["messages"], _first(value, _PERSON_NAMES), _first(value, ("title", "name")))


def group_messages(values: Iterable[Mapping[str, Any]], name: str) -> list[Conversation]:
    """Messages that stand one after the other, by the conversation and the person that they name."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for value in values:
        place = _first(value, _CONVERSATION_NAMES) or name, _first(value, _PERSON_NAMES)
        groups.setdefault(place, []).append(value)
    return [to_conversation(id, messages, person) for (id, person), messages in groups.items()]


def to_conversation(id: str, values: Sequence[Mapping[str, Any]], person: str = "", title: str = "") -> Conversation:
    messages = [read_message(value, f"{id}#{number}") for number, value in enumerate(values)]
    return Conversation(id, [each for each in messages if each["text"].strip()], person, title)


def read_message(value: Mapping[str, Any], id: str, time: object = None) -> dict[str, Any]:
    """One message. Without an id of its own it has the one given, which must be the same in every run."""
    fields = value["data"] if isinstance(value.get("data"), Mapping) else value
    role = str(value.get("role") or value.get("type") or fields.get("role") or "")
    said = next((fields[name] for name in _TIME_NAMES if fields.get(name)), time)
    speaker = _first(fields, ("speaker", "name"))
    words = words_of(fields.get("content", fields.get("text")))
    return message(str(fields.get("id") or id), _ROLES.get(role, role), words, said, speaker)


def words_of(content: object) -> str:
    """The words of a text or of a list of parts."""
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def _first(value: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((str(value[name]) for name in names if isinstance(value.get(name), str | int)), "")
