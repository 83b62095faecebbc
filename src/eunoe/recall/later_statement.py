"""What is true now: of two statements about one thing the later one counts, unless the question is about the past."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Bools, Floats
from eunoe.index.stream import StreamIndex
from eunoe.text.dates import DAY_SECONDS

_ROWS: Final = 16
"""So many of the best rows are compared."""
_USUAL_COSINE: Final = 0.15
_USUAL_SPREAD: Final = 0.12
_USUAL_PAIRS: Final = 12
"""What is usual among the best rows is what these have, and so many imagined pairs."""
_LIKE: Final = 4.0
"""Two statements are surely about one thing if their cosine is so many standard deviations above what is usual."""
_FIT_SCALE: Final = 2.0
"""How far a row may lie behind the best and still be a statement that another one takes the place of."""
_TURNS_APART: Final = 5
"""Nearer turns of a session go on about one thing; they do not take each other's place."""
_HOUR: Final = 3600.0


def later_signal(index: StreamIndex, total: NDArray[np.float64]) -> Floats:
    """How far each of the best rows says anew what another good one said earlier, from 0 to 1; less where a still later
    one says it again.

    `total` is the sum of all other signals, -inf for what is not found.
    """
    signal = np.zeros(index.rows, np.float32)
    rows = _best_rows(np.where(index.dense.present, total, -np.inf)) if index.dense.count > 1 else np.zeros(0, np.intp)
    if len(rows) > 1:
        fit = np.exp((total[rows] - total[rows].max()) / _FIT_SCALE)
        replaces = _likeness(index.dense.rows["vector"][rows]) * _is_later(index, rows)
        is_replaced = (replaces * fit[:, None]).max(axis=0)
        signal[rows] = np.maximum((replaces * fit).max(axis=1) - is_replaced, 0)
    return signal


def _best_rows(total: NDArray[np.float64]) -> NDArray[np.intp]:
    """Those above the first that is too many, so that ties are all in or all out."""
    edge = np.partition(total, -_ROWS - 1)[-_ROWS - 1] if len(total) > _ROWS else -np.inf
    return (total > edge).nonzero()[0]


def _likeness(vectors: Floats) -> Floats:
    """How far the statements of each pair are about one thing, from 0 to 1."""
    # Not a matrix product: that may round equal rows differently, and ties would not be ties.
    cosines = np.vecdot(vectors[:, None], vectors[None])
    pairs = cosines[np.triu_indices(len(cosines), 1)]
    count = len(pairs) + _USUAL_PAIRS
    usual = (pairs.sum() + _USUAL_PAIRS * _USUAL_COSINE) / count
    squares = ((pairs - usual) ** 2).sum() + _USUAL_PAIRS * (_USUAL_SPREAD**2 + (_USUAL_COSINE - usual) ** 2)
    likeness: Floats = np.clip((cosines - usual) / (_LIKE * np.sqrt(squares / count)), 0, 1)
    return likeness


def _is_later(index: StreamIndex, rows: NDArray[np.intp]) -> Bools:
    """Whether the row of each line was said later than that of each column, and not in one breath."""
    turn, gap = index.layout.message[rows], _minus(_moments(index, rows))
    turns = turn[:, None] & turn
    # A fact may have been taken from a turn of the same day.
    later: Bools = gap > np.where(turns, _HOUR, np.where(turn[:, None] ^ turn, DAY_SECONDS, 0))
    return later | (turns & (gap >= 0) & _is_further_on(index, rows))


def _is_further_on(index: StreamIndex, rows: NDArray[np.intp]) -> Bools:
    """Whether the turn of each line comes after that of each column, and some turns after in a session with a name."""
    session, named = index.columns["session"][rows], index.layout.in_named_session
    in_one_session = (session[:, None] == session) & (False if named is None else named[rows])
    places = _minus(np.array([index.seqs[row] for row in rows.tolist()]))
    further: Bools = places >= np.where(in_one_session, _TURNS_APART, 1)
    return further


def _moments(index: StreamIndex, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    moments = index.columns["time"][rows]
    for name in ("valid_from", "recorded"):
        moments = np.where(np.isnan(moments), index.columns[name][rows], moments)
    return moments


def _minus(values: NDArray[Any]) -> NDArray[Any]:
    """Each of some values less each of them."""
    differences: NDArray[Any] = values[:, None] - values
    return differences
