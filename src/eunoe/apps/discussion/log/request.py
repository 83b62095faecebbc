"""Messages of a request: role and content as front ends send them, as they are compared and as they are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from eunoe.apps.discussion.scope import take_tag
from eunoe.errors import InputError
from eunoe.model.arguments import parse_optional_time
from eunoe.model.message import Message, parse_message
from eunoe.model.turn import SILENT_ROLES
from eunoe.text.normalize import replace_surrogates

FIELDS: Final = "fields"
"""The field of metadata that keeps what a message has beside its role, its words and its speaker."""
_WORDS: Final = ("role", "content", "text", "name", "speaker", "time", "timestamp", "created_at")
_COMPARED: Final = ("images", "tool_calls", "function_call", "tool_call_id")


class RequestMessage(NamedTuple):
    """One message of a request."""

    role: str
    text: str
    speaker: str = ""
    time: datetime | None = None
    fields: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        """What it is recognised by."""
        return message_key(self.role, self.text, self.fields)

    @property
    def is_silent(self) -> bool:
        """Whether it is a system prompt, which is no part of the chat."""
        return self.role.lower() in SILENT_ROLES


def read_request(messages: Sequence[Mapping[str, Any]]) -> list[RequestMessage]:
    """Read the messages of a request. Tags that name a discussion are taken out.

    >>> read_request([{"role": "user", "content": "[DiscussionId]trip[/DiscussionId]Hello"}])[0].text
    'Hello'
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise InputError(f"messages must be a list of messages, not {type(messages).__name__}")
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str) or not message["role"].strip():
            raise InputError(f"message {number} must be a mapping with 'role' and 'content'")
    return [_read_numbered(number, message) for number, message in enumerate(take_tag(messages)[1], 1)]


def message_key(role: str, text: str, fields: Mapping[str, Any]) -> str:
    """What a message is recognised by: its role, its words without space at their ends, its images and tool calls.

    >>> message_key("user", "ok\\n", {}) == message_key("user", "ok", {})
    True
    """
    words = text.replace("\r\n", "\n").strip()
    if not fields:
        return f"{role}\0{words}"
    parts = [part for part in _parts(fields) if not isinstance(_part_text(part), str)]
    compared = {name: fields[name] for name in _COMPARED if fields.get(name)}
    return f"{role}\0{words}\0{json.dumps([parts, compared], sort_keys=True) if parts or compared else ''}".rstrip("\0")


def content_hash(text: str, fields: Mapping[str, Any]) -> str:
    """SHA-256 of a message's content; where it has no words, of its images.

    >>> content_hash("Hello", {})[:8]
    '185f8db3'
    """
    images = [] if text or not fields else sorted(_images(fields))
    return sha256("".join([text, *images]).encode()).hexdigest()


def fields_of(message: Message) -> Mapping[str, Any]:
    """What a message of the log has beside its role, its words and its speaker."""
    fields = message.metadata.get(FIELDS)
    return fields if isinstance(fields, Mapping) else {}


def _read_numbered(number: int, message: Mapping[str, Any]) -> RequestMessage:
    try:
        return _read_message(message)
    except InputError as error:
        raise InputError(f"message {number}: {error}; nothing was stored") from None


def _read_message(message: Mapping[str, Any]) -> RequestMessage:
    content = message.get("content", message.get("text"))
    rest = {name: value for name, value in message.items() if name not in _WORDS and value is not None}
    if isinstance(content, list):
        rest["content"] = content
        content = "\n".join(text for text in map(_part_text, content) if isinstance(text, str))
    if content is not None and not isinstance(content, str):
        raise InputError("its content must be text or a list of parts")
    moments = (message.get(name) for name in ("time", "timestamp", "created_at"))
    time = parse_optional_time(next((moment for moment in moments if moment is not None), None))
    speaker = str(message.get("name") or message.get("speaker") or "")
    text = replace_surrogates(content or "")
    read = parse_message(Message(role=message["role"].strip(), text=text, speaker=speaker, time=time))
    return RequestMessage(read.role, read.text, read.speaker, read.time, _as_json(rest) if rest else rest)


def _as_json(fields: Mapping[str, Any]) -> Any:
    try:
        return json.loads(replace_surrogates(json.dumps(fields, ensure_ascii=False, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"it cannot be written as JSON: {error}") from None


def _parts(fields: Mapping[str, Any]) -> list[Any]:
    content = fields.get("content")
    return content if isinstance(content, list) else []


def _part_text(part: Any) -> Any:
    return part.get("text") if isinstance(part, Mapping) else part


def _images(fields: Mapping[str, Any]) -> list[str]:
    """The images of a message, as URLs or encoded."""
    listed = fields.get("images")
    images = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    for part in _parts(fields):
        image = part.get("image_url") if isinstance(part, Mapping) else None
        url = image.get("url") if isinstance(image, Mapping) else image
        images += [url] if isinstance(url, str) else []
    return images
