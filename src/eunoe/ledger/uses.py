"""How often memories are recalled: counted in memory, written in batches, so that a reader never waits for a write."""

from __future__ import annotations

from collections.abc import Iterable

from eunoe.model.result import Hit
from eunoe.store.contract import Store


class Uses:
    """Counts of one process that still have to be written. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def note(self, hits: Iterable[Hit]) -> None:
        """Counts what was recalled."""

    def save(self) -> None:
        """Writes the counts down."""
