"""How often memories are recalled: counted in memory, written in batches, so that a reader never waits for a write."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final

from eunoe.errors import StoreError
from eunoe.model.result import Hit
from eunoe.model.time import micros, now
from eunoe.store.books import Use
from eunoe.store.contract import Row, Store

_BATCH: Final = 256
_MOST: Final = 10_000
_PAUSE: Final = 60.0
_PATIENCE: Final = 1.0
"""Seconds that counts wait for another writer: whoever asked waits with them."""


class Uses:
    """Counts of one process that still have to be written. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[int, Use] = {}
        self._lock = Lock()
        self._rest_until = 0.0

    def __len__(self) -> int:
        """How many memories have counts that are not written yet."""
        return len(self._waiting)

    def note(self, hits: Iterable[Hit]) -> None:
        """Counts what was recalled. A hit that was not read from the store has no row to count on."""
        moment = micros(now())
        rows = [hit._row for hit in hits]
        seen = {row.seq: Use(1, moment) for row in rows if isinstance(row, Row)}
        with self._lock:
            self._add(seen)

    def due(self) -> bool:
        """Whether it is time to write: enough is waiting, and the last attempt did not just fail."""
        return len(self._waiting) >= _BATCH and time.monotonic() >= self._rest_until

    def save(self) -> None:
        """Writes the counts down. A store that cannot be written leaves them waiting."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
        if not taken:
            return
        try:
            with self._store.writing(_PATIENCE):
                self._store.books.touch(taken)
        except StoreError:
            self._rest_until = time.monotonic() + _PAUSE
            with self._lock:
                self._add(taken)

    def _add(self, uses: Mapping[int, Use]) -> None:
        """Beyond the most that may wait, memories not counted yet are left out: a count is no reason to grow."""
        for seq, use in uses.items():
            known = self._waiting.get(seq)
            if known:
                self._waiting[seq] = Use(known.times + use.times, max(known.last, use.last))
            elif len(self._waiting) < _MOST:
                self._waiting[seq] = use
