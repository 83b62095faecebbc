"""JSON documents in a file, in a zip archive or in a folder, one at a time."""

from __future__ import annotations

import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError
from eunoe.hosts.common import Problems

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


class Document(NamedTuple):
    """A JSON value and where it stands."""

    place: str
    value: Any


def read_documents(path: Path, problems: Problems) -> Iterator[Document]:
    """The elements of an array, or the values that stand one after the other, as in JSON Lines.

    A list among them is a conversation.
    """
    for name, text in _texts(path):
        for place, value in _split(name, text, problems):
            yield Document(place, {"messages": value} if isinstance(value, list) else value)


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
            yield part.filename, _decode(part.filename, _unpack(path, archive, part))


def _unpack(path: Path, archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bytes:
    is_bomb = part.file_size > max(_BOMB_BYTES, _BOMB_RATIO * part.compress_size)
    if is_bomb or part.file_size > _MAX_BYTES:
        size = f"{part.file_size >> 20:,} MB"
        raise InputError(f"{part.filename} in {path} would take {size}: if you trust it, unpack it and name the file")
    try:
        return archive.read(part)
    except _DAMAGE as error:
        raise InputError(f"{part.filename} in {path} is damaged or locked: {error}") from None


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
            problems.add(f"{name}:{line}", _reason(error, is_last=bool(array)))
            place = len(text) if array else _next_line(text, start.end())
            array = None
        else:
            yield Document(f"{name}:{line}", value)
    if array:
        problems.add(name, "the file was cut off: its closing bracket is missing")


def _reason(error: json.JSONDecodeError | RecursionError, is_last: bool) -> str:
    reason = f"not JSON: {error.msg}" if isinstance(error, json.JSONDecodeError) else "not JSON: too deep"
    return f"{reason}; the file cannot be read from here on" if is_last else reason


def _next_line(text: str, place: int) -> int:
    start = _LINE_START.search(text, place)
    return start.end() if start else len(text)


def _parse_number(digits: str) -> int | float:
    """One that Python would not read, for its length, is infinite."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_DECODER: Final = json.JSONDecoder(parse_int=_parse_number)
