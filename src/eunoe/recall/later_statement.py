"""What is true now: of two statements about one thing the later one counts, unless the question is about the past."""

import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Bools, Floats
from eunoe.index.stream import StreamIndex
from eunoe.text.dates import DAY_SECONDS

UNSAID: Final = 0.1
"""How far a question asks for the present whose words do not say so."""

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

_PRESENT: Final = re.compile(
    r"\b(?:(?:do|am) i|(?:is|are|['’]s) (?:my|our))\b|"
    r"\b(?:now|nowadays|current(?:ly)?|latest|newest|(?:most|more) recent|still|these days|today|at present|presently|"
    r"actual(?:ly)?|final(?:ly)?|in the end|any ?more|at the moment|settled|up to date|so far|"
    r"jetzt|aktuell\w*|heute|inzwischen|mittlerweile|noch|zurzeit|derzeit\w*|gerade|"
    r"ahora|actualmente|todavía|hoy|aún|maintenant|actuel\w*|aujourd['’]hui|encore|désormais|"
    r"adesso|attual\w*|ancora|oggi|ora|agora|atual\w*|hoje|ainda|nu|nog|huidige|momenteel|teraz|obecnie|nadal|"
    r"сейчас|теперь|ещё)\b|现在|目前|現在|いま|지금"
)
_PAST: Final = re.compile(
    r"\b(?:original(?:ly)?|first|before|previous(?:ly)?|earlier|used to|(?<!how )old(?:er)?|former(?:ly)?|"
    r"initial(?:ly)?|beginning|started|at the start|did|were|had|ago|back then|once|order|sequence|history|"
    r"how (?:has|have)|chang(?:e|ed|es)|was(?! (?:ist|sind|wird|werden|hat|haben|soll|kann|muss|macht|kostet))|"
    r"ursprünglich\w*|früher\w*|zuerst|anfangs|damals|war|waren|hatten?|wurden?|bisher\w*|vorher|"
    r"antes|original\w*|primer[oa]?|fue|fueron|era|había|avant|d['’]abord|était|avait|ancien\w*|premi[eè]re?|"
    r"prima|inizialmente|originari\w*|fu|erano|aveva|finora|foi|primeir[oa]|tinha)\b|以前|最初"
)
_FUTURE: Final = re.compile(
    r"\b(?:will|going to|shall|plans?|planned|planning|next|upcoming|due|scheduled|supposed to|"
    r"wird|werden|werde|geplant\w*|nächste\w*|será|serán|va a|van a|próxim[oa]s?|sera|prochaine?|prévue?|"
    r"sarà|prossim[oa]|previst[oa]|vai)\b"
)


def present_share(question: str) -> float:
    """How far a question asks for what is true now, from 0 to 1. What will be is what is planned now, and whoever asks
    about themselves means today.

    >>> [present_share(text) for text in ("Where does Ada live now?", "Where did Ada live?", "the street of Ada")]
    [1.0, 0.0, 0.1]
    """
    text = question.lower()
    if _PRESENT.search(text):
        return 1.0
    if _PAST.search(text):
        return 0.0
    return 1.0 if _FUTURE.search(text) else UNSAID


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
