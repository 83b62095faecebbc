"""The bytes of a database file: read past SQLite, and searched for what deleted texts leave behind.

POSIX drops every lock a process has on a file as soon as it closes any handle of that file, SQLite's locks too; another
process would then take the store for unused and delete its log. So a handle stays open until the last store of this
process on the same file is closed.
"""

import os
import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

FileKey = tuple[int, int]
"""The device and the inode of a file."""

BLOCK_BYTES: Final = 1 << 22
"""A whole number of pages, whatever their size."""
_WORD_BYTES: Final = 8
"""Compared at once; shorter texts are not searched for."""
_PROBE_BYTES: Final = 48
"""How much of a text must stand in one piece: the rest of a long one may lie on other pages."""
_TABLE_LEAF: Final = 13
"""The first byte of a page that holds table rows."""
_ROW_BYTES: Final = re.compile(rb"[^\0]{6}")

Probes = dict[int, list[tuple[bytes, str]]]
"""The first bytes of the texts to find, by their first word as a number."""


@dataclass(slots=True)
class _Handle:
    file: BinaryIO
    stores: int = 0


_lock = threading.Lock()
_handles: dict[FileKey, _Handle] = {}


def hold(path: Path) -> FileKey:
    """Note that a store on this file is open."""
    with _lock:
        key = file_key(os.stat(path))
        if key not in _handles:
            file = path.open("rb", buffering=0)
            key = file_key(os.fstat(file.fileno()))
            _handles[key] = _Handle(file)
        _handles[key].stores += 1
    return key


def release(key: FileKey) -> None:
    with _lock:
        handle = _handles[key]
        handle.stores -= 1
        if not handle.stores:
            del _handles[key]
            handle.file.close()


def file_key(stat: os.stat_result) -> FileKey:
    return stat.st_dev, stat.st_ino


def is_held(key: FileKey) -> bool:
    """Whether a store on this file is open in this process."""
    return key in _handles


def file_stat(key: FileKey) -> os.stat_result:
    """What the system knows of a held file, whatever became of its name."""
    with _lock:
        return os.fstat(_handles[key].file.fileno())


def read_blocks(key: FileKey) -> Iterator[bytes]:
    """Read a held file, in blocks of whole pages."""
    start = 0
    while True:
        with _lock:
            handle = _handles[key]
            handle.file.seek(start)
            block = handle.file.read(BLOCK_BYTES)
        if not block:
            return
        yield block
        start += len(block)


def find_in_blocks(blocks: Iterable[bytes], texts: Iterable[str]) -> set[str]:
    """Return the texts whose first bytes stand in a file that is read in blocks."""
    return _find(_overlapping(blocks), texts)


def find_in_values(values: Iterable[bytes], texts: Iterable[str]) -> set[str]:
    """Return the texts whose first bytes stand in one of the values. One pass, however many texts are looked for."""
    return _find(_join(values), texts)


def has_leftovers(blocks: Iterable[bytes], page_size: int) -> bool:
    """Whether a page of table rows has bytes of old rows where none should be.

    SQLite overwrites what it deletes, but not the copy that stays behind when it moves a row to another page.
    """
    pages = (block[start : start + page_size] for block in blocks for start in range(0, len(block), page_size))
    return any(map(_page_has_leftovers, pages))


def _page_has_leftovers(page: bytes) -> bool:
    start = 100 if page.startswith(b"SQLite format 3") else 0
    if page[start] != _TABLE_LEAF:
        return False
    cells, content = int.from_bytes(page[start + 3 : start + 5]), int.from_bytes(page[start + 5 : start + 7])
    free = page[start + 8 + 2 * cells : content]
    # Old pointers to rows and the heads of freed spans stay behind as well; they are short and say nothing.
    start = next((at for at in range(0, len(free), 2) if not 0 < int.from_bytes(free[at : at + 2]) < len(page)), 0)
    return _ROW_BYTES.search(free, start) is not None


def _overlapping(blocks: Iterable[bytes]) -> Iterator[bytes]:
    end = b""
    for block in blocks:
        window = end + block
        yield window
        end = window[-_PROBE_BYTES:]


def _join(values: Iterable[bytes]) -> Iterator[bytes]:
    """Join values to large windows, apart from each other by a byte that no UTF-8 text holds."""
    parts: list[bytes] = []
    size = 0
    for value in values:
        parts.append(value)
        size += len(value)
        if size > BLOCK_BYTES:
            yield b"\xff".join(parts)
            parts, size = [], 0
    yield b"\xff".join(parts)


def _find(windows: Iterable[bytes], texts: Iterable[str]) -> set[str]:
    probes: Probes = defaultdict(list)
    for text in texts:
        probe = text.encode()[:_PROBE_BYTES]
        if len(probe) >= _WORD_BYTES:
            probes[int.from_bytes(probe[:_WORD_BYTES], "little")].append((probe, text))
    return {text for window in windows for text in _find_in_window(window, probes)} if probes else set()


def _find_in_window(window: bytes, probes: Probes) -> Iterator[str]:
    import numpy as np

    first_words = np.array(sorted(probes), dtype=np.uint64)
    for shift in range(_WORD_BYTES):
        count = (len(window) - shift) // _WORD_BYTES
        words = np.frombuffer(window, dtype="<u8", count=max(count, 0), offset=min(shift, len(window)))
        for place in np.flatnonzero(np.isin(words, first_words)):
            start = shift + int(place) * _WORD_BYTES
            for probe, text in probes[int(words[place])]:
                if window.startswith(probe, start):
                    yield text
