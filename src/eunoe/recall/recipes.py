"""Ways to rank, as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """What each kind of evidence is worth. The sum, through the logistic curve, is the score.

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
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "bias"}
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
    term_two_before=0.31, term_after=0.17, term_answer=0.51, window=2.35, session_term=0.93,
    dense=3.14, dense_before=1.13, dense_two_before=0.85, dense_after=0.69, dense_answer=0.64, session_dense=1.15,
    speaker=0.83, date=1.83, when=0.89, amount=0.78, user=0.74, length=0.42, question=-0.49, answer=0.08,
    bias=-6.89,
)  # fmt: skip
_BARE: Final = Blend(
    term=0.69, term_before=0.48, term_two_before=0.93, term_after=0.52, term_answer=0.88, window=3.19,
    session_term=1.03, speaker=0.80, date=1.66, when=0.88, amount=0.78, user=0.70, length=0.40, question=-0.39,
    answer=0.17, bias=-6.40,
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
