"""Reading a database file past SQLite without taking its locks away.

POSIX drops every lock a process has on a file as soon as it closes any handle of that file, SQLite's locks too; another
process would then take the store for unused and delete its log. So a handle stays open until the last store of this
process on the same file is closed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import BinaryIO

Key = tuple[int, int]

_BLOCK = 1 << 22


@dataclass(slots=True)
class _Held:
    stores: int = 0
    file: BinaryIO | None = None


_lock = threading.Lock()
_held: dict[Key, _Held] = {}


def key_of(path: Path) -> Key | None:
    """Which file has this name now, if any."""
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def hold(path: Path) -> Key:
    """Says that a store on this file is open."""
    key = key_of(path)
    if key is None:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(path))
    with _lock:
        _held.setdefault(key, _Held()).stores += 1
    return key


def release(key: Key) -> None:
    with _lock:
        held = _held[key]
        held.stores -= 1
        if not held.stores:
            del _held[key]
            if held.file:
                held.file.close()


def blocks(key: Key, path: Path) -> Iterator[bytes]:
    """The bytes of a held file, in blocks of whole pages."""
    start = 0
    while block := _read(key, path, start):
        yield block
        start += len(block)


def _read(key: Key, path: Path, start: int) -> bytes:
    with _lock:
        held = _held[key]
        if held.file is None:
            held.file = path.open("rb", buffering=0)
        held.file.seek(start)
        return held.file.read(_BLOCK)
