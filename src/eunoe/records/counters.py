"""What is counted: recalls of memories, calls of language models, and how a store stands.

Counts are kept in memory and written in batches, so that a reader never waits for a write.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final

from eunoe.errors import StoreError
from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.atom import Bounds
from eunoe.model.result import Hit, ModelCall, Page, Status, Usage
from eunoe.model.scope import Scope
from eunoe.records.reading import find_records, parse_cursor, seal_number
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import AccessCount, CallRecord, UsageRecord
from eunoe.text.languages import name_language

_BATCH_SIZE: Final = 256
_MAX_UNSAVED: Final = 10_000
"""Beyond it, memories not counted yet are left out: a count is no reason to grow."""
_PAUSE_SECONDS: Final = 60.0
"""After a store could not be written."""
_TIMEOUT_SECONDS: Final = 1.0
"""How long counts wait for another writer: whoever asked waits with them."""


class AccessLog:
    """Access counts of one process that still have to be written. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaved: dict[int, AccessCount] = {}
        self._lock = Lock()
        self._next_save = 0.0

    def __len__(self) -> int:
        """How many memories have counts that are not written yet."""
        return len(self._unsaved)

    def note(self, hits: Iterable[Hit]) -> None:
        """Count what was recalled. A hit that was not read from the store has no number to count under."""
        now = utc_now()
        self._add([AccessCount(hit.record.seq, 1, now) for hit in hits if hit.record.seq])

    def is_due(self) -> bool:
        """Whether it is time to write: enough is waiting, and the last attempt did not just fail."""
        return len(self._unsaved) >= _BATCH_SIZE and time.monotonic() >= self._next_save

    def save(self) -> None:
        """Write the counts down. A store that cannot be written leaves them waiting."""
        with self._lock:
            counts, self._unsaved = list(self._unsaved.values()), {}
        if not counts:
            return
        try:
            self._store.write((), lambda store: store.add_access(counts), timeout=_TIMEOUT_SECONDS)
        except StoreError:
            self._next_save = time.monotonic() + _PAUSE_SECONDS
            self._add(counts)

    def _add(self, counts: Sequence[AccessCount]) -> None:
        with self._lock:
            for seq, times, last in counts:
                known = self._unsaved.get(seq)
                if known:
                    self._unsaved[seq] = AccessCount(seq, known.times + times, max(known.last, last))
                elif len(self._unsaved) < _MAX_UNSAVED:
                    self._unsaved[seq] = AccessCount(seq, times, last)

    def counts(self, scope: Scope, ids: Sequence[str]) -> dict[str, AccessCount | None]:
        """Return how often these were recalled, by id; None for what never was."""
        self.save()

        def find(store: Reading) -> dict[str, AccessCount | None]:
            records = find_records(store, scope, ids)
            counts = {count.seq: count for count in store.load(AccessCount, seq=[record.seq for record in records])}
            return {record.id: counts.get(record.seq) for record in records}

        return self._store.read([scope], find)


_MICROS: Final = 1e6


class UsageLog:
    """Writes down what calls took since the last time. What cannot be written waits for the next."""

    def __init__(
        self,
        store: Store,
        drain: Callable[[], Sequence[Usage]],
        drain_calls: Callable[[], Sequence[ModelCall]],
        max_calls: int,
    ) -> None:
        self._store = store
        self._drain = drain
        self._drain_calls = drain_calls
        self._max_calls = max_calls
        self._unsaved: list[Usage] = []
        self._unsaved_calls: list[ModelCall] = []
        self._lock = Lock()

    def save(self) -> None:
        with self._lock:
            self._unsaved += self._drain()
            self._unsaved_calls = [*self._unsaved_calls, *self._drain_calls()][-self._max_calls :]
            if self._unsaved or self._unsaved_calls:
                self._store.write((), self._write)
                self._unsaved, self._unsaved_calls = [], []

    def _write(self, store: Writing) -> None:
        store.add_usage(list(map(_record, self._unsaved)))
        store.add_calls(list(map(_call_record, self._unsaved_calls)), self._max_calls)

    def calls(self, limit: int, after: str) -> Page[ModelCall]:
        """Return calls from a cursor on, the latest first."""
        with suppress(StoreError):  # only the latest would be missing
            self.save()

        def find(store: Reading) -> Page[ModelCall]:
            records = store.calls(limit + 1, parse_cursor(store, after))
            next_page = seal_number(store, records[limit - 1].number) if len(records) > limit else ""
            return Page(tuple(map(_call, records[:limit])), next_page)

        return self._store.read((), find)


def total_usage(store: Reading) -> tuple[Usage, ...]:
    """What has been taken so far, by operation and model."""
    return tuple(Usage(*record[:6], record.micros / _MICROS, record.cost) for record in store.load(UsageRecord))


def _record(usage: Usage) -> UsageRecord:
    counts = (usage.calls, usage.failures, usage.input_tokens, usage.output_tokens)
    return UsageRecord(usage.operation, usage.model, *counts, int(usage.seconds * _MICROS), usage.cost)


def _call_record(call: ModelCall) -> CallRecord:
    tokens, micros = (call.input_tokens, call.output_tokens), int(call.seconds * _MICROS)
    scope = call.scope.text if call.scope else ""
    return CallRecord(0, call.operation, call.model, scope, call.time, micros, *tokens, call.cost, call.error)


def _call(record: CallRecord) -> ModelCall:
    return ModelCall(
        operation=record.operation,
        model=record.model,
        time=record.time,
        scope=Scope.stored(record.scope) if record.scope else None,
        seconds=record.micros / _MICROS,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        cost=record.cost,
        error=record.error,
    )


_COUNTS: Final = (
    "retired",
    "tombstones",
    "bytes",
    "vectors",
    "due_messages",
    "jobs",
    "failing",
    "error",
    "revisions",
    "in_review",
)
"""Fields that a status takes over from the store's counts."""
_SAMPLE: Final = 100


def read_status(store: Reading, bounds: Bounds, embedder: str, llm: str) -> Status:
    """Count what is within the bounds. What only the whole store has, such as its path and size, is then left empty."""
    is_whole = not bounds.scopes
    counts = store.counts(None if is_whole else _stream_numbers(store, bounds))
    return Status(
        target=store.store.target if is_whole else "",
        schema=store.store.schema if is_whole else 0,
        scopes=counts.streams,
        messages=counts.kinds.get("message", 0),
        facts=counts.kinds.get("fact", 0),
        observations=counts.kinds.get("observation", 0),
        unembedded=counts.pending,
        **{name: getattr(counts, name) for name in _COUNTS},
        embedder=embedder,
        llm=llm,
        usage=total_usage(store) if is_whole else (),
        languages=_count_languages(store) if is_whole else {},
    )


def _count_languages(store: Reading) -> dict[str, int]:
    """The languages of the latest memories, most first: a sample, so that it costs the same in every store."""
    latest = ItemQuery(kinds=ATOM_KINDS, order="latest", limit=_SAMPLE, skip_damaged=True)
    records = store.select(latest) or store.select(ItemQuery(order="newest", limit=_SAMPLE, skip_damaged=True))
    names = Counter(name_language(record.text) or "unclear" for record in records)
    return dict(names.most_common())


def _stream_numbers(store: Reading, bounds: Bounds) -> list[int]:
    streams = store.iterate_streams(bounds.keys.get("tenant", ""))
    return [stream.id for stream in streams if bounds.covers(stream.scope)]
