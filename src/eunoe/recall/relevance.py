"""Whether what was found bears on the question at all: floors for scores of recall, by recipe, as measured.

A score of the default recipe means the same among few documents and among many, so that one floor serves all. Vectors
of a model that cannot read a question say nothing about it; its words alone do then. These score more among many, also
where none answers: the best is held against those that come after it, and must stand out from them or score so much
that this says enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final
from unicodedata import name as name_of

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
FLOORS: Final = {"default": Floor(least=0.55, most=0.55, rest=0.05)}
"""By recipe."""
SHOWN: Final = Floor(least=0.1, most=0.1, rest=0.005)
"""For what stands in a context: far less, since its budget limits it anyway."""
SHOWN_READ: Final = Floor(least=0.05, most=0.05, rest=0.0005)
"""The same where a second stage has read: it lowers all that does not answer."""
JUDGES: Final = {"associative": "default"}
"""Recipes that say well which documents are nearest, but not whether any is near: for them another one says that."""
SHARE: Final = 0.2
"""Where one recipe says whether and another which: the least score of a document, as a share of the best one's."""
WORDS: Final = "lexical"
"""The recipe that says whether any is near where the embedder cannot read the question."""
WORDS_FLOOR: Final = Floor(least=0.09, most=0.5, rest=0.03, base=-0.5, lift=0.3)
_LATIN_ONLY: Final = frozenset({"eunoe-1", "wordllama-256", "minilm-l6-v2"})
"""Names of embedders for which texts in other scripts are all alike."""


def floor_of(recipe: str) -> Floor:
    """The floor of a recipe; one that was not measured has none."""
    return FLOORS.get(recipe, Floor.fixed(0.0))


def reads(embedder: str, question: str) -> bool:
    """Whether an embedder of this name tells apart what is written in the script of most of the question.

    >>> [reads("wordllama-256", said) for said in ("Who fixed it?", "Кто это исправил?", "誰が直した?", "7 + 7")]
    [True, False, False, True]
    >>> reads("openai:some-model", "Кто это исправил?")
    True
    """
    letters = [sign for sign in question if sign.isalpha()]
    latin = sum("LATIN" in name_of(sign, "").split() for sign in letters)
    return embedder not in _LATIN_ONLY or 2 * latin >= len(letters)


def _odds(score: float) -> float:
    even = min(max(score, _FAINT), 1 - _FAINT)
    return log(even / (1 - even))


def _score(odds: float) -> float:
    return 1 / (1 + exp(-odds))
