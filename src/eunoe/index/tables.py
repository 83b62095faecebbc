"""Tables that grow by appending, their order by a column, and texts as arrays and as digests."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Arrays = dict[str, NDArray[Any]]
"""The arrays of which an index is made, by name: what is kept of it (`index/kept_indexes.py`)."""


class Table(dict[str, NDArray[Any]]):
    """Columns of one length. `table[name]` is the part of a column that is in use; a new row is all zeros."""

    def __init__(self, **dtypes: DTypeLike) -> None:
        super().__init__((name, np.zeros(0, dtype)) for name, dtype in dtypes.items())
        self.size = 0
        """The number of rows."""
        self.nbytes = 0
        """The memory held, room to grow included."""
        self._arrays = dict(self)

    def restore(self, state: Arrays) -> None:
        """Take these columns in place of its own. Raise ValueError or KeyError if they cannot be its columns."""
        columns = {name: state[name] for name in self}
        sizes = {len(column) for column in columns.values()}
        if len(sizes) > 1 or any(_kind(columns[name]) != _kind(self[name]) for name in self):
            raise ValueError("columns of another table")
        self._arrays = columns
        self.update(columns)
        self.size = sizes.pop()
        self.nbytes = sum(column.nbytes for column in columns.values())

    def extend(self, count: int) -> slice:
        """Add so many rows; return where they are."""
        span = slice(self.size, self.size + count)
        for name, array in self._arrays.items():
            if span.stop > len(array):
                # Half as much again, so that adding row by row copies each row only a few times.
                larger = np.zeros((max(span.stop, self.size * 3 // 2), *array.shape[1:]), array.dtype)
                larger[: self.size] = array[: self.size]
                self._arrays[name] = larger
                self.nbytes += larger.nbytes - array.nbytes
            self[name] = self._arrays[name][: span.stop]
        self.size = span.stop
        return span

    def append(self, **columns: Sequence[float] | NDArray[Any]) -> slice:
        """Add rows with these values, and zeros in the other columns; return where they are."""
        span = self.extend(len(next(iter(columns.values()))))
        for name, values in columns.items():
            self[name][span] = values
        return span

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the other rows."""
        self._arrays = {name: column[rows] for name, column in self.items()}
        self.update(self._arrays)
        self.size = int(rows.sum())
        self.nbytes = sum(array.nbytes for array in self._arrays.values())


def _kind(array: NDArray[Any]) -> tuple[DTypeLike, tuple[int, ...]]:
    return array.dtype, array.shape[1:]


def prefixed(name: str, arrays: Arrays) -> Arrays:
    """Arrays under names that begin with one."""
    return {f"{name}.{key}": array for key, array in arrays.items()}


def unprefixed(name: str, arrays: Arrays) -> Arrays:
    """Those of the arrays whose names begin with one, without it."""
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}


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


def pack_texts(texts: Sequence[str]) -> Arrays:
    """The letters of all texts together, and where each ends.

    >>> unpack_texts(pack_texts(["né", "", "東京"]))
    ['né', '', '東京']
    """
    data = np.frombuffer("".join(texts).encode("utf-8", "surrogatepass"), np.uint8)
    return {"data": data, "ends": np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))}


def unpack_texts(state: Arrays) -> list[str]:
    letters = state["data"].tobytes().decode("utf-8", "surrogatepass")
    return [letters[start:end] for start, end in pairwise((0, *state["ends"].tolist()))]


def text_digest(text: str) -> int:
    """A number of 64 bits, never 0."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1
