"""Vectors by row, scanned exactly."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from eunoe.index.lexical import grown

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


class Dense:
    """Unit vectors of one length; a row without one, or with one of another length, is missing.

    A row may have several, one for each part of a long text: it is as near to a question as the nearest of them.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._matrix: Floats = np.zeros((0, 0), np.float32)
        self._present: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._count: int | None = None
        self._further = 0
        """How many vectors are the second or a further one of their row; they stand apart, with their rows."""
        self._more: Floats = np.zeros((0, 0), np.float32)
        self._owner: Ints = np.zeros(0, np.int32)

    @property
    def count(self) -> int:
        """How many rows have one."""
        if self._count is None:
            self._count = int(self.present.sum())
        return self._count

    @property
    def size(self) -> int:
        """The length of the vectors; 0 where there are none."""
        return self._matrix.shape[1] if self.count else 0

    @property
    def nbytes(self) -> int:
        return self._matrix.nbytes + self._present.nbytes + self._more.nbytes + self._owner.nbytes

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which rows have a vector."""
        return self._present[: self.rows]

    def reserve(self, rows: int) -> None:
        """Makes room up to a number of rows."""
        self._count = None
        more = rows - self.rows
        if more > 0:
            self._present = grown(self._present, self.rows, more)
            if self._matrix.shape[1]:
                self._matrix = grown(self._matrix, self.rows, more)
            self.rows = rows

    def put(self, rows: Ints, vectors: Sequence[Floats | None]) -> None:
        """Sets or clears the vectors of rows within the reserve; a matrix has one for each part of a row's text."""
        self._clear(rows)
        sizes = {vector.shape[-1] for vector in vectors if vector is not None}
        if sizes and not self.present.any():
            self._matrix = np.zeros((len(self._present), max(sizes)), np.float32)
            self._more = np.zeros((0, max(sizes)), np.float32)
        size = self._matrix.shape[1]
        fitting = [
            (place, vector)
            for place, vector in enumerate(vectors)
            if vector is not None and vector.shape[-1] == size > 0
        ]
        if not fitting:
            return
        places, found = zip(*fitting, strict=True)
        matrix = np.concatenate(found, axis=None, dtype=np.float32).reshape(-1, size)
        norms = np.sqrt(np.vecdot(matrix, matrix))
        sound = np.isfinite(norms) & (norms > 0)
        where = np.repeat(rows[list(places)], [vector.size // size for vector in found])[sound]
        self._set(where, matrix[sound] / norms[sound, None])

    def _clear(self, rows: Ints) -> None:
        self._count = None
        self._present[rows] = False
        lost = np.isin(self._owner[: self._further], rows)
        if lost.any():
            kept = (~lost).nonzero()[0]
            self._more, self._owner, self._further = self._more[kept], self._owner[kept], len(kept)

    def _set(self, where: Ints, matrix: Floats) -> None:
        """The vectors of a row stand next to each other."""
        first = np.diff(where, prepend=-1) != 0
        self._matrix[where[first]] = matrix[first]
        self._present[where] = True
        if not first.all():
            self._add(where[~first], matrix[~first])

    def _add(self, where: Ints, matrix: Floats) -> None:
        held, end = self._further, self._further + len(where)
        self._more, self._owner = grown(self._more, held, len(where)), grown(self._owner, held, len(where))
        self._more[held:end], self._owner[held:end], self._further = matrix, where, end

    def nearest(self, row: int, vector: Floats) -> tuple[int, int]:
        """Which of the vectors of a row that has some is nearest to another, and how many it has."""
        further = self._more[: self._further][self._owner[: self._further] == row]
        found = np.vecdot(np.concatenate((self._matrix[row : row + 1], further)), vector)
        return int(found.argmax()), len(found)

    def cosines(self, vector: Floats) -> Floats | None:
        """Cosine of each row with a vector, 0 where there is none; None when the lengths differ."""
        if len(vector) != self._matrix.shape[1]:
            return None
        norm = sqrt(float(np.dot(vector, vector)))
        if not isfinite(norm) or norm == 0:
            return None
        # Row by row: a product of the whole matrix may round a row differently depending on what stands around it.
        unit = np.asarray(vector, np.float32) / np.float32(norm)
        found = np.vecdot(self._matrix[: self.rows], unit)
        if self._further:
            np.maximum.at(found, self._owner[: self._further], np.vecdot(self._more[: self._further], unit))
        return found if self.count == self.rows else np.where(self.present, found, np.float32(0))
