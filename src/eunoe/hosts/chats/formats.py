"""Conversations as ChatGPT, Claude, LangChain, OpenAI and most others write them, read into one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
_ROLES: Final = {"human": "user", "ai": "assistant", "function": "tool"}
_CONVERSATION_NAMES: Final = ("conversation_id", "session_id", "thread_id", "session")
_PERSON_NAMES: Final = ("user_id", "user")
_TIME_NAMES: Final = ("time", "timestamp", "created_at", "create_time")


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
        times = [parse_time(message["time"]) for message in self.messages if message.get("time") is not None]
        return min(times, default=None)

    def cleaned(self, problems: Problems) -> Conversation:
        """It as it can be stored. Messages that cannot be are problems."""
        messages = []
        for number, each in enumerate(self.messages, 1):
            with problems.catch(f"{self.place}, message {number}"):
                parse_message(each)
                messages.append(each)
        person, title = replace_surrogates(self.person), replace_surrogates(self.title)
        return replace(self, id=_short_id(self.id), messages=messages, person=person, title=title)


def is_chatgpt(value: object) -> bool:
    """Whether it is a conversation of ChatGPT's export, where the messages are a tree."""
    return isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping)


def read_chatgpt(value: Mapping[str, Any], name: str = "") -> Conversation:
    """The versions that the user saw last; what was edited away or made anew is counted."""
    tree: Mapping[str, Any] = value["mapping"]
    at = value.get("current_node")
    if at not in tree:  # the leaf that was reached last
        leaves = [name for name, node in tree.items() if not node.get("children")]
        at = max(leaves, key=lambda name: (tree[name].get("message") or {}).get("create_time") or 0, default=None)
    branch: dict[str, Mapping[str, Any]] = {}
    while isinstance(at, str) and at in tree and at not in branch:  # a cycle ends it
        branch[at] = tree[at]
        at = tree[at].get("parent")
    messages = []
    for node in reversed(branch.values()):
        said = node.get("message")
        if isinstance(said, Mapping) and (words := _chatgpt_words(said)):
            author, metadata = said.get("author") or {}, said.get("metadata") or {}
            role, speaker = str(author.get("role") or "user"), str(author.get("name") or "")
            model = metadata.get("model_slug")
            messages.append(_message(str(said["id"]), role, words, said.get("create_time"), speaker, model=model))
    everything = [node["message"] for node in tree.values() if isinstance(node.get("message"), Mapping)]
    return Conversation(
        id=str(value.get("conversation_id") or value.get("id") or ""),
        messages=messages,
        title=str(value.get("title") or ""),
        left_out=sum(bool(_chatgpt_words(said)) for said in everything) - len(messages),
    )


def _chatgpt_words(said: Mapping[str, Any]) -> str:
    if (said.get("metadata") or {}).get("is_visually_hidden_from_conversation"):
        return ""
    content = said.get("content") or {}
    words = []
    for part in content["parts"] if isinstance(content.get("parts"), list) else [content]:
        if isinstance(part, Mapping):  # code, output of tools, transcripts
            part = next((part[name] for name in ("text", "result") if isinstance(part.get(name), str)), "")
        elif not isinstance(part, str) or not part.strip():
            continue
        words.append(part)
    return "\n".join(filter(None, words)).strip("\n")


def is_claude(value: object) -> bool:
    """Whether it is a conversation of Claude's export, where the messages are a list."""
    return isinstance(value, Mapping) and isinstance(value.get("chat_messages"), list)


def read_claude(value: Mapping[str, Any], name: str = "") -> Conversation:
    messages = []
    for said in value["chat_messages"]:
        blocks = said.get("content") if isinstance(said.get("content"), list) else []
        texts = [each.get("text") for each in blocks if isinstance(each, Mapping) and each.get("type") == "text"]
        words = [text for text in texts if isinstance(text, str)] or [str(said.get("text") or "")]
        attachments = said.get("attachments") or []
        words += [each["extracted_content"] for each in attachments if isinstance(each.get("extracted_content"), str)]
        if text := "\n".join(text for text in words if text.strip()):
            sender = str(said.get("sender") or "user")
            files = [each["file_name"] for each in attachments if each.get("file_name")]
            role = "user" if sender == "human" else sender
            messages.append(_message(str(said["uuid"]), role, text, said.get("created_at"), files=files))
    return Conversation(
        id=str(value.get("uuid") or ""),
        messages=messages,
        person=str((value.get("account") or {}).get("uuid") or ""),
        title=str(value.get("name") or ""),
    )


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
    return _to_conversation(id, value["messages"], _first(value, _PERSON_NAMES), _first(value, ("title", "name")))


def group_messages(values: Iterable[Mapping[str, Any]], name: str) -> list[Conversation]:
    """Messages that stand one after the other, by the conversation and the person that they name."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for value in values:
        place = _first(value, _CONVERSATION_NAMES) or name, _first(value, _PERSON_NAMES)
        groups.setdefault(place, []).append(value)
    return [_to_conversation(id, messages, person) for (id, person), messages in groups.items()]


def _to_conversation(id: str, values: Sequence[Mapping[str, Any]], person: str = "", title: str = "") -> Conversation:
    messages = [read_message(value, f"{id}#{number}") for number, value in enumerate(values)]
    return Conversation(id, [each for each in messages if each["text"].strip()], person, title)


def read_message(value: Mapping[str, Any], id: str, time: object = None) -> dict[str, Any]:
    """One message. Without an id of its own it has the one given, which must be the same in every run."""
    fields = value["data"] if isinstance(value.get("data"), Mapping) else value
    role = str(value.get("role") or value.get("type") or fields.get("role") or "")
    said = next((fields[name] for name in _TIME_NAMES if fields.get(name)), time)
    speaker = _first(fields, ("speaker", "name"))
    words = words_of(fields.get("content", fields.get("text")))
    return _message(str(fields.get("id") or id), _ROLES.get(role, role), words, said, speaker)


def words_of(content: object) -> str:
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def _first(value: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((str(value[name]) for name in names if isinstance(value.get(name), str | int)), "")


def _message(id: str, role: str, text: str, time: object = None, speaker: str = "", **metadata: Any) -> dict[str, Any]:
    given = {"time": time, "speaker": speaker, "metadata": {key: value for key, value in metadata.items() if value}}
    said = {"role": role, "text": text, **{key: value for key, value in given.items() if value}}
    return {"id": _short_id(id), **_without_surrogates(said)}


def _short_id(id: str) -> str:
    """An id as a scope can have it: one that is too long, or cannot be shown, becomes a fingerprint of itself."""
    text = replace_surrogates(id)
    is_fit = len(text) <= _MAX_ID_CHARACTERS and text.isprintable() and text == text.strip()
    return text if is_fit else f"chat-{fingerprint(text).hex()}"


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return list(map(_without_surrogates, value))
    return {key: _without_surrogates(each) for key, each in value.items()} if isinstance(value, dict) else value
