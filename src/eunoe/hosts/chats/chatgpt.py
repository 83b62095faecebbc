"""ChatGPT's export: `conversations.json`, where each conversation is a tree of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from eunoe.hosts.chats.conversation import Conversation, message

_TEXT_FIELDS: Final = ("text", "result")
"""Of contents and parts that are no plain text: code, output of tools, transcripts."""


def is_chatgpt(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping)


def read_chatgpt(value: Mapping[str, Any]) -> Conversation:
    """The versions that the user saw last; what was edited away or made anew is counted."""
    tree: Mapping[str, Any] = value["mapping"]
    branch = [node["message"] for node in _branch(tree, value.get("current_node"))]
    everything = [node["message"] for node in tree.values() if _has_words(node)]
    messages = [_read(each) for each in branch if _words(each)]
    return Conversation(
        id=str(value.get("conversation_id") or value.get("id") or ""),
        messages=messages,
        title=str(value.get("title") or ""),
        left_out=len(everything) - len(messages),
    )


def _branch(tree: Mapping[str, Any], leaf: object) -> list[Mapping[str, Any]]:
    """From the root to the leaf; the leaf that was reached last if none is named. A cycle ends it."""
    at = leaf if leaf in tree else _latest_leaf(tree)
    nodes: dict[str, Mapping[str, Any]] = {}
    while isinstance(at, str) and at in tree and at not in nodes:
        nodes[at] = tree[at]
        at = tree[at].get("parent")
    return [node for node in reversed(nodes.values()) if isinstance(node.get("message"), Mapping)]


def _latest_leaf(tree: Mapping[str, Any]) -> str | None:
    leaves = [name for name, node in tree.items() if not node.get("children")]
    return max(leaves, key=lambda name: (tree[name].get("message") or {}).get("create_time") or 0, default=None)


def _has_words(node: Mapping[str, Any]) -> bool:
    return isinstance(node.get("message"), Mapping) and bool(_words(node["message"]))


def _words(said: Mapping[str, Any]) -> str:
    if (said.get("metadata") or {}).get("is_visually_hidden_from_conversation"):
        return ""
    content = said.get("content") or {}
    parts = content.get("parts")
    values = parts if isinstance(parts, list) else [content]
    return "\n".join(filter(None, map(_part_words, values))).strip("\n")


def _part_words(part: object) -> str:
    if isinstance(part, str):
        return part if part.strip() else ""
    if not isinstance(part, Mapping):
        return ""
    return next((part[name] for name in _TEXT_FIELDS if isinstance(part.get(name), str)), "")


def _read(said: Mapping[str, Any]) -> dict[str, Any]:
    author, metadata = said.get("author") or {}, said.get("metadata") or {}
    return message(
        str(said["id"]),
        str(author.get("role") or "user"),
        _words(said),
        said.get("create_time"),
        str(author.get("name") or ""),
        model=metadata.get("model_slug"),
    )
