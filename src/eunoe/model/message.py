"""One thing said: who said it, when, and its exact words."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

from eunoe.errors import InputError
from eunoe.model.arguments import (
    MAX_NAME_CHARACTERS,
    Kind,
    check_metadata,
    check_text,
    parse_each,
    parse_optional_time,
    parse_time,
)
from eunoe.model.scope import Scope

_MODEL_ID: Final = re.compile(r"(?:chat)?gpt-\d\S*|(?:claude|gemini|gemma|llama|mistral|qwen|grok|deepseek)-\S*\d\S*")
"""A model by its number. People are called Claude, but not claude-3-opus."""


def role_named(speaker: str) -> str:
    """Return the role that a speaker's name says; "user" for a name of anybody's own.

    >>> role_named("Assistant"), role_named("Benutzer"), role_named("gpt-4o"), role_named("Claude")
    ('assistant', 'user', 'assistant', 'user')
    """
    name = " ".join(speaker.split())
    if not name or (len(name) == 2 and name.istitle()):  # "AI" and "ai" are no people, but Ai may be
        return "user"
    lowered = name.casefold()
    return "assistant" if _MODEL_ID.fullmatch(lowered) else _roles_by_name().get(lowered, "user")


@cache
def _roles_by_name() -> Mapping[str, str]:
    import tomllib  # quicker to start without it

    names = tomllib.loads(Path(__file__).with_name("role_names.toml").read_text("utf-8"))
    return {name.casefold(): role for role, own in names.items() for name in own}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing said. The store fills in `scope`, `position`, `recorded` and `retired`.

    >>> Message(role="user", speaker="Anna", text="Tea, please.")
    Message(Anna: 'Tea, please.')
    """

    kind: ClassVar[Kind] = "message"

    text: str
    role: str = ""
    """Which side spoke. Where none is given, a speaker called by one, such as "Assistant", has it; others are users."""
    speaker: str = ""
    time: datetime | None = None
    """When it was said. Without a zone it is taken as UTC, as everywhere."""
    id: str = ""
    session: str = ""
    caption: str = ""
    """What an attached picture shows. It is searched, but it is not part of the words."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    scope: Scope | None = None
    position: int = -1
    recorded: datetime | None = None
    retired: datetime | None = None
    """When it was taken back; see `retract`."""

    def __post_init__(self) -> None:
        if self.role == "":
            is_named_user = isinstance(self.metadata, Mapping) and bool(self.metadata.get("user"))
            is_named = isinstance(self.speaker, str) and not is_named_user
            object.__setattr__(self, "role", role_named(self.speaker) if is_named else "user")

    @property
    def content(self) -> str:
        """The text that is embedded and indexed."""
        return f"{self.text}\n{self.caption}" if self.caption else self.text

    def __repr__(self) -> str:
        shown = f"{self.speaker or self.role}: {self.text!r}"
        return f"Message({shown}, id={self.id!r})" if self.id else f"Message({shown})"


MessageLike = Message | Mapping[str, Any] | str

_ALIASES = {"content": "text", "name": "speaker", "timestamp": "time", "created_at": "time", "session_id": "session"}
_TEXT_FIELDS = ("text", "role", "speaker", "id", "session", "caption")
_NAME_FIELDS = ("role", "speaker", "id", "session")


def parse_messages(values: MessageLike | Iterable[MessageLike], session: str = "") -> list[Message]:
    """Read one message or several. Those that name no session get the one given."""
    messages = parse_each(values, "message", str | Message | Mapping, parse_message)
    return [replace(each, session=session) if session and not each.session else each for each in messages]


def parse_message(value: MessageLike) -> Message:
    """Read a Message, a dict in the usual chat shapes, or plain text.

    What has no field of its own is kept in `metadata`: nothing is dropped.

    >>> parse_message({"role": "assistant", "content": "Hello", "tool_call_id": "t1"}).metadata
    {'tool_call_id': 't1'}
    """
    if isinstance(value, str):
        return Message(text=check_text(value))
    if isinstance(value, Mapping):
        value = _from_mapping(value)
    if not isinstance(value, Message):
        raise InputError(f"a message is a dict with 'role' and 'content', or text, not {type(value).__name__}")
    for name in _TEXT_FIELDS:
        check_text(getattr(value, name), name)
    for name in _NAME_FIELDS:
        if len(getattr(value, name)) > MAX_NAME_CHARACTERS:
            raise InputError(f"the message's {name} is longer than {MAX_NAME_CHARACTERS} characters")
    check_metadata(value.metadata)
    if value.time is None or (isinstance(value.time, datetime) and value.time.tzinfo is UTC):
        return value
    return replace(value, time=parse_time(value.time))


def _from_mapping(value: Mapping[str, Any]) -> Message:
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, item in value.items():
        name = _ALIASES.get(key, key)
        if item is None and name != "text":
            continue
        if name in _TEXT_FIELDS or name == "time":
            if name in fields:
                raise InputError(f"the message gives its {name} twice, as {key!r} and under another name")
            fields[name] = item
        elif key != "metadata":
            extra[key] = item
    if "text" not in fields:
        raise InputError("the message has no 'content' (or 'text')")
    fields["text"] = _text_of(fields["text"], extra)
    fields["time"] = parse_optional_time(fields.get("time"))
    metadata = check_metadata(value.get("metadata") or {})
    if doubled := sorted(extra.keys() & metadata.keys()):
        raise InputError(f"the message gives {', '.join(doubled)} twice, in its metadata and beside it")
    return Message(**fields, metadata={**metadata, **extra})


def _text_of(content: object, extra: dict[str, Any]) -> object:
    """Return the words of a text, of nothing (a bare tool call) or of a list of parts, which metadata keeps whole."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    extra["content"] = content
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))
