"""Which program wrote a file, found by looking into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.hosts.chats.chatgpt import is_chatgpt, read_chatgpt
from eunoe.hosts.chats.claude import is_claude, read_claude
from eunoe.hosts.chats.conversation import Conversation, clean_conversation
from eunoe.hosts.chats.databases import find_table, is_database, read_table
from eunoe.hosts.chats.documents import Document, read_documents
from eunoe.hosts.chats.plain import group_messages, is_conversation, is_message, read_conversation
from eunoe.hosts.common import ODD_DATA, Problems
from eunoe.model.arguments import check_path

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
    """A file with chats."""

    path: Path
    format: str
    read: Callable[[Problems], Iterator[Conversation]]

    def conversations(self, problems: Problems | None = None) -> Iterator[Conversation]:
        """Read the file from the start. What cannot be read is added to the problems, and the rest comes."""
        noted = Problems() if problems is None else problems
        for conversation in self.read(noted):
            yield clean_conversation(conversation, noted)


def open_chats(path: str | Path) -> ChatFile:
    """Find out what wrote a file, archive or folder. Raise InputError if it is none of `FORMATS`."""
    place = Path(check_path(path, "path"))
    if not place.exists():
        raise InputError(f"{place} is not there")
    if not place.is_file() and not place.is_dir():
        raise InputError(f"{place} is neither a file nor a folder")
    if is_database(place):
        table = find_table(place)
        return ChatFile(place, table.format, lambda problems: read_table(place, table, problems))
    format, read = _recognise(place)
    return ChatFile(place, format, lambda problems: read(_documents(place, problems), problems))


Reader = Callable[[Iterator[Document], Problems], Iterator[Conversation]]


def _recognise(path: Path) -> tuple[str, Reader]:
    """By the first document that is known."""
    problems, first = Problems(), None
    for document in _documents(path, problems):
        if kind := _kind(document.value, path.stem):
            return kind
        first = first or document
    if first:
        raise InputError(f"{first.place} is no chat that is known: {', '.join(FORMATS)}")
    raise InputError(next(iter(problems.lines), f"{path} holds nothing"))


def _kind(value: Any, name: str) -> tuple[str, Reader] | None:
    if is_chatgpt(value):
        return "ChatGPT's export", lambda documents, problems: _read_each(documents, is_chatgpt, read_chatgpt, problems)
    if is_claude(value):
        return "Claude's export", lambda documents, problems: _read_each(documents, is_claude, read_claude, problems)
    if is_message(value):
        format = "LangChain's file history" if isinstance(value.get("data"), Mapping) else "JSON Lines"
        return format, lambda documents, problems: iter(group_messages(_messages(documents, problems), name))
    if is_conversation(value):
        return "JSON Lines", lambda documents, problems: _read_conversations(documents, name, problems)
    return None


def _documents(path: Path, problems: Problems) -> Iterator[Document]:
    """Those of a list of conversations that stands in an object, too."""
    for document in read_documents(path, problems):
        inner = document.value.get("conversations") if isinstance(document.value, Mapping) else None
        values = inner if isinstance(inner, list) else [document.value]
        yield from (Document(document.place, value) for value in values)


def _read_each(
    documents: Iterable[Document],
    is_known: Callable[[object], bool],
    read: Callable[[Any], Conversation],
    problems: Problems,
) -> Iterator[Conversation]:
    for document in documents:
        conversation = _read(document, read, problems) if is_known(document.value) else None
        if conversation and conversation.id:
            yield conversation
        elif conversation:
            problems.add(document.place, "the conversation has no id")
        elif not is_known(document.value):
            problems.add(document.place, "not a conversation like the others")


def _read(document: Document, read: Callable[[Any], Conversation], problems: Problems) -> Conversation | None:
    try:
        return read(document.value)
    except ODD_DATA as error:
        problems.add(document.place, f"the conversation cannot be read ({type(error).__name__})")
        return None


def _messages(documents: Iterable[Document], problems: Problems) -> Iterator[Mapping[str, Any]]:
    for document in documents:
        if is_message(document.value):
            yield document.value
        else:
            problems.add(document.place, "not a message like the others")


def _read_conversations(documents: Iterable[Document], name: str, problems: Problems) -> Iterator[Conversation]:
    for number, document in enumerate(documents, 1):
        if is_conversation(document.value):
            yield read_conversation(document.value, f"{name}#{number}")
        else:
            problems.add(document.place, "not a conversation like the others")
