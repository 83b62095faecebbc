"""What every embedder promises, and the two steps they all share: cleaning text and checking vectors."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import EmbedderError

Vectors = NDArray[np.float32]

_TINY, _HUGE = 1e-12, 1e12


class Embedder(Protocol):
    """Turns text into unit vectors; a text with nothing to embed may give an all-zero row.

    It may have the mark `is_slow = True`: a vector takes longer than a write should, so that those of small writes are
    made behind the reply, or by the recall that first needs them.
    """

    @property
    def name(self) -> str:
        """Stable identity of the vector space: equal names, comparable vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows for texts, shape (n, dim)."""

    def embed_query(self, text: str) -> Vectors:
        """One row for a question, shape (dim,)."""


def unit(rows: Any, owner: str) -> Vectors:
    """Rows scaled to unit length; zero rows stay zero; anything but finite numbers is refused."""
    quick = _quickly(rows)
    if quick is not None:
        return quick
    matrix = _matrix(rows, owner)
    if not np.isfinite(matrix).all():
        raise EmbedderError(f"{owner} gave a vector with NaN or infinity; check the model behind it")
    # By the largest entry first, so that squaring can neither overflow nor vanish.
    matrix = matrix / _or_one(np.abs(matrix).max(axis=1, initial=0, keepdims=True))
    return (matrix / _or_one(np.linalg.norm(matrix, axis=1, keepdims=True))).astype(np.float32)


def _quickly(rows: Any) -> Vectors | None:
    """The usual case, rows of single precision and ordinary size, without a detour; None for all else."""
    matrix = rows if isinstance(rows, np.ndarray) else _joined(rows)
    if matrix is None or matrix.dtype != np.float32 or matrix.ndim != 2:
        return None
    squares = np.vecdot(matrix, matrix)
    if not ((squares > _TINY) & (squares < _HUGE)).all():
        return None
    scaled: Vectors = matrix / np.sqrt(squares)[:, None]
    return scaled


def _joined(rows: Sequence[Any]) -> NDArray[Any] | None:
    """A list of arrays of one length and type as a matrix."""
    first = rows[0] if rows else None
    if not isinstance(first, np.ndarray) or first.ndim != 1:
        return None
    alike = all(type(row) is np.ndarray and row.shape == first.shape and row.dtype == first.dtype for row in rows)
    return np.concatenate(rows).reshape(len(rows), -1) if alike else None


def _matrix(rows: Any, owner: str) -> NDArray[np.float64]:
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbedderError(f"{owner} gave rows that are not equally long lists of numbers") from error
    if matrix.ndim != 2:
        raise EmbedderError(f"{owner} gave an array of shape {matrix.shape} where (texts, dimensions) is due")
    return matrix


def _or_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values == 0, 1.0, values)
