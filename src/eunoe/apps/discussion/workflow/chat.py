"""The messages of a chat as workflows see them, and as prompts show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from eunoe.apps.discussion.stateless import message_text, turns
from eunoe.errors import InputError
from eunoe.text.sentences import token_count

ChatMessage = Mapping[str, Any]
_SYSTEM_ROLES: Final = ("system", "developer")


def read_messages(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Check messages with role and content. A text is a user's message; one alone is a chat."""
    if isinstance(values, str | Mapping):
        values = [values]
    messages = [{"role": "user", "content": value} if isinstance(value, str) else value for value in values]
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(f'message {number} must be an object with "role" and "content"')
        if not isinstance(message.get("content"), str | list | None):
            raise InputError(f"message {number}: its content must be text or a list of parts")
    return [dict(message) for message in messages]


def conversation(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages with words, without those of the system."""
    return [each for each in messages if each["role"] not in _SYSTEM_ROLES and message_text(each)]


def system_text(messages: Iterable[ChatMessage]) -> str:
    """What the messages of the system say."""
    return "\n".join(message_text(each) for each in messages if each["role"] in _SYSTEM_ROLES)


def plain_text(messages: Iterable[ChatMessage]) -> str:
    """The words alone."""
    return "\n".join(map(message_text, messages))


def transcript(messages: Iterable[ChatMessage]) -> str:
    """The words, and who said them.

    >>> transcript([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    'user: Hi\\nassistant: Hello'
    """
    return "\n".join(turns(messages))


def last_within(messages: Sequence[ChatMessage], tokens: int, least: int = 0) -> Sequence[ChatMessage]:
    """The last messages that fit into so many estimated tokens, and at least so many messages."""
    count, width = 0, 0
    for message in reversed(messages):
        width += token_count(message_text(message))
        if width > tokens and count >= least:
            break
        count += 1
    return messages[len(messages) - count :]
