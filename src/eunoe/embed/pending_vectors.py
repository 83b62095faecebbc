"""Vectors that are still to be made: after the reply, by the recall that first needs them, or at the end."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from eunoe.embed.store_embedder import BATCH_SIZE, Progress, StoreEmbedder
from eunoe.errors import EmbedderError, StoreError
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.records.insertion import VectorBatch, VectorKey
from eunoe.store.contract import ItemQuery, Reading, Store, Writing, streams_of

_MAX_DEFERRED_TEXTS: Final = 32
"""A write of more texts waits for its vectors: it is an import, and quicker so."""
_MAX_BACKLOG: Final = 500
"""About a second's work for two cores if the texts are short; beyond it a write waits for its vectors again."""
_STEP_TEXTS: Final = 32
_STEP_CHARACTERS: Final = 16_000
"""What a slow embedder makes at a time: a recall that comes in between waits for no more than this."""
_LOOK_SECONDS: Final = 60.0
"""How often the store is searched for missing vectors that no write of this process told of."""
_MAX_AT_CLOSE: Final = 256
"""What closing makes. More is left to the next opening."""
_CLOSE_SECONDS: Final = 3.0
_MAX_TRIES: Final = 3
"""How often those are tried that can be made neither here nor elsewhere, though nothing says why."""
_MAX_FOR_RECALL: Final = 2 * _MAX_BACKLOG
"""What a recall makes. More comes from a mended failure or from another model, and is left to the background."""
_SURE_CHARACTERS: Final = 32_000
"""A few hundred short turns. A recall always makes them: what it finds must not depend on how busy a machine is."""
_HUGE_CHARACTERS: Final = 100_000
"""A longer text takes seconds to embed: neither a recall nor closing does it."""
_RECALL_SECONDS: Final = 1.0
"""How long a recall makes vectors beyond that, and how long it waits for others who make vectors or write."""


class PendingVectors:
    """Makes the vectors that a store still lacks. One thread at a time, so that nothing is made twice."""

    def __init__(self, store: Store, embedder: StoreEmbedder, waits_for_recall: bool = False) -> None:
        self._store = store
        self._embedder = embedder
        self._waits_for_recall = waits_for_recall
        """Whether the background makes none yet: a process that only writes loads no model."""
        self._answers = False
        """Whether this process recalls: then nobody holds up a recall with a large step."""
        self._backlog = 0
        self._next_look = 0.0
        """When the store is to be searched for missing vectors, by the monotonic clock."""
        self._claim = threading.Lock()
        self._turns = threading.Condition()
        self._is_making = False
        self._recalls_waiting = 0

    def defers(self, texts: int) -> bool:
        """Whether a write of so many texts need not wait for their vectors."""
        return self._embedder.is_slow and texts <= _MAX_DEFERRED_TEXTS and self._backlog <= _MAX_BACKLOG

    def embed(self, texts: Sequence[str], given: Mapping[VectorKey, Any] | None = None) -> VectorBatch:
        """Make vectors for texts about to be written; none yet if they are few and better made after the reply.

        `given` are vectors that the caller made; their texts need no others.
        """
        if given:
            self._embedder.follow_store()
            ready = self._embedder.take_vectors(given)
            return replace(ready, data={**self.embed(texts).data, **ready.data}) if texts else ready
        if not self.defers(len(texts)):
            return self._embedder.embed_now(texts)
        self._backlog += len(texts)
        return VectorBatch(self._embedder.name)

    def note_write(self, has_all_vectors: bool = False) -> None:
        """To be called after a write; one that has its vectors leaves nothing to look for."""
        if not has_all_vectors and (self._embedder.is_slow or self._embedder.error):
            self._next_look = 0.0

    def note_model_change(self) -> None:
        self._next_look = 0.0

    def claim(self) -> bool:
        """Whether there may be something to make and nobody is at it yet; who gets True makes a step, then releases."""
        is_due = not self._waits_for_recall and time.monotonic() >= self._next_look and self._can_make()
        return is_due and self._claim.acquire(blocking=False)

    def release(self) -> None:
        self._claim.release()

    def make_step(self, wait: bool = False, texts: int | None = None) -> int:
        """Make some of the missing vectors, of so many texts at most; return how many.

        Without `wait` it gives way to others who write.
        """
        is_slow = self._embedder.is_slow
        texts = texts or (_STEP_TEXTS if is_slow else BATCH_SIZE)
        with self._turn():
            # Before looking: what is written from here on says so itself.
            self._next_look = time.monotonic() + _LOOK_SECONDS
            records = self._pending(texts)
            if not records:
                self._backlog = 0
                return 0
            self._next_look = 0.0
            return self._make(_first_step(records, texts) if is_slow else records, None if wait else _RECALL_SECONDS)

    def complete(self, scopes: Sequence[Scope]) -> None:
        """Make what these scopes still lack, the newest first: what was just said is found by its meaning too.

        What fails is found by its words; what takes too long is left to the background.
        """
        self._waits_for_recall = False
        self._answers = True
        if not self._embedder.is_slow or not self._embedder.can_try or all(map(_is_huge, self._pending(2, scopes))):
            return
        self._next_look = 0.0
        end = time.monotonic() + _RECALL_SECONDS
        with self._turn(_RECALL_SECONDS), suppress(StoreError):
            records: Sequence[Record] = self._pending(_MAX_FOR_RECALL + 1, scopes)
            if len(records) > _MAX_FOR_RECALL:
                return
            records, made = [record for record in records if not _is_huge(record)], 0
            while records and self._embedder.can_try and (made < _SURE_CHARACTERS or time.monotonic() < end):
                step = _first_step(records, _STEP_TEXTS)
                self._make(step, _RECALL_SECONDS)
                records = records[len(step) :]
                made += sum(len(record.content) for record in step)

    def make_all(self, progress: Progress | None = None) -> int:
        """Make all missing vectors now; raise EmbedderError if the embedder fails."""
        embedder = self._embedder
        embedder.retry_now()
        if embedder.embedder is None:
            raise EmbedderError(embedder.error or "this store keeps no vectors: name a model to make them with")
        counts = self._store.read((), lambda store: store.counts())
        total, made = counts.pending, 0
        for count in self._steps(in_batches=True):
            made += count
            if progress:
                progress(min(made, total), total)
        if embedder.error:
            raise EmbedderError(f"{embedder.error}; {made} of {total} vectors were made, the rest still wait")
        if progress and made < total and self._first() is None:
            progress(total, total)  # the background or another process made the others
        return made

    def finish(self, end: float | None = None) -> bool:
        """Make all missing vectors that can be made now; return False if a moment of the monotonic clock came first."""
        steps = self._steps()
        while end is None or time.monotonic() < end:
            if next(steps, None) is None:
                return True
        return self._first() is None

    def finish_before_close(self) -> None:
        """Make those that were deferred, if they are few."""
        records = self._pending(_MAX_AT_CLOSE + 1) if self._embedder.is_slow and not self._waits_for_recall else []
        if records and len(records) <= _MAX_AT_CLOSE and not any(map(_is_huge, records)):
            self.finish(time.monotonic() + _CLOSE_SECONDS)

    def _steps(self, in_batches: bool = False) -> Iterator[int]:
        """Make missing vectors step by step, to the last that can be made now; yield how many each time. That may be
        none: another process was quicker, or the model changed. It goes on all the same. With `in_batches` the steps
        are as quick as can be, unless a recall may come in between."""
        before, tries = 0, 0
        while (first := self._first()) is not None:
            tries = tries + 1 if first == before else 0
            if tries == _MAX_TRIES:
                return
            before = first
            yield self.make_step(wait=True, texts=BATCH_SIZE if in_batches and not self._answers else None)

    def _first(self) -> int | None:
        """The number of the first record whose vector is missing and could be made now."""
        records = self._pending(1) if self._can_make() else []
        return records[0].seq if records else None

    def _can_make(self) -> bool:
        return self._embedder.embedder is not None and self._embedder.can_try

    def _pending(self, limit: int, scopes: Sequence[Scope] | None = None) -> list[Record]:
        """Records without a vector: of all streams, oldest first, or of these scopes, newest first."""
        store = self._store

        def find(store: Reading) -> list[Record]:
            if scopes is None:
                return store.select(ItemQuery(pending=True, limit=limit))
            streams = [stream.id for scope in scopes for stream in streams_of(store, scope)]
            return store.select(ItemQuery(streams=streams, pending=True, order="latest", limit=limit))

        return store.read(scopes or (), find)

    def _make(self, records: Sequence[Record], timeout: float | None) -> int:
        vectors = self._embedder.embed_now([record.content for record in records])
        return self._put(records, vectors, timeout) if vectors.data else 0

    def _put(self, records: Sequence[Record], vectors: VectorBatch, timeout: float | None) -> int:
        """Records may have gone or been embedded by another process since they were read, or the model changed."""

        def put(store: Writing) -> int:
            if store.get_value("model") != vectors.model:
                return 0
            model = store.create_model(vectors.model, vectors.dimensions)
            if model.dimensions != vectors.dimensions:
                return 0
            left = store.select(ItemQuery(seqs=[record.seq for record in records], pending=True))
            made = [record for record in left if record.content in vectors.data]
            versions = {stream: store.advance(stream).version for stream in {record.stream for record in made}}
            store.put_vectors(model.number, [(record.seq, vectors.data[record.content]) for record in made])
            store.update([record._replace(pending=False, version=versions[record.stream]) for record in made])
            return len(made)

        made = self._store.write((), put, timeout=timeout)
        self._backlog = max(0, self._backlog - made)
        return made

    @contextmanager
    def _turn(self, timeout: float | None = None) -> Iterator[None]:
        """One at a time. A recall goes first, and after its timeout without a turn: rather twice than late."""
        is_recall = timeout is not None
        with self._turns:
            self._recalls_waiting += is_recall
            try:
                is_alone = self._turns.wait_for(
                    lambda: not self._is_making and (is_recall or not self._recalls_waiting), timeout
                )
            finally:
                self._recalls_waiting -= is_recall
                self._turns.notify_all()
            self._is_making = True
        try:
            yield
        finally:
            if is_alone:
                with self._turns:
                    self._is_making = False
                    self._turns.notify_all()


def _is_huge(record: Record) -> bool:
    return len(record.content) > _HUGE_CHARACTERS


def _first_step(records: Sequence[Record], texts: int) -> Sequence[Record]:
    """The first of them, as many as are made at a time."""
    sizes = accumulate(len(record.content) for record in records[:texts])
    most = max(texts // _STEP_TEXTS, 1) * _STEP_CHARACTERS
    return records[: max(1, sum(size <= most for size in sizes))]
