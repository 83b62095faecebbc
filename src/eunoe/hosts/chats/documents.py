"""JSON documents in a file, in a zip archive or in a folder, one at a time."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError

_NAMES: Final = ("conversations.json", "conversations-*.json")
"""The files of an export that hold conversations."""
_MAX_BYTES: Final = 4 << 30
_VALUE_START: Final = re.compile(r"[^\s,\[\]]")
_DECODER: Final = json.JSONDecoder()


class Document(NamedTuple):
    """A JSON value and where it stands."""

    place: str
    value: Any


def read_documents(path: Path) -> Iterator[Document]:
    """The elements of an array, or the values that stand one after the other, as in JSON Lines."""
    for name, text in _texts(path):
        yield from _split(name, text)


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
        yield path.name, _decode(path.name, path.read_bytes())


def _archive_texts(path: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(path) as archive:
        parts = [part for part in archive.infolist() if _is_wanted(Path(part.filename).name)]
        if not parts:
            raise InputError(f"{path} holds no conversations.json")
        for part in sorted(parts, key=lambda part: part.filename):
            if part.file_size > _MAX_BYTES:
                raise InputError(f"{part.filename} in {path} is larger than 4 GB: unpack it and name the file")
            yield part.filename, _decode(part.filename, archive.read(part))


def _is_wanted(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in _NAMES)


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is no text in UTF-8 (byte {error.start})") from None


def _split(name: str, text: str) -> Iterator[Document]:
    place, line, counted = 0, 1, 0
    while start := _VALUE_START.search(text, place):
        line += text.count("\n", counted, start.start())
        counted = start.start()
        try:
            value, place = _DECODER.raw_decode(text, start.start())
        except (json.JSONDecodeError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "too deep"
            raise InputError(f"{name}, line {line}: not JSON: {reason}") from None
        yield Document(f"{name}:{line}", value)
