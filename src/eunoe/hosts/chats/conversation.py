"""One conversation as another program has kept it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from eunoe.hosts.common import Problems
from eunoe.model.arguments import parse_time
from eunoe.model.message import parse_message
from eunoe.text.normalize import fingerprint, one_line, replace_surrogates

_MAX_ID_CHARACTERS: Final = 512
"""Of a session in a scope."""
_MAX_SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True)
class Conversation:
    """Its messages are dicts as `Memory.observe` takes them. Each has an id, so that reading twice stores once."""

    id: str
    messages: Sequence[Mapping[str, Any]]
    person: str = ""
    """Whose it is, as the file says; empty if it does not."""
    title: str = ""
    left_out: int = 0
    """Messages of versions that were edited away or made anew."""

    @property
    def place(self) -> str:
        """How it is named in a report."""
        return f"conversation {one_line(self.id, _MAX_SHOWN_CHARACTERS)}"

    @property
    def started(self) -> datetime | None:
        """When its first message with a time was said."""
        times = [parse_time(message["time"]) for message in self.messages if message.get("time") is not None]
        return min(times, default=None)


def message(id: str, role: str, text: str, time: object = None, speaker: str = "", **metadata: Any) -> dict[str, Any]:
    """One message; what is not known is left out."""
    given = {"time": time, "speaker": speaker, "metadata": {key: value for key, value in metadata.items() if value}}
    said = {"role": role, "text": text, **{key: value for key, value in given.items() if value}}
    return {"id": short_id(id), **_without_surrogates(said)}


def short_id(id: str) -> str:
    """An id as a scope can have it: one that is too long, or cannot be shown, becomes a fingerprint of itself."""
    text = replace_surrogates(id)
    is_fit = len(text) <= _MAX_ID_CHARACTERS and text.isprintable() and text == text.strip()
    return text if is_fit else f"chat-{fingerprint(text).hex()}"


def clean_conversation(conversation: Conversation, problems: Problems) -> Conversation:
    """A conversation as it can be stored. Messages that cannot be are problems."""
    messages = []
    for number, each in enumerate(conversation.messages, 1):
        with problems.catch(f"{conversation.place}, message {number}"):
            parse_message(each)
            messages.append(each)
    return replace(
        conversation,
        id=short_id(conversation.id),
        messages=messages,
        person=replace_surrogates(conversation.person),
        title=replace_surrogates(conversation.title),
    )


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return list(map(_without_surrogates, value))
    return {key: _without_surrogates(each) for key, each in value.items()} if isinstance(value, dict) else value
