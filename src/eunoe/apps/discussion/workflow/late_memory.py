"""A memory whose store is made when something is first written."""

from __future__ import annotations

from collections.abc import Callable

from eunoe.memory import Memory


class LateMemory:
    """Reads as empty until something is to be written, so that a workflow that only reads makes no store."""

    def __init__(self, empty: Memory, create: Callable[[], Memory]) -> None:
        self.memory = empty.restricted(rights=["read"])
        self._create: Callable[[], Memory] | None = create

    def make(self) -> None:
        """Make the store, unless that is done."""
        if self._create:
            self.memory, self._create = self._create(), None
