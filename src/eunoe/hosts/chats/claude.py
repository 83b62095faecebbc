"""Claude's export: `conversations.json`, where each conversation is a list of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from eunoe.hosts.chats.conversation import Conversation, message

_ROLES: Final = {"human": "user"}


def is_claude(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("chat_messages"), list)


def read_claude(value: Mapping[str, Any]) -> Conversation:
    messages = [_read(said) for said in value["chat_messages"] if _words(said)]
    return Conversation(
        id=str(value.get("uuid") or ""),
        messages=messages,
        person=str((value.get("account") or {}).get("uuid") or ""),
        title=str(value.get("name") or ""),
    )


def _words(said: Mapping[str, Any]) -> str:
    """The blocks of text, else the text; then what attached files said."""
    blocks = said.get("content") if isinstance(said.get("content"), list) else []
    texts = [block.get("text") for block in blocks or () if isinstance(block, Mapping) and block.get("type") == "text"]
    words = [text for text in texts if isinstance(text, str)] or [str(said.get("text") or "")]
    attachments = said.get("attachments") or []
    words += [each["extracted_content"] for each in attachments if isinstance(each.get("extracted_content"), str)]
    return "\n".join(text for text in words if text.strip())


def _read(said: Mapping[str, Any]) -> dict[str, Any]:
    sender = str(said.get("sender") or "user")
    files = [each["file_name"] for each in said.get("attachments") or [] if each.get("file_name")]
    return message(str(said["uuid"]), _ROLES.get(sender, sender), _words(said), said.get("created_at"), files=files)
