"""Read a database file past SQLite without taking its locks away.

POSIX drops every lock a process has on a file as soon as it closes any handle of that file, SQLite's locks too; another
process would then take the store for unused and delete its log. So a handle stays open until the last store of this
process on the same file is closed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

FileKey = tuple[int, int]
"""The device and the inode of a file."""

_BLOCK_BYTES: Final = 1 << 22
"""A whole number of pages, whatever their size."""


@dataclass(slots=True)
class _Handle:
    stores: int = 0
    file: BinaryIO | None = None


_lock = threading.Lock()
_handles: dict[FileKey, _Handle] = {}


def file_key(path: Path) -> FileKey:
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino


def hold(path: Path) -> FileKey:
    """Note that a store on this file is open."""
    key = file_key(path)
    with _lock:
        _handles.setdefault(key, _Handle()).stores += 1
    return key


def release(key: FileKey) -> None:
    with _lock:
        handle = _handles[key]
        handle.stores -= 1
        if not handle.stores:
            del _handles[key]
            if handle.file:
                handle.file.close()


def read_blocks(key: FileKey, path: Path) -> Iterator[bytes]:
    """Read a held file, in blocks of whole pages."""
    start = 0
    while block := _read_block(key, path, start):
        yield block
        start += len(block)


def _read_block(key: FileKey, path: Path, start: int) -> bytes:
    with _lock:
        handle = _handles[key]
        if handle.file is None:
            handle.file = path.open("rb", buffering=0)
        handle.file.seek(start)
        return handle.file.read(_BLOCK_BYTES)
