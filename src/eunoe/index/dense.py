"""Numbers by row: tables that grow by appending, and the dense index of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
