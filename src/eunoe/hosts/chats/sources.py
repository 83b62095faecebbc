"""Files with chats: which program wrote one is found by looking into it, and its conversations come one at a time.

JSON documents stand in a file, in a zip archive or in a folder.
"""

from __future__ import annotations

import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError
from eunoe.hosts.chats.databases import find_table, is_database, read_table
from eunoe.hosts.chats.formats import (
    Conversation,
    group_messages,
    is_chatgpt,
    is_claude,
    is_conversation,
    is_message,
    read_chatgpt,
    read_claude,
    read_conversation,
)
from eunoe.hosts.common import ODD_DATA, Problems
from eunoe.model.arguments import check_path

_NAMES: Final = ("conversations.json", "conversations-*.json")
"""The files of an export that hold conversations."""
_MAX_BYTES: Final = 4 << 30
_BOMB_BYTES: Final = 64 << 20
_BOMB_RATIO: Final = 200
"""What is larger, and packed more tightly than any text is, is meant to fill the memory."""
_ARCHIVE_HEADER: Final = b"PK\x03\x04"
_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)
"""What an archive raises that is damaged, locked, or packed in a way that is not known."""
_VALUE_START: Final = re.compile(r"[^\s,]")
_LINE_START: Final = re.compile(r"\n(?=[\[{])")
_ARRAY_START: Final = re.compile(r"\s*\[")
_ARRAY_LINES: Final = re.compile(r"\s*\[[^\n]*\][^\S\n]*\n\s*\[")
_MAX_DIGITS: Final = 1000
FORMATS: Final = (
    "ChatGPT's export",
    "Claude's export",
    "LangChain's file history",
    "LangChain's SQL history",
    "LangGraph checkpoints",
    "OpenAI Agents SDK",
    "JSON Lines",
)


class Document(NamedTuple):
    """A JSON value and where it stands."""

    place: str
    value: Any


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
            yield conversation.cleaned(noted)


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
    looking = Problems()
    first = None
    for document in _documents(place, looking):  # by the first that is known
        for format, is_known, read in _KINDS:
            if is_known(document.value):
                return ChatFile(place, format, partial(_read_each, place, is_known, read))
        if is_message(document.value):
            format = "LangChain's file history" if isinstance(document.value.get("data"), Mapping) else "JSON Lines"
            return ChatFile(place, format, partial(_read_messages, place))
        first = first or document
    if first:
        raise InputError(f"{first.place} is no chat that is known: {', '.join(FORMATS)}")
    raise InputError(next(iter(looking.lines), f"{place} holds nothing"))


_KINDS: Final = (
    ("ChatGPT's export", is_chatgpt, read_chatgpt),
    ("Claude's export", is_claude, read_claude),
    ("JSON Lines", is_conversation, read_conversation),
)


def _documents(path: Path, problems: Problems) -> Iterator[Document]:
    """The elements of an array, or the values that stand one after the other, as in JSON Lines; those of a list of
    conversations that stands in an object, too. A list among them is a conversation.
    """
    for name, text in _texts(path):
        for place, value in _split(name, text, problems):
            inner = value.get("conversations") if isinstance(value, Mapping) else None
            for each in inner if isinstance(inner, list) else [value]:
                is_list = isinstance(each, list) and each is value
                yield Document(place, {"messages": each} if is_list else each)


def _read_each(
    path: Path, is_known: Callable[[object], bool], read: Callable[[Any, str], Conversation], problems: Problems
) -> Iterator[Conversation]:
    for number, (place, value) in enumerate(_documents(path, problems), 1):
        if not is_known(value):
            problems.add(place, "not a conversation like the others")
            continue
        try:
            conversation = read(value, f"{path.stem}#{number}")
        except ODD_DATA as error:
            problems.add(place, f"the conversation cannot be read ({type(error).__name__})")
            continue
        if conversation.id:
            yield conversation
        else:
            problems.add(place, "the conversation has no id")


def _read_messages(path: Path, problems: Problems) -> Iterator[Conversation]:
    messages = []
    for place, value in _documents(path, problems):
        if is_message(value):
            messages.append(value)
        else:
            problems.add(place, "not a message like the others")
    yield from group_messages(messages, path.stem)


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if _is_wanted(each.name))
        if not files:
            raise InputError(f"{path} has no conversations.json: name the folder of an export, or one file")
        for file in files:
            yield file.name, _decode(file.name, file.read_bytes())
    elif zipfile.is_zipfile(path):
        yield from _archive_texts(path)
    else:
        data = path.read_bytes()
        if data.startswith(_ARCHIVE_HEADER):
            raise InputError(f"{path} is a damaged archive: it was cut off, so fetch it again")
        yield path.name, _decode(path.name, data)


def _archive_texts(path: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(path) as archive:
        parts = [part for part in archive.infolist() if _is_wanted(Path(part.filename).name)]
        if not parts:
            raise InputError(f"{path} holds no conversations.json")
        for part in sorted(parts, key=lambda part: part.filename):
            is_bomb = part.file_size > max(_BOMB_BYTES, _BOMB_RATIO * part.compress_size)
            if is_bomb or part.file_size > _MAX_BYTES:
                size = f"{part.file_size >> 20:,} MB"
                advice = "if you trust it, unpack it and name the file"
                raise InputError(f"{part.filename} in {path} would take {size}: {advice}")
            try:
                data = archive.read(part)
            except _DAMAGE as error:
                raise InputError(f"{part.filename} in {path} is damaged or locked: {error}") from None
            yield part.filename, _decode(part.filename, data)


def _is_wanted(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in _NAMES)


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is no text in UTF-8 (byte {error.start})") from None


def _split(name: str, text: str, problems: Problems) -> Iterator[Document]:
    array = None if _ARRAY_LINES.match(text) else _ARRAY_START.match(text)
    place, line, counted = array.end() if array else 0, 1, 0
    while start := _VALUE_START.search(text, place):
        line += text.count("\n", counted, start.start())
        counted = start.start()
        if array and start[0] == "]":
            return
        try:
            value, place = _DECODER.raw_decode(text, start.start())
        except (json.JSONDecodeError, RecursionError) as error:
            reason = f"not JSON: {error.msg}" if isinstance(error, json.JSONDecodeError) else "not JSON: too deep"
            problems.add(f"{name}:{line}", f"{reason}; the file cannot be read from here on" if array else reason)
            following = None if array else _LINE_START.search(text, start.end())
            place, array = following.end() if following else len(text), None
        else:
            yield Document(f"{name}:{line}", value)
    if array:
        problems.add(name, "the file was cut off: its closing bracket is missing")


def _parse_number(digits: str) -> int | float:
    """One that Python would not read, for its length, is infinite."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_DECODER: Final = json.JSONDecoder(parse_int=_parse_number)
