"""Ways to rank, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Final, Literal, NamedTuple

USUAL: Final = 150
"""With so many items to choose from nothing is taken off a score, nor added to it."""
_NO_EVIDENCE: Final = frozenset({"bias", "crowd"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """What each kind of evidence is worth. The sum, through the logistic curve, is the score: 0.5 is where a best hit
    is as likely to belong to a question that the memory can answer as to one that it cannot.

    Terms are shares (0 to 1) of the question's telling words: in the item, in a neighbour, in both together
    (`window`), in its session. Dense values are cosines above what is usual in the stream. `answer` marks a turn
    that follows a question, and `term_answer` and `dense_answer` count what that question shares with this one.
    `exact` is the share of the question's identifiers that the item itself holds. `echo` is the share of the telling
    words of the turns found first that a turn has too: what belongs together is told in several places.

    The more there is to choose from, the more speaks for the best of it, whatever was asked. So `crowd` times the
    logarithm of how many there are, against `USUAL`, is taken off the sum: the same for all that is searched together.
    """

    term: float = 0.0
    term_before: float = 0.0
    term_two_before: float = 0.0
    term_after: float = 0.0
    term_answer: float = 0.0
    window: float = 0.0
    session_term: float = 0.0
    dense: float = 0.0
    dense_before: float = 0.0
    dense_two_before: float = 0.0
    dense_after: float = 0.0
    dense_answer: float = 0.0
    session_dense: float = 0.0
    exact: float = 0.0
    speaker: float = 0.0
    date: float = 0.0
    when: float = 0.0
    amount: float = 0.0
    user: float = 0.0
    length: float = 0.0
    question: float = 0.0
    answer: float = 0.0
    echo: float = 0.0
    bias: float = 0.0
    crowd: float = 0.0
    weights: tuple[tuple[str, float], ...] = field(init=False, repr=False, compare=False)
    """Kinds of evidence that count, with what each is worth."""

    def __post_init__(self) -> None:
        named = [(each.name, getattr(self, each.name)) for each in fields(self) if each.init]
        counted = ((name, weight) for name, weight in named if weight and name not in _NO_EVIDENCE)
        object.__setattr__(self, "weights", tuple(counted))


class Tuned(NamedTuple):
    """What evidence is worth with vectors of one model, in streams of short and of long items."""

    short: Blend
    long: Blend

    def at(self, wordy: float) -> Blend:
        """The weights for a stream between the two (`Layout.wordy`)."""
        return _between(self.short, self.long, round(wordy, 2))


@lru_cache(maxsize=256)
def _between(short: Blend, long: Blend, share: float) -> Blend:
    names = [each.name for each in fields(Blend) if each.init]
    return Blend(**{name: (1 - share) * getattr(short, name) + share * getattr(long, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What each kind of evidence is worth in the graph of names.

    `walk` is the logarithm of where the walk ends up, against its best. `words` is the share of the best BM25 there can
    be, `vector` the cosine above what is usual, `sentence` the share of the question's other words in one sentence.
    A passage is `about` a name in the question, has some of the names (`named`), or is about a name that the sentences
    around the question's names lead to: `led` is how well the best of these sentences fits, `bridged` marks that it
    stands in a passage about a name in the question.
    """

    walk: float = 0.0
    words: float = 0.0
    vector: float = 0.0
    sentence: float = 0.0
    about: float = 0.0
    named: float = 0.0
    led: float = 0.0
    bridged: float = 0.0
    depth: int = 40
    """How many of the walk's best are weighed anew; the others follow in the walk's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How far the best passages together answer a question at all, on the scale of `Blend`: the sum, through the
    logistic curve, is the score of the best. The others have less by `spread` times what separates them."""

    words: float = 0.0
    vector: float = 0.0
    sentence: float = 0.0
    named: float = 0.0
    lead: float = 0.0
    """How far the best stand out from the sixth to the tenth."""
    bias: float = 0.0
    spread: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A second stage for a blend: the reranker reads the best together with the question.

    What its score lies above the usual one, times the weight, is added to the sum of `Blend`.
    """

    depth: int = 0
    """How many of the best it reads; the others follow in the blend's order. 0: there is no second stage."""
    weight: float = 0.0
    usual: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A named way to rank: a blend of all evidence, the ranks or values of plain legs, or the graph of names."""

    name: str
    method: Literal["blend", "rrf", "lexical", "dense", "associative"] = "blend"
    blend: Blend = Blend()
    """Used when the question has a vector."""
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    """Used in its place for vectors of these models."""
    bare: Blend = Blend()
    """Used when it has none."""
    k: int = 60
    """The constant of reciprocal rank fusion."""
    links: Links = Links()
    trust: Trust = Trust()
    """Used when the question has a vector."""
    bare_trust: Trust = Trust()
    """Used when it has none."""
    reading: Reading = Reading()


_BLEND: Final = Blend(
    exact=4.00, term=0.35, term_before=0.72, term_two_before=1.04, term_after=0.51, term_answer=0.39, window=3.60,
    session_term=1.27, dense=6.63, dense_before=2.56, dense_two_before=1.46, dense_after=1.49, dense_answer=0.85,
    session_dense=2.15, speaker=1.94, date=2.04, when=1.35, amount=1.45, user=1.44, length=0.93, question=-0.89,
    answer=0.20, echo=4.00, bias=-5.04, crowd=0.75,
)  # fmt: skip
_SHORT: Final = Blend(
    exact=4.00, term=1.01, term_before=1.93, term_two_before=2.41, term_answer=1.43, window=3.58, session_term=1.23,
    dense=11.26, dense_before=2.85, dense_two_before=2.39, dense_after=0.36, dense_answer=1.72, session_dense=4.58,
    speaker=2.34, date=2.64, when=1.29, amount=1.17, user=0.89, length=0.55, question=-1.63, answer=0.25, echo=4.00,
    bias=-6.41, crowd=1.07,
)  # fmt: skip
_LONG: Final = Blend(
    exact=4.00, term=2.08, term_before=1.24, term_two_before=0.03, term_after=1.47, term_answer=0.75, window=3.22,
    session_term=0.48, dense=9.44, dense_before=1.77, dense_after=2.91, dense_answer=0.66, session_dense=3.08,
    speaker=1.03, date=1.41, amount=0.91, user=1.43, length=0.35, question=-0.27, echo=4.00, bias=-6.41, crowd=1.07,
)  # fmt: skip
_TUNED: Final = {"eunoe-1": Tuned(_SHORT, _LONG)}
_BARE: Final = Blend(
    exact=4.00, term=2.26, term_before=1.60, term_two_before=1.48, term_after=1.06, term_answer=0.67, window=3.35,
    session_term=1.07, speaker=1.40, date=1.61, when=1.08, amount=1.13, user=0.98, length=0.64, question=-0.54,
    answer=0.22, echo=4.00, bias=-2.86, crowd=0.47,
)  # fmt: skip

_LINKS: Final = Links(
    walk=0.85, words=1.71, vector=1.49, sentence=0.94, about=1.73, named=-0.94, led=0.72, bridged=2.49,
)  # fmt: skip
_TRUST: Final = Trust(words=5.63, vector=4.76, sentence=2.15, named=1.52, lead=0.34, bias=-6.19)
_BARE_TRUST: Final = Trust(words=7.80, sentence=2.49, named=1.95, lead=0.32, bias=-5.23)
_READING: Final = Reading(depth=30, weight=0.50, usual=-0.60)

RECIPES: Final[dict[str, Recipe]] = {
    recipe.name: recipe
    for recipe in (
        Recipe(name="default", blend=_BLEND, tuned=_TUNED, bare=_BARE),
        Recipe(name="thorough", blend=_BLEND, tuned=_TUNED, bare=_BARE, reading=_READING),
        Recipe(name="lexical", method="lexical"),
        Recipe(name="dense", method="dense"),
        Recipe(name="rrf", method="rrf"),
        Recipe(name="associative", method="associative", links=_LINKS, trust=_TRUST, bare_trust=_BARE_TRUST),
    )
}
