"""Whether what was found bears on the question at all: the lowest scores of recall that count, as measured.

Scores of the recipe `documents` mean the same among few documents and among many, so that one threshold serves all.
docs/decisions/0043-project-ranking.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class RelevanceThreshold(NamedTuple):
    """The lowest scores, from 0 to 1, of the best document and of its followers.

    >>> threshold = RelevanceThreshold(best=0.5, follower=0.2)
    >>> threshold.count_passing([0.6, 0.3, 0.1]), threshold.count_passing([0.4, 0.3])
    (2, 0)
    """

    best: float
    follower: float

    def count_passing(self, scores: Sequence[float]) -> int:
        """How many of these, best first, bear on the question."""
        if not scores or scores[0] < self.best:
            return 0
        return 1 + sum(score >= self.follower for score in scores[1:])


THRESHOLDS: Final[Mapping[str, RelevanceThreshold]] = {"documents": RelevanceThreshold(best=0.5, follower=0.03)}
"""By recipe."""


def threshold_of(recipe: str) -> RelevanceThreshold:
    """The threshold of a recipe; one that was not measured lets everything pass."""
    return THRESHOLDS.get(recipe, RelevanceThreshold(0.0, 0.0))
