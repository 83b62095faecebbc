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
    """Unit vectors of one length; a row without one, or with one of another length, is missing."""

    def __init__(self) -> None:
        self.rows = 0
        self._matrix: Floats = np.zeros((0, 0), np.float32)
        self._present: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._count: int | None = None

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
        return self._matrix.nbytes + self._present.nbytes

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
        """Sets or clears the vectors of rows within the reserve."""
        self._count = None
        self._present[rows] = False
        sizes = {len(vector) for vector in vectors if vector is not None}
        if sizes and not self.present.any():
            self._matrix = np.zeros((len(self._present), max(sizes)), np.float32)
        size = self._matrix.shape[1]
        fitting = [
            (place, vector) for place, vector in enumerate(vectors) if vector is not None and len(vector) == size > 0
        ]
        if not fitting:
            return
        places, found = zip(*fitting, strict=True)
        matrix = np.concatenate(found, dtype=np.float32).reshape(-1, size)
        norms = np.sqrt(np.vecdot(matrix, matrix))
        sound = np.isfinite(norms) & (norms > 0)
        where = rows[list(places)][sound]
        self._matrix[where] = matrix[sound] / norms[sound, None]
        self._present[where] = True

    def cosines(self, vector: Floats) -> Floats | None:
        """Cosine of each row with a vector, 0 where there is none; None when the lengths differ."""
        if len(vector) != self._matrix.shape[1]:
            return None
        norm = sqrt(float(np.dot(vector, vector)))
        if not isfinite(norm) or norm == 0:
            return None
        # Row by row: a product of the whole matrix may round a row differently depending on what stands around it.
        found = np.vecdot(self._matrix[: self.rows], np.asarray(vector, np.float32) / np.float32(norm))
        return found if self.count == self.rows else np.where(self.present, found, np.float32(0))
