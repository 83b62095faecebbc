"""What language models take: counted in memory, added to the store's totals now and then."""

from collections.abc import Callable, Sequence
from threading import Lock

from eunoe.model.report import Usage
from eunoe.store.contract import Store
from eunoe.store.tables import UsageRecord


class UsageLog:
    """Writes down what calls took since the last time. What cannot be written waits for the next."""

    def __init__(self, store: Store, drain: Callable[[], Sequence[Usage]]) -> None:
        self._store = store
        self._drain = drain
        self._unsaved: list[Usage] = []
        self._lock = Lock()

    def save(self) -> None:
        with self._lock:
            self._unsaved += self._drain()
            if self._unsaved:
                with self._store.writing():
                    self._store.add_usage(list(map(_record, self._unsaved)))
                self._unsaved = []


def total_usage(store: Store) -> tuple[Usage, ...]:
    """What has been taken so far, by operation and model."""
    return tuple(Usage(*record[:6], record.micros / 1e6, record.cost) for record in store.load(UsageRecord))


def _record(usage: Usage) -> UsageRecord:
    counts = (usage.calls, usage.failures, usage.input_tokens, usage.output_tokens)
    return UsageRecord(usage.operation, usage.model, *counts, int(usage.seconds * 1e6), usage.cost)
