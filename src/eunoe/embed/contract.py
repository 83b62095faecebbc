"""What every embedder promises, and the check of vectors that come from elsewhere."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import EmbedderError

Vectors = NDArray[np.float32]

_MIN_SQUARE: Final = 1e-12
_MAX_SQUARE: Final = 1e12
"""Squared lengths between which single precision neither overflows nor vanishes."""


class Embedder(Protocol):
    """Turns text into unit vectors; a text with nothing to embed may give an all-zero row.

    It may have the mark `is_slow = True`: a vector takes longer than a write should, so that those of small writes are
    made after the reply, or by the recall that first needs them. And it may have `languages`, the names of those that
    it reads well, such as `("English",)`: recall then says so when a question is in another one.
    """

    @property
    def name(self) -> str:
        """Stable identity of the vector space: equal names, comparable vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows for texts in their order, shape (n, dimensions)."""

    def embed_query(self, text: str) -> Vectors:
        """One row for a question, shape (dimensions,)."""


def known_languages(embedder: object) -> tuple[str, ...]:
    """Return the languages that an embedder says it reads well; none where it does not say."""
    names = getattr(embedder, "languages", ())
    return tuple(names) if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names) else ()


def to_unit_vectors(rows: Any, owner: str) -> Vectors:
    """Scale rows that `owner` gave to unit length; zero rows stay zero, anything but finite numbers is refused."""
    try:
        matrix = np.asarray(rows)
        matrix = matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbedderError(f"{owner} gave rows that are not equally long lists of numbers") from error
    if matrix.ndim != 2:
        raise EmbedderError(f"{owner} gave an array of shape {matrix.shape} where (texts, dimensions) is due")
    if matrix.dtype == np.float32:
        squares = np.vecdot(matrix, matrix)
        if ((squares > _MIN_SQUARE) & (squares < _MAX_SQUARE)).all():
            scaled: Vectors = matrix / np.sqrt(squares)[:, None]
            return scaled
    if not np.isfinite(matrix).all():
        raise EmbedderError(f"{owner} gave a vector with NaN or infinity; check the model behind it")
    # By the largest entry first, so that squaring can neither overflow nor vanish.
    wide = matrix.astype(np.float64)
    wide /= _or_one(np.abs(wide).max(axis=1, initial=0, keepdims=True))
    return (wide / _or_one(np.linalg.norm(wide, axis=1, keepdims=True))).astype(np.float32)


def _or_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values == 0, 1.0, values)
