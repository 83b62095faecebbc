"""One thing said: who said it, when, and its exact words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from eunoe.errors import InputError
from eunoe.model.scope import Scope
from eunoe.model.time import optional
from eunoe.text.normalize import checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing said. `scope`, `position` and `recorded` are filled in by the store.

    >>> Message(role="user", speaker="Anna", text="Tea, please.").speaker
    'Anna'
    """

    text: str
    role: str = "user"
    speaker: str = ""
    time: datetime | None = None
    id: str = ""
    session: str = ""
    caption: str = ""
    """What an attached picture shows; searched, but not part of the words."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    scope: Scope | None = None
    position: int = -1
    recorded: datetime | None = None

    kind = "message"


MessageLike = Message | Mapping[str, Any] | str

_ALIASES = {"content": "text", "name": "speaker", "timestamp": "time", "created_at": "time"}
_TEXTS = ("text", "role", "speaker", "id", "session", "caption")
_MAX_NAME = 1024


def message_of(value: MessageLike) -> Message:
    """Reads a Message, a dict in the usual chat shapes, or plain text.

    What has no field of its own is kept in `metadata`: nothing is dropped.

    >>> message_of({"role": "assistant", "content": "Hello", "tool_call_id": "t1"}).metadata
    {'tool_call_id': 't1'}
    """
    if isinstance(value, str):
        return Message(text=checked(value))
    if isinstance(value, Message):
        return _checked(value)
    if not isinstance(value, Mapping):
        raise InputError(f"a message is a dict with 'role' and 'content', or text, not {type(value).__name__}")
    return _checked(_from_mapping(value))


def _from_mapping(value: Mapping[str, Any]) -> Message:
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, item in value.items():
        target = _ALIASES.get(key, key)
        if item is None and target != "text":
            continue
        if target in _TEXTS or target == "time":
            if target in fields:
                raise InputError(f"the message gives its {target} twice, as {key!r} and under another name")
            fields[target] = item
        elif key != "metadata":
            extra[key] = item
    if "text" not in fields:
        raise InputError("the message has no 'content' (or 'text')")
    fields["text"] = _words(fields["text"], extra)
    fields["time"] = optional(fields.get("time"))
    metadata = as_object(value.get("metadata") or {})
    if doubled := sorted(extra.keys() & metadata.keys()):
        raise InputError(f"the message gives {', '.join(doubled)} twice, in its metadata and beside it")
    return Message(**fields, metadata={**metadata, **extra})


def _words(content: object, extra: dict[str, Any]) -> object:
    """Chat APIs give a text, nothing (a bare tool call) or a list of parts; parts stay whole in metadata."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    extra["content"] = content
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def _checked(message: Message) -> Message:
    for name in _TEXTS:
        checked(getattr(message, name), name)
    for name in ("role", "speaker", "id", "session"):
        if len(getattr(message, name)) > _MAX_NAME:
            raise InputError(f"the message's {name} is longer than {_MAX_NAME} characters")
    as_object(message.metadata)
    return message


def as_object(value: object, name: str = "metadata") -> Mapping[str, Any]:
    """The mapping itself if JSON can carry it without loss."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be a mapping, not {type(value).__name__}")
    if value:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            same = json.loads(text) == value
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"{name} cannot be written as JSON: {error}") from None
        checked(text, name)
        if not same:
            raise InputError(f"{name} would not come back from JSON as it is: use texts as keys and lists, not tuples")
    return value
