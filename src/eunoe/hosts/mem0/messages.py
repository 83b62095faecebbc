"""Messages as mem0 takes them: a text, a dict or a list of dicts, with words or with parts."""

from collections.abc import Mapping
from typing import Any, Final

from eunoe.hosts.mem0.exceptions import validation_error

_TYPES: Final = ("str", "dict", "list[dict]")


def parse_messages(messages: object) -> list[dict[str, Any]]:
    """Those messages that say something, with their words as text. Pictures are left aside: they have no words.

    >>> parse_messages("I like tea.")
    [{'role': 'user', 'content': 'I like tea.'}]
    """
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    given = [given] if isinstance(given, Mapping) else given
    if not isinstance(given, list):
        raise _wrong_type(messages)
    for message in given:
        if not isinstance(message, Mapping):
            raise _wrong_type(message, "a message of the list ")
    read = [{**message, "content": _words(message.get("content"))} for message in given]
    return [message for message in read if message.get("role") and message["content"].strip()]


def transcript(messages: list[dict[str, Any]]) -> str:
    return "\n".join(f"{message['role']}: {message['content']}" for message in messages)


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return " ".join(text for text in texts if isinstance(text, str))


def _wrong_type(value: object, what: str = "") -> Exception:
    return validation_error(
        "003",
        f"messages must be str, dict, or list[dict]; {what or 'what was given '}is a {type(value).__name__}",
        "Give a text, a dict with 'role' and 'content', or a list of such dicts.",
        provided_type=type(value).__name__,
        valid_types=list(_TYPES),
    )
