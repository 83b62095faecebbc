"""The bytes of a database file: read past SQLite, and searched for what deleted texts leave behind.

POSIX drops every lock a process has on a file as soon as it closes any handle of that file, SQLite's locks too; another
process would then take the store for unused and delete its log. So a handle stays open until the last store of this
process on the same file is closed.
"""

import os
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from eunoe.errors import StoreBusyError

if sys.platform != "win32":
    import fcntl

_LOCK_BYTE: Final = 0x40000000 + 512
"""Behind those that SQLite locks, on the page that it keeps free for them."""
_POLL_SECONDS: Final = 0.01


@contextmanager
def lock_shared(file: BinaryIO, seconds: float) -> Iterator[None]:
    """Keep an open file from being replaced."""
    if sys.platform == "win32":  # it replaces no file that is open
        yield
        return
    with _lock(file, fcntl.LOCK_SH, seconds):
        yield


@contextmanager
def lock_alone(file: BinaryIO, seconds: float) -> Iterator[None]:
    """Keep every process from opening connections to an open file."""
    if sys.platform == "win32":
        yield
        return
    with _lock(file, fcntl.LOCK_EX, seconds):
        yield


if sys.platform != "win32":

    @contextmanager
    def _lock(file: BinaryIO, mode: int, seconds: float) -> Iterator[None]:
        deadline = time.monotonic() + seconds
        while not _try_lock(file, mode):
            if time.monotonic() > deadline:
                raise StoreBusyError(f"{file.name} is opened or replaced by another process: try again when it is done")
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, _LOCK_BYTE)

    def _try_lock(file: BinaryIO, mode: int) -> bool:
        try:
            fcntl.lockf(file, mode | fcntl.LOCK_NB, 1, _LOCK_BYTE)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            return False
        return True


FileKey = tuple[int, int]
"""The device and the inode of a file."""

BLOCK_BYTES: Final = 1 << 22
"""A whole number of pages, whatever their size."""
_WORD_BYTES: Final = 8
"""Compared at once; shorter texts are not searched for."""
_PROBE_BYTES: Final = 48
"""How much of a text must stand in one piece: the rest of a long one may lie on other pages."""
_INDEX_NODE, _TABLE_NODE, _INDEX_LEAF, _TABLE_LEAF = _TREE_PAGES = 2, 5, 10, 13
"""The first byte of a page of a b-tree. Any other page belongs to a long value, or to none."""
_MIN_PIECE_BYTES: Final = 4
"""Shorter ones stand by chance among any unused bytes."""
_ROW_BYTES: Final = re.compile(rb"[^\0]{6}")

Probes = dict[int, list[tuple[bytes, str | bytes]]]
"""The first bytes of the texts to find, by their first word as a number."""


@dataclass(slots=True)
class _Handle:
    file: BinaryIO
    stores: int = 0
    opener: threading.Lock = field(default_factory=threading.Lock)
    """Held by the thread that holds the file lock: the system gives that to a process, not to a thread."""


_handles_lock = threading.Lock()
_handles: dict[FileKey, _Handle] = {}


def hold(path: Path) -> FileKey:
    """Note that a store on this file is open."""
    with _handles_lock:
        key = file_key(os.stat(path))
        if key not in _handles:
            file = path.open("rb", buffering=0)
            key = file_key(os.fstat(file.fileno()))
            _handles[key] = _Handle(file)
        _handles[key].stores += 1
    return key


def release(key: FileKey) -> None:
    with _handles_lock:
        handle = _handles[key]
        handle.stores -= 1
        if not handle.stores:
            del _handles[key]
            handle.file.close()


@contextmanager
def in_place(key: FileKey, seconds: float) -> Iterator[None]:
    """Keep a held file from being replaced while a connection to it is opened."""
    with _handles_lock:
        handle = _handles[key]
    with handle.opener, lock_shared(handle.file, seconds):
        yield


def file_key(stat: os.stat_result) -> FileKey:
    return stat.st_dev, stat.st_ino


def is_held(key: FileKey) -> bool:
    """Whether a store on this file is open in this process."""
    return key in _handles


def file_stat(key: FileKey) -> os.stat_result:
    """What the system knows of a held file, whatever became of its name."""
    with _handles_lock:
        return os.fstat(_handles[key].file.fileno())


def read_start(key: FileKey, size: int) -> bytes:
    """Read the first bytes of a held file."""
    with _handles_lock:
        return os.pread(_handles[key].file.fileno(), size, 0)


def read_blocks(key: FileKey) -> Iterator[bytes]:
    """Read a held file, in blocks of whole pages."""
    start = 0
    while True:
        with _handles_lock:
            handle = _handles[key]
            handle.file.seek(start)
            block = handle.file.read(BLOCK_BYTES)
        if not block:
            return
        yield block
        start += len(block)


def read_file(path: Path) -> Iterator[bytes]:
    """Read a file that is not held, if it is there."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        yield from blocks_of(file)


def blocks_of(file: BinaryIO) -> Iterator[bytes]:
    """Read an open file to its end."""
    yield from iter(lambda: file.read(BLOCK_BYTES), b"")


def find_in_blocks(blocks: Iterable[bytes], texts: Iterable[str | bytes]) -> set[str | bytes]:
    """Return the texts whose first bytes stand in a file that is read in blocks."""
    return _find(_overlapping(blocks), texts)


def find_unused(blocks: Iterable[bytes], page_size: int, texts: Iterable[str | bytes]) -> set[str | bytes]:
    """Return the texts whose first bytes stand where a file keeps nothing, short ones too."""
    return {text for block in blocks for text in _find_unused(_pages(block, page_size), set(texts))}


def _find_unused(pages: Iterable[bytes], texts: set[str | bytes]) -> set[str | bytes]:
    unused = b"\xff".join(part for page in pages for part in _unused_parts(page))
    short = {text for text in texts if _MIN_PIECE_BYTES <= len(_bytes(text)) < _WORD_BYTES and _bytes(text) in unused}
    return short | _find([unused], texts)


def find_in_values(values: Iterable[bytes], texts: Iterable[str | bytes]) -> set[str | bytes]:
    """Return the texts whose first bytes stand in one of the values. One pass, however many texts are looked for."""
    return _find(_join(values), texts)


def has_leftovers(blocks: Iterable[bytes], page_size: int, deleted: Iterable[bytes] = ()) -> bool:
    """Whether bytes of old rows stand where none should be: of any old row on a page of table rows, of those that were
    deleted on a page of an index. Where it is not known what was deleted, any bytes count there too.

    SQLite overwrites what it deletes, but not the copy that stays behind when it moves a row to another page. On pages
    of indexes that happens all the time, and most of what stays is a copy of what is still there.
    """
    searched: set[str | bytes] = set(deleted)
    kinds = (_TABLE_LEAF,) if searched else _TREE_PAGES
    schema, count = set[int](), 0
    for block in blocks:
        pages = _pages(block, page_size)
        schema = schema or _schema_pages(pages[0])
        numbered = enumerate(pages, count + 1)
        with_rows = (page for number, page in numbered if page[_head(page)] in kinds and number not in schema)
        if any(map(_gap_has_row, with_rows)) or _find_unused(pages, searched):
            return True
        count += len(pages)
    return False


def _schema_pages(first: bytes) -> set[int]:
    """The numbers of the pages with the definitions of tables: the first one, and those that it leads to.

    No row of a table stands there, and VACUUM writes each definition twice. If the rest of the first copy counted,
    every `forget` would rebuild the file again.
    """
    head = _head(first)
    if first[head] != _TABLE_NODE:
        return {1}
    cells = int.from_bytes(first[head + 3 : head + 5])
    pointers = [int.from_bytes(first[at : at + 2]) for at in range(head + 12, head + 12 + 2 * cells, 2)]
    return {1, *(int.from_bytes(first[at : at + 4]) for at in (head + 8, *pointers))}


def _pages(block: bytes, page_size: int) -> list[bytes]:
    return [block[start : start + page_size] for start in range(0, len(block), page_size)]


def _head(page: bytes) -> int:
    """Where the head of a page begins: on the first one, after that of the file."""
    return 100 if page.startswith(b"SQLite format 3") else 0


def _gap(page: bytes) -> bytes:
    """What stands between the pointers to cells and the cells of a page."""
    head = _head(page)
    pointers = head + (12 if page[head] in (_INDEX_NODE, _TABLE_NODE) else 8)
    cells, content = int.from_bytes(page[head + 3 : head + 5]), int.from_bytes(page[head + 5 : head + 7])
    return page[pointers + 2 * cells : content or len(page)]


def _gap_has_row(page: bytes) -> bool:
    gap = _gap(page)
    # Old pointers to rows and the heads of freed spans stay behind as well; they are short and say nothing.
    start = next((at for at in range(0, len(gap), 2) if not 0 < int.from_bytes(gap[at : at + 2]) < len(page)), 0)
    return _ROW_BYTES.search(gap, start) is not None


def _unused_parts(page: bytes) -> Iterator[bytes]:
    """The parts of a page of a b-tree that hold no cell. Other pages hold long values or nothing: they count whole."""
    head = _head(page)
    if page[head] not in _TREE_PAGES:
        yield page
        return
    yield _gap(page)
    span = int.from_bytes(page[head + 1 : head + 3])
    while 0 < span <= len(page) - 4:
        following, size = int.from_bytes(page[span : span + 2]), int.from_bytes(page[span + 2 : span + 4])
        yield page[span + 4 : span + size]
        if following <= span:
            return
        span = following


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


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _find(windows: Iterable[bytes], texts: Iterable[str | bytes]) -> set[str | bytes]:
    probes: Probes = defaultdict(list)
    for text in texts:
        probe = _bytes(text)[:_PROBE_BYTES]
        if len(probe) >= _WORD_BYTES:
            probes[int.from_bytes(probe[:_WORD_BYTES], "little")].append((probe, text))
    return {text for window in windows for text in _find_in_window(window, probes)} if probes else set()


def _find_in_window(window: bytes, probes: Probes) -> Iterator[str | bytes]:
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
