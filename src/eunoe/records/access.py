"""How often memories are recalled: counted in memory, written in batches, so that a reader never waits for a write."""

import time
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final

from eunoe.errors import StoreError
from eunoe.model.arguments import utc_now
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.records.reading import find_records
from eunoe.store.contract import Store
from eunoe.store.tables import AccessCount

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
            with self._store.writing(_TIMEOUT_SECONDS):
                self._store.add_access(counts)
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
        with self._store.reading():
            records = find_records(self._store, scope, ids)
            counts = self._store.load(AccessCount, seq=[record.seq for record in records])
        by_seq = {count.seq: count for count in counts}
        return {record.id: by_seq.get(record.seq) for record in records}
