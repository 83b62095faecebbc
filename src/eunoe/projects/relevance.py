"""Whether what was found bears on the question at all: thresholds for scores of recall, by recipe, as measured.

A score of the default recipe means the same among few documents and among many, so that one threshold serves all.
Vectors of a model that cannot read a question say nothing about it; its words alone do then. These score more among
many, also where none answers: the best is compared with those that come after it, and must stand out from them or score
so much that this is enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final
from unicodedata import name as character_name

from eunoe.embed.encoder import Encoder
from eunoe.model.choices import RecipeName

THRESHOLD_DEPTH: Final = 10
"""How many hits a threshold looks at."""
_FIRST_OF_REST: Final = 5
_MIN_SCORE: Final = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceThreshold:
    """The lowest score, from 0 to 1, that the best hit must have for a question to count as answered.

    It grows with the mean log-odds of the sixth to the tenth hit, `base + slope * mean`, and stays between two scores.
    Missing hits count as the lowest score.
    """

    lowest: float
    highest: float
    rest: float
    """The lowest score of a hit after the best."""
    base: float = 0.0
    slope: float = 0.0

    @classmethod
    def fixed(cls, score: float) -> RelevanceThreshold:
        """The same for every hit."""
        return cls(lowest=score, highest=score, rest=score)

    def needed(self, scores: Sequence[float]) -> float:
        """What the best of these must have.

        >>> threshold = RelevanceThreshold(lowest=0.05, highest=0.8, rest=0.05, base=2.25, slope=0.7)
        >>> [round(threshold.needed([0.9] + [rest] * 9), 2) for rest in (0.01, 0.05, 0.1, 0.5)]
        [0.28, 0.55, 0.67, 0.8]
        """
        count = THRESHOLD_DEPTH - _FIRST_OF_REST
        rest = [*scores[_FIRST_OF_REST:THRESHOLD_DEPTH], *[0.0] * count][:count]
        odds = self.base + self.slope * sum(map(_log_odds, rest)) / count
        return min(max(1 / (1 + exp(-odds)), self.lowest), self.highest)

    def count_passing(self, scores: Sequence[float]) -> int:
        """How many of these, best first, bear on the question.

        >>> RelevanceThreshold.fixed(0.3).count_passing([0.9, 0.4, 0.2])
        2
        """
        if not scores or scores[0] < self.needed(scores):
            return 0
        return 1 + sum(score >= self.rest for score in scores[1:])


def _log_odds(score: float) -> float:
    within = min(max(score, _MIN_SCORE), 1 - _MIN_SCORE)
    return log(within / (1 - within))


THRESHOLDS: Final = {"default": RelevanceThreshold(lowest=0.55, highest=0.55, rest=0.05)}
"""By recipe."""
JUDGE_RECIPES: Final[Mapping[RecipeName, RecipeName]] = {"associative": "default"}
"""Recipes that say well which documents are nearest, but not whether any is near: for them another one says that."""
MIN_SHARE_OF_BEST: Final = 0.2
"""Where one recipe says whether and another which: the lowest score of a document, as a share of the best one's."""
WORDS_RECIPE: Final[RecipeName] = "lexical"
"""The recipe that says whether any is near where the embedder cannot read the question."""
WORDS_THRESHOLD: Final = RelevanceThreshold(lowest=0.09, highest=0.5, rest=0.03, base=-0.5, slope=0.3)
_LATIN_EMBEDDERS: Final = frozenset({Encoder.name, "wordllama-256", "minilm-l6-v2"})
"""Names of embedders for which texts in other scripts are all alike."""


def threshold_of(recipe: str) -> RelevanceThreshold:
    """The threshold of a recipe; one that was not measured lets everything pass."""
    return THRESHOLDS.get(recipe, RelevanceThreshold.fixed(0.0))


def can_read(embedder: str, question: str) -> bool:
    """Whether an embedder of this name tells apart what is written in the script of most of the question.

    >>> [can_read("wordllama-256", text) for text in ("Who fixed it?", "Кто это исправил?", "誰が直した?", "7 + 7")]
    [True, False, False, True]
    >>> can_read("openai:some-model", "Кто это исправил?")
    True
    """
    letters = [character for character in question if character.isalpha()]
    latin = sum("LATIN" in character_name(letter, "").split() for letter in letters)
    return embedder not in _LATIN_EMBEDDERS or 2 * latin >= len(letters)
