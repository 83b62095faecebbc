"""What language models take: noted in memory, written to the store now and then, as totals and call by call."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final

from eunoe.errors import StoreError
from eunoe.model.result import ModelCall, Page, Usage
from eunoe.model.scope import Scope
from eunoe.records.cursors import parse_cursor, seal_number
from eunoe.store.contract import Store
from eunoe.store.tables import CallRecord, UsageRecord

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
                with self._store.writing():
                    self._store.add_usage(list(map(_record, self._unsaved)))
                    self._store.add_calls(list(map(_call_record, self._unsaved_calls)), self._max_calls)
                self._unsaved, self._unsaved_calls = [], []

    def calls(self, limit: int, after: str) -> Page[ModelCall]:
        """Return calls from a cursor on, the latest first."""
        with suppress(StoreError):  # only the latest would be missing
            self.save()
        store = self._store
        with store.reading():
            records = store.calls(limit + 1, parse_cursor(store, after))
            next_page = seal_number(store, records[limit - 1].number) if len(records) > limit else ""
        return Page(tuple(map(_call, records[:limit])), next_page)


def total_usage(store: Store) -> tuple[Usage, ...]:
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
