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
    """The places of the first rows of a column by their values. Rows are added at the end; any may be taken out, and
    has 0 in its place from then on, which is never looked up.

    >>> order, column = ColumnOrder(), np.array([7, 9, 7, 8])
    >>> [found.tolist() for found in order.find(column, np.array([7, 8]))]
    [[0, 2, 3], [0, 0, 1]]
    """

    def __init__(self) -> None:
        self._size = 0
        self._places = np.zeros(0, np.int32)
        self._values = np.zeros(0, np.int64)
        self._starts = np.zeros(0, np.int64)
        self._ends = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        return self._places.nbytes + self._values.nbytes + self._starts.nbytes + self._ends.nbytes

    def state(self) -> Arrays:
        """What it is made of, without the values that nothing has any more."""
        is_used = self._ends > self._starts
        bounds = {"values": self._values[is_used], "starts": self._starts[is_used], "ends": self._ends[is_used]}
        return {"places": self._places} | bounds

    @classmethod
    def of(cls, state: Arrays) -> ColumnOrder:
        order = cls()
        order._places, order._values = state["places"], state["values"]
        order._starts, order._ends = state["starts"], state["ends"]
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
        self._starts, self._ends = starts, np.append(starts[1:], len(column))

    def remove(self, column: NDArray[np.generic], span: slice) -> None:
        """Take out a span of places, before what stands there is changed to 0."""
        last = min(span.stop, self._size)
        values = column[span.start : last].astype(np.int64)
        numbers = np.searchsorted(self._values, values).tolist()
        for place, number in zip(range(span.start, last), numbers, strict=True):
            own = self._places[self._starts[number] : self._ends[number]]
            found = int(np.searchsorted(own, place))
            own[found:-1] = own[found + 1 :]
            self._ends[number] -= 1

    def find_each(self, column: NDArray[np.generic], wanted: NDArray[np.generic]) -> list[NDArray[np.int32]]:
        """The places of each of these values, each given once and none 0, in order. They are not to be written to."""
        self.update(column)
        values = wanted.astype(np.int64)
        which = np.searchsorted(self._values, values)
        is_known = np.searchsorted(self._values, values, side="right") > which
        known = np.append(self._starts, 0).take(which), np.append(self._ends, 0).take(which) * is_known
        found = [self._places[start:end] for start, end in zip(*(each.tolist() for each in known), strict=True)]
        return self._with_unsorted(column, wanted, found) if self._size < len(column) else found

    def find(self, column: NDArray[np.generic], wanted: NDArray[np.generic]) -> tuple[Longs, Longs]:
        """The places of these values, each given once and none 0, value by value and in order; and which each is."""
        found = self.find_each(column, wanted)
        places = np.concatenate((self._places[:0], *found)).astype(np.int64)
        return places, np.repeat(np.arange(len(found)), np.fromiter(map(len, found), np.int64, len(found)))

    def _with_unsorted(
        self, column: NDArray[np.generic], wanted: NDArray[np.generic], found: list[NDArray[np.int32]]
    ) -> list[NDArray[np.int32]]:
        rest = column[self._size :]
        late = np.isin(rest, wanted).nonzero()[0]
        if not len(late):
            return found
        values = rest.take(late)
        late = (late + self._size).astype(np.int32)
        return [np.append(own, late[values == value]) for own, value in zip(found, wanted, strict=True)]
