"""Kept indexes: a stream index as rows of the store, so that the next process need not read every text anew.

One is used only if it is exactly the index of what the store holds: made by the same code from the same records. What
changed since comes from the store as it does for an index in memory. Whoever deletes a record deletes it in the same
step. In doubt it is built anew.
"""

import json
import logging
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import Stemmer
from numpy.typing import NDArray

from eunoe.errors import StoreError
from eunoe.index.graph import EntityGraph
from eunoe.index.stream import StreamIndex
from eunoe.index.tables import Arrays, prefixed, unprefixed
from eunoe.store.contract import Reading, RowMark, Store, Writing
from eunoe.store.schema import KeptIndexPart, StreamState

MIN_ROWS: Final = 500
"""A smaller index is built in less time than one notices."""
_PACKAGE: Final = Path(__file__).parent.parent
_READERS: Final = ("index", "text")
"""Rooms whose code and word lists decide what an index holds."""
_ALIGNMENT: Final = 64
"""An array starts at a multiple of so many bytes."""
_PART_BYTES: Final = 1 << 20
_WRITE_SECONDS: Final = 1.0
"""How long it waits for others who write: it is kept for their convenience."""
_MARK_VALUES: Final = 5
"""How many numbers a row mark has."""
_log = logging.getLogger("eunoe")


class KeptIndex(NamedTuple):
    """An index as it was kept, and the number of the model that made its vectors."""

    stream_index: StreamIndex
    model: int | None


Stamp = Mapping[str, Any]
"""What is said about an index: of which stream and model it is, who made it, and where its arrays are."""
Lender = Callable[[], AbstractContextManager[KeptIndex]]
"""Lends an index; nobody changes it meanwhile."""


class KeptIndexes:
    """The kept indexes of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(self, store: Reading, stream: StreamState) -> KeptIndex | None:
        """Return the kept index of a stream, of its version or an earlier one; None where there is none to rely on."""
        try:
            parts = [row.data for row in store.load(KeptIndexPart, stream=stream.id)]
            stamp: Stamp = json.loads(parts[0]) if parts else {}
            if not _fits(store, stamp, stream):
                return None
            arrays = _read_arrays(stamp, memoryview(bytearray().join(parts[1:])))
            version, model = stamp["version"], stamp["model"][1]
            if not _is_of_rows(arrays["marks"], version, store.row_marks(stream.id, model)) or store.noticed(stream.id):
                return None
            return _parse_index(stamp, arrays)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, StoreError) as error:
            _log.warning("the kept index of %s cannot be used, and is made anew: %s", stream.scope, error)
            return None

    def save(self, stream: int, lend: Lender) -> bool:
        """Keep the index of a stream, if it is of the stream's version; return whether it is kept.

        The index is lent only while its arrays are copied. What cannot be written is let be.
        """
        try:
            copied = self._store.read((), partial(self._copy, stream, lend))
            return copied is not None and self._store.write(
                (), partial(_write, stream, *copied), timeout=_WRITE_SECONDS
            )
        except (StoreError, MemoryError, ValueError, TypeError, OverflowError) as error:
            _log.info("the index of stream %s is not kept: %s", stream, error)
            return False

    def _copy(self, stream: int, lend: Lender, store: Reading) -> tuple[Stamp, bytes] | None:
        state = next(iter(store.streams(ids=[stream])), None)
        with lend() as (index, model):
            if state is None or index.version != state.version or index.unfinished:
                return None
            stamp = _stamp(store, state)
            if [index.model, model] != stamp["model"][:2]:
                return None
            rows = store.row_marks(stream, model)
            if len(rows) != index.count or self._store.lost_vectors or store.noticed(stream):
                return None  # something is damaged, and an index that is made anew may hold more
            arrays = prefixed("index", index.state()) | {"marks": _mark_array(rows)}
            if index.graph is not None:
                arrays |= prefixed("graph", index.graph.state())
        return _format_arrays(stamp, arrays)


def _write(stream: int, stamp: Stamp, content: bytes, store: Writing) -> bool:
    """Put an index in the place of the one before, unless something of it was deleted meanwhile."""
    if store.removed(stream, stamp["version"]):
        return False
    parts = [content[start : start + _PART_BYTES] for start in range(0, len(content), _PART_BYTES)]
    rows = enumerate([json.dumps(stamp).encode(), *parts])
    store.drop(KeptIndexPart, stream=stream)
    store.save([KeptIndexPart(stream, number, data) for number, data in rows])
    return True


def _fits(store: Reading, stamp: Stamp, stream: StreamState) -> bool:
    known = stamp.get("version")
    is_known = isinstance(known, int) and 0 < known <= stream.version
    return is_known and {**stamp, "version": 0, "arrays": 0} == {**_stamp(store, stream), "version": 0, "arrays": 0}


def _stamp(store: Reading, stream: StreamState) -> dict[str, Any]:
    name = store.get_value("model") or ""
    number, dimensions = store.model(name) or (None, 0)
    return {
        "reader": reader_digest(),
        "stream": stream.id,
        "scope": stream.scope.text,
        "version": stream.version,
        "model": [name, number, dimensions],
    }


def _parse_index(stamp: Stamp, arrays: Arrays) -> KeptIndex:
    name, model, _ = stamp["model"]
    index = StreamIndex.of(unprefixed("index", arrays), stamp["version"], name)
    if graph := unprefixed("graph", arrays):
        index.graph = EntityGraph.of(graph, stamp["version"])
    return KeptIndex(index, model)


def _mark_array(rows: Sequence[RowMark]) -> NDArray[np.int64]:
    """Row marks as an array, in the order of the numbers of records."""
    return np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, _MARK_VALUES)


def _is_of_rows(kept: NDArray[Any], version: int, rows: Sequence[RowMark]) -> bool:
    """Whether the rows of an index are those of the store, but for what changed since."""
    marks = _mark_array(rows)
    is_older = marks[:, 1] <= version
    same, changed = marks[is_older], marks[~is_older, 0]
    is_same = np.isin(kept[:, 0], same[:, 0])
    return np.array_equal(kept[is_same], same) and set(kept[~is_same, 0].tolist()) <= set(changed.tolist())


@cache
def reader_digest() -> str:
    """What the code and the words are known by that indexes are made with: another one may make others."""
    digest = 0
    for path in sorted(path for room in _READERS for path in (_PACKAGE / room).rglob("*")):
        if path.suffix in (".py", ".txt", ".json"):
            digest = crc32(path.read_bytes(), crc32(path.name.encode(), digest))
    return f"{digest:08x} {unicodedata.unidata_version} {Stemmer.version()} {sys.byteorder}"


def _format_arrays(stamp: Stamp, arrays: Arrays) -> tuple[Stamp, bytes]:
    """Arrays one after the other, each at a multiple of the alignment, and a stamp that says where they are."""
    places, content, place = {}, list[bytes](), 0
    for name, array in arrays.items():
        places[name] = [place, array.dtype.str, list(array.shape)]
        data = array.tobytes()
        room = -len(data) % _ALIGNMENT
        content += [data, bytes(room)]
        place += len(data) + room
    return {**stamp, "arrays": places}, b"".join(content)


def _read_arrays(stamp: Stamp, content: memoryview) -> Arrays:
    places: Mapping[str, Any] = stamp["arrays"]
    return {name: _read_array(content, *place) for name, place in places.items()}


def _read_array(content: memoryview, start: int, dtype: str, shape: Sequence[int]) -> NDArray[Any]:
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return np.frombuffer(content[start : start + size], np.dtype(dtype)).reshape(shape)
