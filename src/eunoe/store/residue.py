"""What deleted texts leave behind in a file, byte for byte."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

_HEAD = 8
_PROBE = 48
_BLOCK = 1 << 22


def texts_in_file(path: Path, texts: Iterable[str]) -> set[str]:
    """The texts whose opening bytes stand in the file. A long text is known by its beginning: the rest of it may
    lie on other pages."""
    probes: dict[int, list[tuple[bytes, str]]] = defaultdict(list)
    for text in texts:
        probe = text.encode()[:_PROBE]
        if len(probe) >= _HEAD:
            probes[int.from_bytes(probe[:_HEAD], "little")].append((probe, text))
    if not probes or not path.exists():
        return set()
    return {text for window in _windows(path) for text in _found(window, probes)}


def _windows(path: Path) -> Iterator[bytes]:
    rest = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            window = rest + block
            yield window
            rest = window[-_PROBE:]


def _found(window: bytes, probes: dict[int, list[tuple[bytes, str]]]) -> Iterator[str]:
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
