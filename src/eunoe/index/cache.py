"""The cache of stream indexes: each is brought up to date from the store before it is used."""

import json
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Any, Final

import numpy as np

from eunoe.index.graph import EntityGraph
from eunoe.index.kept_indexes import MIN_ROWS, KeptIndex, KeptIndexes
from eunoe.index.lexical import count_terms, pieces
from eunoe.index.stream import PIECE_CHARACTERS, TIMES, IndexEntry, StreamIndex
from eunoe.index.tables import Floats
from eunoe.model.result import PassageGraph
from eunoe.model.scope import Scope
from eunoe.store.contract import IndexRow, ItemQuery, R, Reading, Store, streams_of
from eunoe.store.schema import PassageGraphRecord, StreamState
from eunoe.text.analyzer import clear_word_caches
from eunoe.text.entities import EntityExtractor

DEFAULT_CACHE_BYTES: Final = 512 * 1024 * 1024
_MAX_UNKEPT: Final = 100
"""Records that may have changed since an index was kept: the next process reads these anew in a few milliseconds."""
_KEEP_SECONDS: Final = 60.0
"""Indexes are kept this often at most, and when the memory is closed."""
_PAUSE_SECONDS: Final = 5.0
"""Nor are they kept so soon after the beginning or after a forget: more is likely to follow, and it would wait."""
_MIN_GAPS: Final = 1024
"""An index is made anew when more of its rows, and more than half of them, are gaps."""


@dataclass(frozen=True, slots=True)
class HeldIndex:
    """An index that is lent."""

    scope: Scope
    index: StreamIndex
    owners: Mapping[int, Scope]
    """The scopes whose records it holds, by the numbers of their streams."""


@dataclass(slots=True)
class _Slot:
    """An index, of one stream or of all within a scope."""

    owners: dict[int, Scope] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    """Up to which version of each stream the index goes."""
    model: int | None = None
    index: StreamIndex = field(default_factory=StreamIndex)
    nbytes: int = 0
    is_new: bool = True
    """Whether nobody has looked for a kept index yet."""
    unkept: int | None = None
    """How many records changed since the index was kept; None where it is not kept as it is."""
    lock: threading.RLock = field(default_factory=threading.RLock)


_Key = int | str
"""The number of a stream, or the text of a scope with everything within."""


class IndexCache:
    """The stream indexes in memory, bounded by their bytes; the longest unused goes first.

    What it holds is derived: dropping it loses nothing.
    """

    def __init__(
        self,
        store: Store,
        limit: int | None = None,
        extractor: EntityExtractor | None = None,
        keep: bool = True,
    ) -> None:
        self._store = store
        # What another extractor would find in the same words is not known.
        self._kept = KeptIndexes(store) if keep and store.keeps_indexes and extractor is None else None
        self._keeping = threading.Lock()
        self._next_keep = time.monotonic() + _PAUSE_SECONDS
        self._has_unkept = False
        self._limit = limit or DEFAULT_CACHE_BYTES
        self._extractor = extractor
        self._slots: OrderedDict[_Key, _Slot] = OrderedDict()
        self._lock = threading.Lock()
        self._finishing = threading.Lock()
        self._has_unfinished = False
        self.nbytes = 0

    @property
    def streams(self) -> int:
        return len(self._slots)

    def read(
        self,
        scopes: Sequence[Scope],
        step: Callable[[Reading, list[HeldIndex]], R],
        *,
        graph: bool = False,
        metadata: bool = False,
    ) -> R:
        """Run a step that reads the store, with the indexes of these scopes as of the same moment, and with their
        graphs and metadata if asked for.

        A scope that holds nothing is left out. One that means everything within has one index of it all.
        """

        def run(store: Reading) -> R:
            asked = {scope: streams for scope in scopes if (streams := streams_of(store, scope))}
            # A stream that is alone has one index, however it is asked for.
            keys: dict[Scope, _Key] = {
                scope: streams[0].id if len(streams) == 1 else scope.text for scope, streams in asked.items()
            }
            with self._lock:
                slots = {key: self._slots.get(key) or _Slot() for key in keys.values()}
                for key, slot in slots.items():
                    self._slots[key] = slot
                    self._slots.move_to_end(key)
            with ExitStack() as locks:
                for key in sorted(slots, key=str):  # one order for all, so that two readers cannot block each other
                    locks.enter_context(slots[key].lock)
                for scope, streams in asked.items():
                    self._refresh(store, keys[scope], slots[keys[scope]], streams, graph, metadata)
                held = [HeldIndex(scope, slots[key].index, slots[key].owners) for scope, key in keys.items()]
                return step(store, held)

        return self._store.read(scopes, run)

    @property
    def has_unfinished(self) -> bool:
        """Whether a text may be indexed in part only. Asked after every verb, so no index is looked at."""
        return self._has_unfinished

    @property
    def unfinished(self) -> int:
        """How many huge texts are indexed in part."""
        with self._lock:
            return sum(len(slot.index.unfinished) for slot in self._slots.values())

    @property
    def is_keep_due(self) -> bool:
        """Whether it is time to keep an index. Asked after every verb, so no index is looked at."""
        return self._has_unkept and time.monotonic() >= self._next_keep

    def keep(self) -> None:
        """Keep the indexes that changed much since they were kept. One thread at a time does it."""
        if self._kept is None or not self._keeping.acquire(blocking=False):
            return
        try:
            self._has_unkept = False
            with self._lock:
                items = self._slots.items()
                slots = [(key, slot) for key, slot in items if isinstance(key, int) and _is_unkept(slot)]
            for stream, slot in slots:
                if not self._kept.save(stream, partial(_lend, slot)):
                    slot.unkept = None
        finally:
            self._next_keep = time.monotonic() + _KEEP_SECONDS
            self._keeping.release()

    def finish_texts(self, may_go_on: Callable[[], bool], patience: float | None = None) -> bool:
        """Index the rest of huge texts while `may_go_on` says so; return whether all are done. One thread at a time
        does it, others wait for their turn as long as their patience lasts. No index is held while a text is read."""
        if not self._finishing.acquire(timeout=-1 if patience is None else patience):
            return False
        try:
            self._has_unfinished = False  # before looking: an index that changes from here on says so itself
            while found := self._find_unfinished():
                if not self._finish_text(*found, may_go_on):
                    self._has_unfinished = True
                    return False
            return True
        finally:
            self._finishing.release()

    def _find_unfinished(self) -> tuple[_Key, _Slot, int] | None:
        with self._lock:
            slots = [(key, slot) for key, slot in self._slots.items() if slot.index.unfinished]
        for key, slot in slots:
            with slot.lock:
                if slot.index.unfinished:
                    return key, slot, next(iter(slot.index.unfinished))
        return None

    def _finish_text(self, key: _Key, slot: _Slot, seq: int, may_go_on: Callable[[], bool]) -> bool:
        with slot.lock:
            index, language = slot.index, slot.index.language_of(seq)
        records = self._store.read((), lambda store: store.select(ItemQuery(seqs=[seq])))
        text, counts = records[0].content if records else "", Counter[str]()
        for piece in pieces(text, PIECE_CHARACTERS):
            if not may_go_on():
                return False
            counts.update(count_terms(piece, language))
        with slot.lock:
            index.finish_text(seq, text, counts)
            self._measure(key, slot)
        with self._lock:
            is_current = self._slots.get(key) is slot and slot.index is index and seq in index.row_of
        if not is_current:  # it was dropped, perhaps because something in it was forgotten
            clear_word_caches()
        return True

    def rebuild(self, scopes: Sequence[Scope]) -> int:
        """Drop the indexes of these scopes and build them anew; return how many there are."""
        found = self._store.read(scopes, lambda store: [each for scope in scopes for each in streams_of(store, scope)])
        for stream in found:
            self.drop(stream.id)
        return self.read(scopes, lambda _, held: len(held))

    def drop(self, stream: int) -> None:
        """Drop the indexes that hold a stream's records."""
        with self._lock:
            for key in self._keys_of(stream):
                self.nbytes -= self._slots.pop(key).nbytes

    def _keys_of(self, stream: int) -> list[_Key]:
        return [key for key, slot in self._slots.items() if key == stream or stream in slot.owners]

    def forget(self, streams: Sequence[int]) -> None:
        """Take out of the indexes of streams what these lost, and drop every word kept for quicker reading."""
        for stream in streams:
            with self._lock:
                self._slots.setdefault(stream, _Slot())
                slots = [(key, self._slots[key]) for key in self._keys_of(stream)]
            for key, slot in slots:
                self._store.read((), partial(self._take_out, stream, key, slot))
        self._next_keep = max(self._next_keep, time.monotonic() + _PAUSE_SECONDS)
        clear_word_caches()

    def _take_out(self, stream: int, key: _Key, slot: _Slot, store: Reading) -> None:
        with slot.lock:
            states = store.streams(ids=[stream, *slot.owners])
            self._load(store, key, slot, states)
            if slot.index.version or slot.index.graph:
                self._apply_changes(store, slot, states)
                self._measure(key, slot)
                slot.unkept = None
            else:
                self.drop(stream)

    def holds(self, stream: int, seqs: Sequence[int]) -> bool:
        """Whether a cached index still has one of these records of a stream."""
        with self._lock:
            slots = [self._slots[key] for key in self._keys_of(stream)]
        indexes = [(slot.index, slot.index.graph, slot.index.metadata or {}) for slot in slots]
        return any(
            seq in index.row_of or seq in metadata or (graph is not None and graph.holds(seq))
            for index, graph, metadata in indexes
            for seq in seqs
        )

    def _refresh(
        self, store: Reading, key: _Key, slot: _Slot, streams: Sequence[StreamState], graph: bool, metadata: bool
    ) -> None:
        # A snapshot taken just before another thread's refresh may be older than the index: newer is fine.
        self._load(store, key, slot, streams)
        is_old = any(slot.versions.get(stream.id, 0) < stream.version for stream in streams)
        if is_old:
            self._apply_changes(store, slot, streams)
        lacks_graph = graph and slot.index.graph is None
        if lacks_graph:
            rows = [row for stream in streams for row in store.index_rows(stream.id, 0, None)]
            version = _whole_version(streams)
            self._grow_graph(store, slot.index, EntityGraph(self._extractor), _entries(rows), version)
            slot.unkept = None
        lacks_metadata = metadata and slot.index.metadata is None
        if lacks_metadata:
            slot.index.metadata = {}
            for stream in streams:
                self._read_metadata(store, slot.index, ItemQuery(stream.id, described=True, skip_damaged=True))
        if is_old or lacks_graph or lacks_metadata:
            # What was read from a snapshot older than the index lacks the latest: the next one applies it again.
            slot.versions |= {each.id: min(slot.versions.get(each.id, 0), each.version) for each in streams}
            slot.index.version = min(slot.index.version, _whole_version(streams))
            self._measure(key, slot)

    def _apply_changes(self, store: Reading, slot: _Slot, streams: Sequence[StreamState]) -> None:
        name = store.get_value("model") or ""
        model, dimensions = store.model(name) or (None, 0)
        is_used = slot.index.version or slot.index.graph is not None
        changed = [stream for stream in streams if slot.versions.get(stream.id, 0) < stream.version]
        known = [(each.id, slot.versions[each.id]) for each in changed if is_used and each.id in slot.versions]
        removed = [seq for stream, version in known for seq in store.removed(stream, version)]
        gaps = slot.index.rows - slot.index.count + len(removed)
        # A change of model raises the version of every stream, so that it is seen here.
        if is_used and (model != slot.model or gaps > max(_MIN_GAPS, slot.index.rows // 2)):
            self._start_anew(store, slot)
            changed = list(streams)
        elif removed:
            slot.index.remove(removed)
            if slot.index.graph is not None:
                slot.index.graph.apply((), removed)
            slot.unkept = None  # who removed them has dropped what was kept
        if removed:
            clear_word_caches()
        entries, version = list[IndexEntry](), _whole_version(streams)
        for stream in changed:
            rows = store.index_rows(stream.id, slot.versions.get(stream.id, 0), model)
            entries += _entries(rows, dimensions, stream.id if len(streams) > 1 else 0)
        slot.index.apply(entries, version=version)
        self._has_unfinished |= bool(slot.index.unfinished)
        slot.model, slot.index.model = model, name
        slot.versions |= {stream.id: stream.version for stream in changed}
        slot.owners |= {stream.id: stream.scope for stream in changed}
        slot.unkept = None if slot.unkept is None else slot.unkept + len(entries)
        if slot.index.metadata is not None:
            self._read_metadata(store, slot.index, ItemQuery(seqs=[entry.seq for entry in entries]))
        if slot.index.graph is not None:
            self._grow_graph(store, slot.index, slot.index.graph, entries, version)

    def _load(self, store: Reading, key: _Key, slot: _Slot, streams: Sequence[StreamState]) -> None:
        """Begin with the kept index of a stream, where there is one."""
        if (
            slot.is_new
            and isinstance(key, int)
            and self._kept is not None
            and (kept := self._kept.load(store, streams[0]))
        ):
            slot.index, slot.model = kept
            slot.unkept = 0
            slot.versions, slot.owners = {key: slot.index.version}, {key: streams[0].scope}
        slot.is_new = False

    def _start_anew(self, store: Reading, slot: _Slot) -> None:
        """Empty an index, but keep its graph without what is no longer in the store."""
        graph = slot.index.graph
        slot.index, slot.unkept = StreamIndex(), None
        if graph is not None and len(slot.versions) == 1:
            [stream] = slot.versions
            graph.apply((), store.removed(stream, graph.version))
            slot.index.graph = graph
        slot.versions.clear()

    def _read_metadata(self, store: Reading, index: StreamIndex, query: ItemQuery) -> None:
        assert index.metadata is not None
        for record in store.select(query):
            if record.metadata:
                index.metadata[record.seq] = record.metadata
            else:
                index.metadata.pop(record.seq, None)

    def _grow_graph(
        self, store: Reading, index: StreamIndex, graph: EntityGraph, entries: Sequence[IndexEntry], version: int
    ) -> None:
        """Take entries into a graph. One that an extractor broke off is made anew next time."""
        index.graph = None
        stored = store.load(PassageGraphRecord, seq=[entry.seq for entry in entries])
        passage_graphs = {record.seq: PassageGraph.of(record.data) for record in stored}
        texts = ((entry.seq, entry.text[:PIECE_CHARACTERS]) for entry in entries)
        graph.apply(texts, version=version, passage_graphs=passage_graphs)
        index.graph = graph

    def _measure(self, key: _Key, slot: _Slot) -> None:
        """Count the bytes of an index anew; drop the longest unused ones until the rest fits."""
        self._has_unkept |= self._kept is not None and _is_unkept(slot)
        nbytes = slot.index.nbytes
        with self._lock:
            if self._slots.get(key) is not slot:
                return
            self.nbytes += nbytes - slot.nbytes
            slot.nbytes = nbytes
            while self.nbytes > self._limit and len(self._slots) > 1:
                self.nbytes -= self._slots.popitem(last=False)[1].nbytes


def _whole_version(streams: Sequence[StreamState]) -> int:
    """Versions only rise, and streams stay: their sum tells whether anything changed."""
    return sum(stream.version for stream in streams)


def _is_unkept(slot: _Slot) -> bool:
    is_changed = slot.unkept is None or slot.unkept >= _MAX_UNKEPT
    return is_changed and slot.index.count >= MIN_ROWS and not slot.index.unfinished


@contextmanager
def _lend(slot: _Slot) -> Iterator[KeptIndex]:
    """Lend an index that is to be kept as it is now."""
    with slot.lock:
        slot.unkept = 0
        yield KeptIndex(slot.index, slot.model)


def _entries(rows: Sequence[IndexRow], dimensions: int = 0, stream: int = 0) -> list[IndexEntry]:
    if not rows:
        return []
    of: dict[str, Any] = dict(zip(IndexRow._fields, zip(*rows, strict=True), strict=True))
    texts = zip(of["text"], of["caption"], strict=True)
    of["text"] = [f"{text}\n{caption}" if caption else text for text, caption in texts]
    of["vector"] = _vectors(of["vector"], dimensions)
    for name in TIMES:
        of[name] = [None if micros is None else micros / 1e6 for micros in of[name]]
    for name in ("people", "files"):
        of[name] = [tuple(json.loads(names)) if names else () for names in of[name]]
    of["stream"] = repeat(stream, len(rows))
    return list(map(IndexEntry._make, zip(*(of[name] for name in IndexEntry._fields), strict=True)))


def _vectors(column: Sequence[bytes | None], dimensions: int) -> list[Floats | None]:
    """The vectors of all rows, read in one go; a long text has a matrix of them. What is no vector is missing."""
    width = 2 * dimensions
    data = [vector for vector in column if vector and not len(vector) % width]
    if not data:
        return [None] * len(column)
    flat = np.frombuffer(b"".join(data), dtype="<f2").astype(np.float32).reshape(-1, dimensions)
    counts = [len(vector) // width for vector in data]
    vectors = iter(flat if len(flat) == len(data) else np.split(flat, np.cumsum(counts)[:-1]))
    return [next(vectors) if vector and not len(vector) % width else None for vector in column]
