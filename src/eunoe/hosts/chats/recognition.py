"""Which program wrote a file, found by looking into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.hosts.chats.chatgpt import is_chatgpt, read_chatgpt
from eunoe.hosts.chats.claude import is_claude, read_claude
from eunoe.hosts.chats.conversation import Conversation
from eunoe.hosts.chats.databases import find_table, is_database, read_table
from eunoe.hosts.chats.documents import Document, read_documents
from eunoe.hosts.chats.plain import group_messages, is_conversation, is_message, read_conversation
from eunoe.hosts.problems import ODD_DATA
from eunoe.model.validation import check_path

FORMATS: Final = (
    "ChatGPT's export",
    "Claude's export",
    "LangChain's file history",
    "LangChain's SQL history",
    "LangGraph checkpoints",
    "OpenAI Agents SDK",
    "JSON Lines",
)


@dataclass(frozen=True, slots=True)
class ChatFile:
    """A file with chats. `conversations` reads it from the start each time."""

    path: Path
    format: str
    conversations: Callable[[], Iterator[Conversation]]


def open_chats(path: str | Path) -> ChatFile:
    """Find out what wrote a file, archive or folder. Raise InputError if it is none of `FORMATS`."""
    place = Path(check_path(path, "path"))
    if not place.exists():
        raise InputError(f"{place} is not there")
    if is_database(place):
        table = find_table(place)
        return ChatFile(place, table.format, lambda: read_table(place, table))
    first = next(_documents(place), None)
    if first is None:
        raise InputError(f"{place} holds nothing")
    format, read = _recognise(place, first)
    return ChatFile(place, format, lambda: read(_documents(place)))


Reader = Callable[[Iterator[Document]], Iterator[Conversation]]


def _recognise(path: Path, first: Document) -> tuple[str, Reader]:
    if is_chatgpt(first.value):
        return "ChatGPT's export", lambda documents: _read_each(documents, is_chatgpt, read_chatgpt)
    if is_claude(first.value):
        return "Claude's export", lambda documents: _read_each(documents, is_claude, read_claude)
    if is_message(first.value):
        is_langchain = isinstance(first.value.get("data"), Mapping)
        format = "LangChain's file history" if is_langchain else "JSON Lines"
        return format, lambda documents: iter(group_messages(_messages(documents), path.stem))
    if is_conversation(first.value):
        return "JSON Lines", lambda documents: _read_conversations(documents, path.stem)
    raise InputError(f"{first.place} is no chat that is known: {', '.join(FORMATS)}")


def _documents(path: Path) -> Iterator[Document]:
    """Those of a list of conversations that stands in an object, too."""
    documents = read_documents(path)
    first = next(documents, None)
    if first is None:
        return
    inner = first.value.get("conversations") if isinstance(first.value, Mapping) else None
    if isinstance(inner, list):
        yield from (Document(first.place, value) for value in inner)
    else:
        yield first
    yield from documents


def _read_each(
    documents: Iterator[Document], is_known: Callable[[object], bool], read: Callable[[Any], Conversation]
) -> Iterator[Conversation]:
    for document in documents:
        if not is_known(document.value):
            raise InputError(f"{document.place}: not a conversation like the first one")
        yield _named(_read(document, read), document.place)


def _read(document: Document, read: Callable[[Any], Conversation]) -> Conversation:
    try:
        return read(document.value)
    except ODD_DATA as error:
        raise InputError(f"{document.place}: the conversation cannot be read ({type(error).__name__})") from error


def _named(conversation: Conversation, place: str) -> Conversation:
    if not conversation.id:
        raise InputError(f"{place}: the conversation has no id")
    return conversation


def _messages(documents: Iterator[Document]) -> Iterator[Mapping[str, Any]]:
    for document in documents:
        if not is_message(document.value):
            raise InputError(f"{document.place}: not a message like the first one")
        yield document.value


def _read_conversations(documents: Iterator[Document], name: str) -> Iterator[Conversation]:
    for number, document in enumerate(chain(documents), 1):
        if not is_conversation(document.value):
            raise InputError(f"{document.place}: not a conversation like the first one")
        yield read_conversation(document.value, f"{name}#{number}")
