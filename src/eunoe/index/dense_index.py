"""Vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt

import numpy as np

from eunoe.index.dense import Arrays, Bools, Floats, Ints, Table, prefixed, unprefixed


class DenseIndex:
    """Unit vectors of one length. A row without one, or with one of another length, is missing.

    A row may have several, one for each part of a long text: it is as near to a question as the nearest of them.
    """

    def __init__(self) -> None:
        self.count = 0
        """How many rows have a vector."""
        self._dimensions = 0
        self.rows = Table(present=np.bool_)
        """Whether each row has a vector, and the first of its vectors."""
        self.parts = Table(row=np.int32)
        """The second and further vectors of rows."""

    def state(self) -> Arrays:
        return prefixed("rows", self.rows) | prefixed("parts", self.parts)

    @classmethod
    def of(cls, state: Arrays) -> DenseIndex:
        dense = cls()
        rows, parts = unprefixed("rows", state), unprefixed("parts", state)
        if "vector" in rows:
            dense._set_dimensions(rows["vector"].shape[1])
        dense.rows.restore(rows)
        dense.parts.restore(parts)
        dense.count = int(dense.present.sum())
        return dense

    @property
    def dimensions(self) -> int:
        """The length of the vectors; 0 where there are none."""
        return self._dimensions if self.count else 0

    @property
    def present(self) -> Bools:
        """Which rows have a vector."""
        return self.rows["present"]

    def reserve(self, rows: int) -> None:
        """Make room up to a number of rows."""
        self.rows.extend(max(rows - self.rows.size, 0))

    def remove(self, rows: Ints) -> None:
        """Leave nothing of the vectors of rows."""
        self.put(rows, [None] * len(rows))
        if "vector" in self.rows:
            self.rows["vector"][rows] = 0

    def put(self, rows: Ints, vectors: Sequence[Floats | None]) -> None:
        """Set or clear the vectors of rows within the reserve; a matrix has one for each part of a row's text."""
        self.rows["present"][rows] = False
        if self.parts.size:
            self.parts.keep(~np.isin(self.parts["row"], rows))
        given = [(row, vector) for row, vector in zip(rows.tolist(), vectors, strict=True) if vector is not None]
        if given:
            self._write(given)
        self.count = int(self.rows["present"].sum())

    def _write(self, given: Sequence[tuple[int, Floats]]) -> None:
        if not self.rows["present"].any():
            size = self.rows.size
            self._set_dimensions(max(vector.shape[-1] for _, vector in given))
            self.rows.extend(size)
        fitting = [(row, vector) for row, vector in given if vector.shape[-1] == self._dimensions]
        if not fitting:
            return
        row = np.repeat([row for row, _ in fitting], [vector.size // self._dimensions for _, vector in fitting])
        flat: Floats = np.concatenate([vector for _, vector in fitting], axis=None, dtype=np.float32)
        matrix = flat.reshape(-1, self._dimensions)
        norms = np.sqrt(np.vecdot(matrix, matrix))
        is_usable = np.isfinite(norms) & (norms > 0)
        row, matrix = row[is_usable], matrix[is_usable] / norms[is_usable, None]
        is_first = np.diff(row, prepend=-1) != 0
        self.rows["vector"][row[is_first]] = matrix[is_first]
        self.rows["present"][row] = True
        if not is_first.all():
            self.parts.append(row=row[~is_first], vector=matrix[~is_first])

    def _set_dimensions(self, dimensions: int) -> None:
        self._dimensions = dimensions
        dtype = np.dtype((np.float32, dimensions))
        self.rows, self.parts = Table(present=np.bool_, vector=dtype), Table(row=np.int32, vector=dtype)

    def nearest_part(self, row: int, vector: Floats) -> tuple[int, int]:
        """Which of the vectors of a row that has some is nearest to another, and how many it has."""
        parts = self.parts["vector"][self.parts["row"] == row]
        cosines = np.vecdot(np.concatenate((self.rows["vector"][row : row + 1], parts)), vector)
        return int(cosines.argmax()), len(cosines)

    def part_cosines(self, rows: Sequence[int], vector: Floats) -> dict[int, list[float]]:
        """For those of the rows that have several vectors the cosine of each with another, in their order."""
        if not self.parts.size or len(vector) != self._dimensions:
            return {}
        places = np.isin(self.parts["row"], rows).nonzero()[0]
        found: dict[int, list[float]] = {}
        for row, vectors in zip(self.parts["row"][places].tolist(), self.parts["vector"][places], strict=True):
            known = found.setdefault(row, [float(np.vecdot(self.rows["vector"][row], vector))])
            known.append(float(np.vecdot(vectors, vector)))
        return found

    def cosines(self, vector: Floats) -> Floats | None:
        """The cosine of each row with a vector, 0 where there is none; None when the lengths differ."""
        norm = sqrt(float(np.dot(vector, vector)))
        if len(vector) != self._dimensions or not isfinite(norm) or norm == 0:
            return None
        # Row by row: a product of the whole matrix may round a row differently depending on what stands around it.
        unit = np.asarray(vector, np.float32) / np.float32(norm)
        cosines = np.vecdot(self.rows["vector"], unit)
        if self.parts.size:
            np.maximum.at(cosines, self.parts["row"], np.vecdot(self.parts["vector"], unit))
        return cosines if self.count == self.rows.size else np.where(self.rows["present"], cosines, np.float32(0))
