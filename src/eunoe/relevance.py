"""Whether what was found bears on the question at all: floors for scores of recall, by recipe, as measured.

The best of many documents scores more than the best of few, also for a question that none of them answers. So the
best one is held against those that come after it: it must stand out from them, or score so much that this says enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final

_FIRST, _LAST = 5, 10
_FAINT = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least score, from 0 to 1, that the best hit must have for a question to count as answered.

    It grows with the mean log-odds of the sixth to the tenth hit (missing ones count as faint) and stays between two
    scores. Where the two are the same it is that score.
    """

    least: float
    most: float
    rest: float
    """The least score of a hit after the best."""
    base: float = 0.0
    lift: float = 0.0

    @classmethod
    def fixed(cls, score: float) -> Floor:
        """The same for every hit."""
        return cls(least=score, most=score, rest=score)

    def needed(self, scores: Sequence[float]) -> float:
        """What the best of these must have.

        >>> floor = Floor(least=0.05, most=0.8, rest=0.05, base=2.25, lift=0.7)
        >>> [round(floor.needed([0.9] + [rest] * 9), 2) for rest in (0.01, 0.05, 0.1, 0.5)]
        [0.28, 0.55, 0.67, 0.8]
        """
        after = [*scores[_FIRST:_LAST], *[0.0] * (_LAST - _FIRST)][: _LAST - _FIRST]
        return min(max(_score(self.base + self.lift * sum(map(_odds, after)) / len(after)), self.least), self.most)

    def passed(self, scores: Sequence[float]) -> int:
        """How many of these, best first, bear on the question.

        >>> Floor.fixed(0.3).passed([0.9, 0.4, 0.2])
        2
        """
        if not scores or scores[0] < self.needed(scores):
            return 0
        return 1 + sum(score >= self.rest for score in scores[1:])


DEPTH: Final = _LAST
"""How many hits a floor looks at."""
FLOORS: Final = {"default": Floor(least=0.06, most=0.8, rest=0.02, base=2.25, lift=0.7)}
"""By recipe, where questions and documents have vectors."""
BARE: Final = Floor(least=0.2, most=0.7, rest=0.05, base=1.0, lift=0.2)
"""For these recipes where they have none: words alone tell less, and many documents have no score at all then."""
JUDGES: Final = {"associative": "default"}
"""Recipes that say well which documents are nearest, but not whether any is near: for them another one says that."""


def floor_of(recipe: str, vectors: bool) -> Floor:
    """The floor of a recipe; one that was not measured has none."""
    if recipe not in FLOORS:
        return Floor.fixed(0.0)
    return FLOORS[recipe] if vectors else BARE


def _odds(score: float) -> float:
    even = min(max(score, _FAINT), 1 - _FAINT)
    return log(even / (1 - even))


def _score(odds: float) -> float:
    return 1 / (1 + exp(-odds))
