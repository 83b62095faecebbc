"""Ways to rank, as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """What each kind of evidence is worth. The sum, through the logistic curve, is the score: 0.5 is where a best hit
    is as likely to belong to a question that the memory can answer as to one that it cannot.

    Terms are shares (0 to 1) of the question's telling words: in the item, in a neighbour, in both together
    (`window`), in its session. Dense values are cosines above what is usual in the stream. `answer` marks a turn
    that follows a question, and `term_answer` and `dense_answer` count what that question shares with this one.
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
    speaker: float = 0.0
    date: float = 0.0
    when: float = 0.0
    amount: float = 0.0
    user: float = 0.0
    length: float = 0.0
    question: float = 0.0
    answer: float = 0.0
    bias: float = 0.0

    def weights(self) -> dict[str, float]:
        """Weight by kind of evidence, those that count."""
        return _weights(self)


@cache
def _weights(blend: Blend) -> dict[str, float]:
    named = {field.name: getattr(blend, field.name) for field in fields(blend) if field.name != "bias"}
    return {name: weight for name, weight in named.items() if weight}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A named way to rank: a blend of all evidence, or the ranks or values of plain legs."""

    name: str
    method: Literal["blend", "rrf", "lexical", "dense"] = "blend"
    blend: Blend = Blend()
    """Used when the question has a vector."""
    bare: Blend = Blend()
    """Used when it has none."""
    k: int = 60
    """The constant of reciprocal rank fusion."""


_BLEND: Final = Blend(
    term_two_before=0.48, term_after=0.26, term_answer=0.79, window=3.64, session_term=1.44,
    dense=4.87, dense_before=1.75, dense_two_before=1.32, dense_after=1.07, dense_answer=0.99, session_dense=1.78,
    speaker=1.29, date=2.84, when=1.38, amount=1.21, user=1.15, length=0.65, question=-0.76, answer=0.12,
    bias=-4.55,
)  # fmt: skip
_BARE: Final = Blend(
    term=0.89, term_before=0.62, term_two_before=1.20, term_after=0.67, term_answer=1.13, window=4.10,
    session_term=1.32, speaker=1.03, date=2.13, when=1.13, amount=1.00, user=0.90, length=0.51, question=-0.50,
    answer=0.22, bias=-2.82,
)  # fmt: skip

RECIPES: Final[dict[str, Recipe]] = {
    recipe.name: recipe
    for recipe in (
        Recipe(name="default", blend=_BLEND, bare=_BARE),
        Recipe(name="lexical", method="lexical"),
        Recipe(name="dense", method="dense"),
        Recipe(name="rrf", method="rrf"),
    )
}
