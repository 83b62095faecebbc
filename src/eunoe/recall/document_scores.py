"""The order of documents, by the blend and the entity graph, and on one scale how far each bears on the question.

Why it is so: docs/decisions/0043-project-ranking.md.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Bools
from eunoe.index.dense import Floats as Signal
from eunoe.recall.graph_search import GraphRanking, top_rows
from eunoe.recall.ranking_recipes import DocumentScale

Floats = NDArray[np.float64]

_SPREAD: Final = 0.5
"""What a row loses, in log-odds, for each unit that separates it from the best in the order."""
_NAME_SPREAD: Final = 1.0
"""The same if the question has a name: only the distance in the order counts then."""
_MAX_CERTAINTY: Final = 3.5
"""To be more certain of the first says nothing about the next, to which its names lead."""
_BEST_ROWS: Final = 3
"""Of so many rows the one that bears most on the question says whether it is answered."""
_JUDGED_ROWS: Final = 100
"""So many rows are judged each by itself; the others follow in their order."""
_TIE: Final = 0.001
"""Taken off so that two rows never have the same score."""
_BEHIND: Final = 50.0
"""More than any two rows differ by: what the graph does not reach comes after what it does."""
_SHORT_WORDS: Final = 6
"""From so many words on a text's vector says what the text says, and no longer how short it is."""
_MIN_LOG_ODDS, _MAX_LOG_ODDS = -300.0, 30.0
_MIN_SCORE, _MAX_SCORE = 1e-18, 1 - 1e-15


def own_log_odds(
    scale: DocumentScale, term: Signal, is_about: Bools, cosines: Signal | None = None, dense: Signal | None = None
) -> Floats:
    """How far each row bears on the question by itself, before the size penalty."""
    own: Floats = scale.bias + scale.term * term.astype(np.float64) + scale.about * is_about
    if cosines is not None:
        own += scale.cosine * cosines
    if dense is not None:
        own += scale.dense * dense
    return own


def short_excess(scale: DocumentScale, question_words: int, lengths: Signal) -> Floats:
    """By how much each row's cosine with the question is too high, because both are short.

    >>> short_excess(DocumentScale(short=0.25), 1, np.array([1, 3, 20], np.float32)).round(2).tolist()
    [0.25, 0.15, 0.0]
    """
    most = scale.short * min(max(_SHORT_WORDS - question_words, 0) / (_SHORT_WORDS - 1), 1)
    if not most:
        return np.zeros(len(lengths))
    excess: Floats = most * np.clip((_SHORT_WORDS - lengths.astype(np.float64)) / (_SHORT_WORDS - 1), 0, 1)
    return excess


def combine_scores(blend: Floats, own: Floats, graph: GraphRanking, size_loss: float = 0.0) -> Floats:
    """The scores by row, best first in the order of the two rankings.

    Where the question has a name that leads somewhere, the graph gives the order: the next step shares a name with the
    first and no word with the question. Elsewhere both count alike, which is better than either. `own` are log-odds:
    how far each row bears on the question by itself. The first row gets the highest of the first three. Every other row
    gets its own, less what separates it from the first; no row scores more than the one before it. Where names lead,
    the way to a row counts in place of what it says itself. `size_loss` is taken off all of them later.
    """
    order = _order(blend, graph)
    best = top_rows(order, _JUDGED_ROWS)
    best = best[np.isfinite(order[best])]
    if not len(best):
        return np.zeros(len(blend))
    answered = float(own[best[:_BEST_ROWS]].max())
    distance = order[best[0]] - order
    if graph.has_names:
        judged = min(answered, _MAX_CERTAINTY + size_loss) - _NAME_SPREAD * distance[best]
    else:
        judged = own[best] - _SPREAD * distance[best]
    judged[0] = answered
    log_odds = np.minimum.accumulate(judged)[-1] - _SPREAD * (distance - distance[best[-1]])
    log_odds[best] = np.minimum.accumulate(np.minimum(judged, answered))
    log_odds = np.clip(log_odds - _TIE * distance, _MIN_LOG_ODDS, _MAX_LOG_ODDS)
    return np.where(order > -np.inf, 1 / (1 + np.exp(-log_odds)), 0.0)


def _order(blend: Floats, graph: GraphRanking) -> Floats:
    """What the rows are ordered by; minus infinity for what neither finds."""
    within = np.clip(blend, _MIN_SCORE, _MAX_SCORE)
    odds = np.log(within) - np.log1p(-within)
    is_reached = np.isfinite(graph.total)
    order = np.where(is_reached, graph.total + (0.0 if graph.has_names else odds), odds - _BEHIND)
    order[(blend == 0) & ~is_reached] = -np.inf
    return order
