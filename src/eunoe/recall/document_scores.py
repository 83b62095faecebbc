"""One order and one scale out of two: that of the blend and that of the entity graph, for passages of documents.

Why it is so: docs/decisions/0043-project-ranking.md.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.recall.graph_search import GraphRanking, top_rows

Floats = NDArray[np.float64]

_SPREAD: Final = 0.5
"""What the score of a row loses, in log-odds, for each unit that separates it from the best."""
_KNOWN_NAME: Final = 2.0
"""What it says, in log-odds, that the memory knows a name in the question."""
_BEST_ROWS: Final = 3
"""Of so many rows the one that answers best by the blend says how far the question is answered."""
_BEHIND: Final = 50.0
"""More than any two rows differ by: what the graph does not reach comes after what it does."""
_MAX_LOG_ODDS: Final = 40.0
_MIN_SCORE, _MAX_SCORE = 1e-18, 1 - 1e-15


def combine_scores(blend: Floats, graph: GraphRanking) -> Floats:
    """The scores by row.

    Where the question has a name that leads somewhere, the graph gives the order: the next step shares a name with the
    first and no word with the question. Elsewhere both count alike, which is better than either. How high the best
    stands is said by the blend, whose scale is the same among few and among many, and by whether a name is known.
    """
    within = np.clip(blend, _MIN_SCORE, _MAX_SCORE)
    odds = np.log(within) - np.log1p(-within)
    is_reached = np.isfinite(graph.total)
    order = np.where(is_reached, graph.total + (0.0 if graph.has_names else odds), odds - _BEHIND)
    order[(blend == 0) & ~is_reached] = -np.inf
    best = top_rows(order, _BEST_ROWS)
    if not np.isfinite(order[best]).any():
        return np.zeros(len(blend))
    answered = float(odds[best].max()) + _KNOWN_NAME * graph.has_names
    log_odds = np.clip(answered + _SPREAD * (order - order[best[0]]), -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    return np.where(order > -np.inf, 1 / (1 + np.exp(-log_odds)), 0.0)
