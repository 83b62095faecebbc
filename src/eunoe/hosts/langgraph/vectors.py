"""Vectors from which a memory can tell any cosine, to five digits.

A memory scores from 0 to 1, leaves out what is not similar at all, and keeps numbers of 16 bits. LangGraph's stores
give negative cosines too, of numbers of 32 bits. So unit vectors get one more component, the same for all, which makes
every score positive. And what 16 bits cannot hold of a number is kept beside it.
"""

from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
_Wide = NDArray[np.float64]

_SHARED: Final = 2.0
"""Squared length of the component that all vectors share. Above 1, so that opposite vectors still have a score."""
_FINE: Final = 256.0
"""How many times as large as they are the remainders are kept: as they are they would be too small for 16 bits."""
_SHARE: Final = 0.98
"""What of the squared length of a row the numbers themselves take. The remainders vary: two more fill it up."""


def stored_rows(unit: Rows) -> Rows:
    """What a memory keeps for unit vectors, or for zeros."""
    whole = _extend(unit) * sqrt(_SHARE)
    coarse = _round(whole)
    fine = _round((whole - coarse) * _FINE)
    left = 1 - np.vecdot(coarse, coarse) - np.vecdot(fine, fine)
    first = _round(np.sqrt(left) * 0.999)
    second = np.sqrt(left - first**2)
    return np.hstack([coarse, fine, first[:, None], second[:, None]]).astype(np.float32)


def query_rows(unit: Rows) -> Rows:
    """What a memory is asked for unit vectors."""
    whole = _extend(unit)
    return np.hstack([whole, whole / _FINE, np.zeros((len(whole), 2))]).astype(np.float32)


def cosine_of(score: float) -> float:
    """The cosine that a score of the memory stands for."""
    extended = score * sqrt((1 + _FINE**-2) / _SHARE)
    return extended * (1 + _SHARED) - _SHARED


def _extend(unit: Rows) -> _Wide:
    """Unit vectors, each with the component that is the same for all, and one that only vectors of zeros need."""
    added = np.zeros((len(unit), 2))
    added[:, 0] = sqrt(_SHARED)
    added[~unit.any(axis=1), 1] = 1
    return np.hstack([unit.astype(np.float64), added]) / sqrt(1 + _SHARED)


def _round(rows: _Wide) -> _Wide:
    """Numbers as 16 bits hold them."""
    return rows.astype(np.float16).astype(np.float64)
