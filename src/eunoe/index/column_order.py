"""The order of a table by one column. To look a value up costs what is found, not what the table holds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Arrays, Table

Longs = NDArray[np.int64]

_MAX_UNSORTED_SHARE: Final = 4
"""A table is sorted anew when more than a quarter of it came after the last time,"""
_MAX_UNSORTED_ROWS: Final = 10_000
"""and more than so many rows: to look through these takes no longer than to look a value up."""


class ColumnOrder:
    """The places of the first rows of a table by their values in a column. Rows are added at the end; any may be taken
    out, and has 0 in its place from then on, which is never looked up.

    >>> table = Table(term=np.int32, row=np.int32)
    >>> span = table.append(term=[7, 9, 7, 8], row=[1, 1, 2, 2])
    >>> order = ColumnOrder(table, "term")
    >>> [found.tolist() for found in order.find(np.array([7, 8]))]
    [[0, 2, 3], [0, 0, 1]]
    >>> [found.tolist() for found in order.values("row", np.array([7, 8]))]
    [[1, 2], [2]]
    """

    def __init__(self, table: Table, column: str) -> None:
        self._table, self._column = table, column
        self._size = 0
        self._places = np.zeros(0, np.int32)
        self._values = np.zeros(0, np.int64)
        self._starts = np.zeros(0, np.int64)
        self._ends = np.zeros(0, np.int64)
        self._sorted: Arrays = {}
        """Other columns in this order: what belongs to one value stands together, and is read many times faster."""

    @property
    def nbytes(self) -> int:
        own: list[NDArray[Any]] = [self._places, self._values, self._starts, self._ends, *self._sorted.values()]
        return sum(array.nbytes for array in own)

    def state(self) -> Arrays:
        """What it is made of, without the values that nothing has any more."""
        self.update()
        is_used = self._ends > self._starts
        bounds = {"values": self._values[is_used], "starts": self._starts[is_used], "ends": self._ends[is_used]}
        return {"places": self._places} | bounds

    def restore(self, state: Arrays) -> None:
        """Take this order of the same table in place of its own."""
        self._places, self._values = state["places"], state["values"]
        self._starts, self._ends = state["starts"], state["ends"]
        self._size = len(self._places)
        self._sorted = {}

    def update(self) -> None:
        """Sort the table if too much of it is not sorted."""
        column = self._table[self._column]
        left = len(column) - self._size
        if left <= max(_MAX_UNSORTED_ROWS, len(column) // _MAX_UNSORTED_SHARE):
            return
        places = np.argsort(column, kind="stable")
        values = column[places].astype(np.int64)
        starts = np.flatnonzero(np.diff(values, prepend=-1))
        self._size, self._places, self._values = len(column), places.astype(np.int32), values[starts]
        self._starts, self._ends = starts, np.append(starts[1:], len(column))
        self._sorted = {}

    def remove(self, span: slice) -> None:
        """Take out a span of places, before what stands there is changed to 0."""
        last = min(span.stop, self._size)
        values = self._table[self._column][span.start : last].astype(np.int64)
        numbers = np.searchsorted(self._values, values).tolist()
        for place, number in zip(range(span.start, last), numbers, strict=True):
            start, end = self._starts.item(number), self._ends.item(number)
            found = start + int(np.searchsorted(self._places[start:end], place))
            for array in (self._places, *self._sorted.values()):
                array[found : end - 1] = array[found + 1 : end]
            self._ends[number] -= 1

    def find_each(self, wanted: NDArray[Any]) -> list[NDArray[np.int32]]:
        """The places of each of these values, each given once and none 0, in order. They are not to be written to."""
        found = [self._places[start:end] for start, end in self._bounds(wanted)]
        late, values = self._find_unsorted(wanted)
        return _append_late(found, late, values, wanted)

    def values(self, name: str, wanted: NDArray[Any]) -> list[NDArray[Any]]:
        """What another column has at the places of each of these values: as `find_each`."""
        bounds = self._bounds(wanted)
        if name not in self._sorted:
            self._sorted[name] = self._table[name].take(self._places)
        found = [self._sorted[name][start:end] for start, end in bounds]
        late, values = self._find_unsorted(wanted)
        return _append_late(found, self._table[name].take(late), values, wanted)

    def find(self, wanted: NDArray[Any]) -> tuple[Longs, Longs]:
        """The places of these values, each given once and none 0, value by value and in order; and which each is."""
        found = self.find_each(wanted)
        places = np.concatenate((self._places[:0], *found)).astype(np.int64)
        return places, np.repeat(np.arange(len(found)), np.fromiter(map(len, found), np.int64, len(found)))

    def _bounds(self, wanted: NDArray[Any]) -> list[tuple[int, int]]:
        """Where the places of each of these values are in the order."""
        self.update()
        numbers = np.searchsorted(self._values, wanted.astype(np.int64)).tolist()
        values, count = self._values, len(self._values)
        return [
            (self._starts.item(number), self._ends.item(number))
            if number < count and values.item(number) == value
            else (0, 0)
            for number, value in zip(numbers, wanted.tolist(), strict=True)
        ]

    def _find_unsorted(self, wanted: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The places of these values beyond the order, and the value at each."""
        rest = self._table[self._column][self._size :]
        late = np.isin(rest, wanted).nonzero()[0] if len(rest) else np.zeros(0, np.int64)
        return (late + self._size).astype(np.int32), rest.take(late)


def _append_late(
    found: list[NDArray[Any]], late: NDArray[Any], values: NDArray[Any], wanted: NDArray[Any]
) -> list[NDArray[Any]]:
    """What was found for each of the values that were wanted, with what was found of it beyond the order."""
    if not len(late):
        return found
    return [np.append(own, late[values == value]) for own, value in zip(found, wanted, strict=True)]
