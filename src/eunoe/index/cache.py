"""Stream indexes at hand: brought up to date from the store before every use, the oldest put away for room."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eunoe.index.graph import Graph
from eunoe.index.stream import Entry, StreamIndex
from eunoe.model.graph import PassageGraph
from eunoe.model.scope import Scope
from eunoe.store.contract import IndexRow, Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import PassageGraphRecord, StreamState
from eunoe.text.analyzer import clear_word_caches
from eunoe.text.entities import EntityExtractor

DEFAULT_CACHE_BYTES = 512 * 1024 * 1024


@dataclass(slots=True)
class _Slot:
    model: int | None = None
    index: StreamIndex = field(default_factory=StreamIndex)
    nbytes: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)


class IndexCache:
    """An LRU of stream indexes, bounded by their bytes. What it holds is derived: dropping it loses nothing."""

    def __init__(
        self, store: Store, limit: int = DEFAULT_CACHE_BYTES, extractor: EntityExtractor | None = None
    ) -> None:
        self._store = store
        self._limit = limit
        self._extractor = extractor
        self._slots: OrderedDict[int, _Slot] = OrderedDict()
        self._lock = threading.Lock()
        self._bytes = 0

    @contextmanager
    def borrow(
        self, scopes: Sequence[Scope], graph: bool = False, metadata: bool = False
    ) -> Iterator[list[tuple[Scope, StreamIndex]]]:
        """The indexes of these scopes as of now, with their graphs and metadata if asked for; a scope that holds
        nothing is left out."""
        with self._store.reading(), ExitStack() as locks:
            streams = [(scope, stream) for scope in scopes if (stream := self._store.stream(scope))]
            slots = {stream.id: self._slot(stream.id) for _, stream in streams}
            for number in sorted(slots):  # one order for all, so that two borrowers cannot block each other
                locks.enter_context(slots[number].lock)
            for _, stream in streams:
                self._refresh(slots[stream.id], stream)
                if graph:
                    self._link(slots[stream.id], stream)
                if metadata and slots[stream.id].index.metadata is None:
                    slots[stream.id].index.metadata = self._read_metadata(ItemQuery(stream.id, described=True))
                    self._weigh(stream.id, slots[stream.id])
            yield [(scope, slots[stream.id].index) for scope, stream in streams]

    def drop(self, stream: int) -> None:
        with self._lock:
            self._discard(stream)

    def forget(self, streams: Sequence[int]) -> None:
        """Drops the indexes of streams that lost something, and every word kept for quicker reading.

        A graph is not made anew: what was lost is taken out of it.
        """
        for stream in streams:
            with self._lock:
                slot = self._slots.get(stream)
            if slot is None or slot.index.graph is None:
                self.drop(stream)
                continue
            with self._store.reading(), slot.lock:
                self._start_anew(slot, stream)
                self._weigh(stream, slot)
        clear_word_caches()

    def holds(self, stream: int, seqs: Sequence[int]) -> bool:
        """Whether a cached index still has one of these rows."""
        with self._lock:
            slot = self._slots.get(stream)
        if slot is None:
            return False
        index = slot.index
        return any(index.row(seq) is not None or (index.graph is not None and index.graph.holds(seq)) for seq in seqs)

    @property
    def streams(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        return self._bytes

    def _model(self) -> tuple[str, int | None, int]:
        """Name, number and the length of its vectors."""
        name = self._store.get_value("model") or ""
        return name, *(self._store.model(name) or (None, 0))

    def _slot(self, stream: int) -> _Slot:
        with self._lock:
            slot = self._slots.get(stream)
            if slot is None:
                slot = self._slots[stream] = _Slot()
            self._slots.move_to_end(stream)
            return slot

    def _refresh(self, slot: _Slot, stream: StreamState) -> None:
        since = slot.index.version
        # A snapshot taken just before another thread's refresh may be older than the index: newer is fine.
        if since >= stream.version:
            return
        name, model, length = self._model()
        if model != slot.model:
            # A change of model moves every stream on, so that it is seen here.
            self._start_anew(slot, stream.id)
            slot.model, since = model, 0
        if since and self._store.removed(stream.id, since):
            # Terms of forgotten texts would stay in the vocabulary, so the index is made anew without them.
            self._start_anew(slot, stream.id)
            since = 0
            clear_word_caches()
        entries = _entries(self._store.index_rows(stream.id, since, slot.model), length)
        slot.index.apply(entries, (), stream.version)
        slot.index.model = name
        if slot.index.metadata is not None:
            slot.index.metadata |= self._read_metadata(ItemQuery(seqs=[entry.seq for entry in entries]))
        if slot.index.graph is not None:
            self._grow(slot.index, slot.index.graph, entries, stream.version)
        self._weigh(stream.id, slot)

    def _read_metadata(self, query: ItemQuery) -> dict[int, Mapping[str, Any]]:
        return {record.seq: record.metadata for record in self._store.select(query)}

    def _start_anew(self, slot: _Slot, stream: int) -> None:
        """An empty index, with the graph as it was but for what is no longer there."""
        graph = slot.index.graph
        slot.index = StreamIndex()
        if graph is not None:
            graph.apply((), self._store.removed(stream, graph.version))
            slot.index.graph = graph

    def _link(self, slot: _Slot, stream: StreamState) -> None:
        """Makes the graph of an index that has none."""
        if slot.index.graph is None:
            entries = _entries(self._store.index_rows(stream.id, 0, None))
            self._grow(slot.index, Graph(self._extractor), entries, stream.version)
            self._weigh(stream.id, slot)

    def _grow(self, index: StreamIndex, graph: Graph, entries: Sequence[Entry], version: int) -> None:
        """Takes entries into a graph. One that could not be finished, since an extractor failed, is made anew next
        time."""
        index.graph = None
        stored = self._store.load(PassageGraphRecord, seq=[entry.seq for entry in entries])
        readings = {record.seq: PassageGraph.of(record.data) for record in stored}
        graph.apply(((entry.seq, entry.text) for entry in entries), version=version, readings=readings)
        index.graph = graph

    def _weigh(self, stream: int, slot: _Slot) -> None:
        """Counts a changed index anew and puts the longest unused ones away until the rest fits."""
        with self._lock:
            if self._slots.get(stream) is not slot:
                return
            self._bytes += slot.index.nbytes - slot.nbytes
            slot.nbytes = slot.index.nbytes
            while self._bytes > self._limit and len(self._slots) > 1:
                self._discard(next(iter(self._slots)))

    def _discard(self, stream: int) -> None:
        slot = self._slots.pop(stream, None)
        self._bytes -= slot.nbytes if slot else 0


def _entries(rows: Sequence[IndexRow], length: int = 0) -> list[Entry]:
    if not rows:
        return []
    of: dict[str, Any] = dict(zip(IndexRow._fields, zip(*rows, strict=True), strict=True))
    texts = zip(of["text"], of["caption"], strict=True)
    columns = (
        of["seq"],
        of["id"],
        of["kind"],
        [f"{text}\n{caption}" if caption else text for text, caption in texts],
        _seconds(of["time"]),
        of["session"],
        of["speaker"],
        of["role"],
        of["label"],
        _names(of["people"]),
        _names(of["files"]),
        _seconds(of["valid_from"]),
        _seconds(of["valid_to"]),
        _seconds(of["recorded"]),
        _seconds(of["retired"]),
        _vectors(of["vector"], length),
        of["pinned"],
    )
    return list(map(Entry._make, zip(*columns, strict=True)))


def _vectors(column: Sequence[bytes | None], length: int) -> list[NDArray[np.float32] | None]:
    """Those of all rows, read in one go; a long text has a matrix of them. What is no vector is missing."""
    width = 2 * length
    data = [vector for vector in column if vector and not len(vector) % width]
    if not data:
        return [None] * len(column)
    flat = np.frombuffer(b"".join(data), dtype="<f2").astype(np.float32).reshape(-1, length)
    counts = [len(vector) // width for vector in data]
    found = iter(flat if len(flat) == len(data) else np.split(flat, np.cumsum(counts)[:-1]))
    return [next(found) if vector and not len(vector) % width else None for vector in column]


def _names(column: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(json.loads(names)) if names else () for names in column]


def _seconds(column: Sequence[int | None]) -> list[float | None]:
    return [None if moment is None else moment / 1e6 for moment in column]
