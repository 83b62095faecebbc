"""The order of a column: where each value stands. A look-up costs what it finds, not what the column holds."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Arrays

Longs = NDArray[np.int64]

_MAX_UNSORTED_SHARE: Final = 4
"""A column is sorted anew when more than a quarter of it came after the last time,"""
_MAX_UNSORTED_ROWS: Final = 10_000
"""and more than so many rows: to look through these takes no longer than to look a value up."""


class ColumnOrder:
    """The places of the first rows of a column by their values. Rows are added at the end; any may be changed to 0,
    which is never looked up, but never to another value.

    >>> order = ColumnOrder()
    >>> [found.tolist() for found in order.find(np.array([7, 9, 7, 8]), np.array([7, 8]))]
    [[0, 2, 3], [0, 0, 1]]
    """

    def __init__(self) -> None:
        self._size = 0
        self._places = np.zeros(0, np.int32)
        self._values = np.zeros(0, np.int64)
        self._starts = np.zeros(1, np.int64)

    @property
    def nbytes(self) -> int:
        return self._places.nbytes + self._values.nbytes + self._starts.nbytes

    def state(self) -> Arrays:
        return {"places": self._places, "values": self._values, "starts": self._starts}

    @classmethod
    def of(cls, state: Arrays) -> ColumnOrder:
        order = cls()
        order._places, order._values, order._starts = state["places"], state["values"], state["starts"]
        order._size = len(order._places)
        return order

    def update(self, column: NDArray[np.generic]) -> None:
        """Sort a column if too much of it is not sorted."""
        left = len(column) - self._size
        if left <= max(_MAX_UNSORTED_ROWS, len(column) // _MAX_UNSORTED_SHARE):
            return
        places = np.argsort(column, kind="stable")
        values = column[places].astype(np.int64)
        starts = np.flatnonzero(np.diff(values, prepend=-1))
        self._size, self._places, self._values = len(column), places.astype(np.int32), values[starts]
        self._starts = np.append(starts, len(column))

    def find(self, column: NDArray[np.generic], wanted: NDArray[np.generic]) -> tuple[Longs, Longs]:
        """The places of these values, each given once and none 0, value by value and in order; and which each is."""
        self.update(column)
        values = wanted.astype(np.int64)
        which = np.searchsorted(self._values, values)
        is_known = np.searchsorted(self._values, values, side="right") > which
        first, last = self._starts.take(which), self._starts.take(which + is_known)
        spans = [self._places[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]
        places, counts = np.concatenate((self._places[:0], *spans)).astype(np.int64), last - first
        owner = np.repeat(np.arange(len(values)), counts)
        is_current = column.take(places) == wanted.take(owner)
        places, owner = places[is_current], owner[is_current]
        return self._with_unsorted(column, wanted, places, owner) if self._size < len(column) else (places, owner)

    def _with_unsorted(
        self, column: NDArray[np.generic], wanted: NDArray[np.generic], places: Longs, owner: Longs
    ) -> tuple[Longs, Longs]:
        rest = column[self._size :]
        found = np.isin(rest, wanted).nonzero()[0]
        if not len(found):
            return places, owner
        ascending = np.argsort(wanted, kind="stable")
        late = ascending[np.searchsorted(wanted, rest.take(found), sorter=ascending)]
        places, owner = np.concatenate((places, found + self._size)), np.concatenate((owner, late))
        order = np.argsort(owner, kind="stable")
        return places[order], owner[order]
