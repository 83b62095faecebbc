"""What deleted texts leave behind, byte for byte."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

_HEAD = 8
_PROBE = 48
_BLOCK = 1 << 22
_TABLE_LEAF = 13
_ROW = re.compile(rb"[^\0]{6}")

Probes = dict[int, list[tuple[bytes, str]]]


def texts_in_blocks(blocks: Iterable[bytes], texts: Iterable[str]) -> set[str]:
    """The texts whose opening bytes stand in a file that is read in blocks. A long text is known by its beginning: the
    rest of it may lie on other pages."""
    return _search(_windows(blocks), texts)


def texts_in(values: Iterable[bytes], texts: Iterable[str]) -> set[str]:
    """The texts whose opening bytes stand in one of the values. One pass, however many texts are looked for."""
    return _search(_joined(values), texts)


def _search(windows: Iterable[bytes], texts: Iterable[str]) -> set[str]:
    probes: Probes = defaultdict(list)
    for text in texts:
        probe = text.encode()[:_PROBE]
        if len(probe) >= _HEAD:
            probes[int.from_bytes(probe[:_HEAD], "little")].append((probe, text))
    return {text for window in windows for text in _found(window, probes)} if probes else set()


def has_leftovers(blocks: Iterable[bytes], page_size: int) -> bool:
    """Whether a page of table rows has bytes of old rows where none should be.

    SQLite overwrites what it deletes, but not the copy that stays behind when it moves a row to another page.
    """
    pages = (block[start : start + page_size] for block in blocks for start in range(0, len(block), page_size))
    return any(_unclean(page) for page in pages)


def _unclean(page: bytes) -> bool:
    start = 100 if page.startswith(b"SQLite format 3") else 0
    if page[start] != _TABLE_LEAF:
        return False
    cells, content = int.from_bytes(page[start + 3 : start + 5]), int.from_bytes(page[start + 5 : start + 7])
    loose = page[start + 8 + 2 * cells : content]
    # Old pointers to rows and the heads of freed spans stay behind as well; they are short and say nothing.
    start = next((at for at in range(0, len(loose), 2) if not 0 < int.from_bytes(loose[at : at + 2]) < len(page)), 0)
    return _ROW.search(loose, start) is not None


def _windows(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        window = rest + block
        yield window
        rest = window[-_PROBE:]


def _joined(values: Iterable[bytes]) -> Iterator[bytes]:
    """Values in large blocks, apart from each other by a byte that no UTF-8 text holds."""
    parts: list[bytes] = []
    size = 0
    for value in values:
        parts.append(value)
        size += len(value)
        if size > _BLOCK:
            yield b"\xff".join(parts)
            parts, size = [], 0
    yield b"\xff".join(parts)


def _found(window: bytes, probes: Probes) -> Iterator[str]:
    import numpy as np

    heads = np.array(sorted(probes), dtype=np.uint64)
    for shift in range(_HEAD):
        count = (len(window) - shift) // _HEAD
        words = np.frombuffer(window, dtype="<u8", count=max(count, 0), offset=min(shift, len(window)))
        for place in np.flatnonzero(np.isin(words, heads)):
            start = shift + int(place) * _HEAD
            for probe, text in probes[int(words[place])]:
                if window.startswith(probe, start):
                    yield text
