"""Recipes: ways to rank, as data. How the weights were fitted: docs/decisions/0007-recipe.md and 0019-scores.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from eunoe.embed.encoder import Encoder

REFERENCE_ITEMS: Final = 150
"""With so many items to choose from nothing is taken off a score, nor added to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """The weights of all signals. The weighted sum, through the logistic curve, is the score: 0.5 is where a best hit
    is as likely to belong to a question that the memory can answer as to one that it cannot.

    Terms are shares (0 to 1) of the question's words, rare words counting for more: in the item, in a neighbour, in
    both together (`window`), in its session. Dense values are cosines above what is usual in the stream. `answer` marks
    a turn that follows a question, and `term_answer` and `dense_answer` count what that question shares with this one.
    `exact` is the share of the question's identifiers that the item itself holds. `feedback` is the share of the rare
    words of the best candidates that a turn has too: what belongs together is told in several places. `later` marks the
    later of two like statements among the best, where the question asks for what is true now.

    The more there is to choose from, the better the best of it, whatever was asked. So `size_penalty` times the
    logarithm of the number of items, against `REFERENCE_ITEMS`, is taken off the sum of all that is searched together.
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
    time: float = 0.0
    number: float = 0.0
    user: float = 0.0
    length: float = 0.0
    question: float = 0.0
    answer: float = 0.0
    feedback: float = 0.0
    later: float = 0.0
    bias: float = 0.0
    size_penalty: float = 0.0
    weights: tuple[tuple[str, float], ...] = field(init=False, repr=False, compare=False)
    """The signals that count, with their weights."""

    def __post_init__(self) -> None:
        names = [each.name for each in fields(self) if each.init and each.name not in ("bias", "size_penalty")]
        weights = ((name, getattr(self, name)) for name in names)
        object.__setattr__(self, "weights", tuple((name, weight) for name, weight in weights if weight))


class LengthBlend(NamedTuple):
    """Weights for vectors of one model, in streams of short and of long texts."""

    short: Blend
    long: Blend


@lru_cache(maxsize=256)
def interpolate(first: Blend, second: Blend, share: float) -> Blend:
    """The weights between two, where 0 gives the first and 1 the second."""
    names = [each.name for each in fields(Blend) if each.init]
    mixed = {name: (1 - share) * getattr(first, name) + share * getattr(second, name) for name in names}
    return Blend(**mixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphWeights:
    """The weights of the signals in the entity graph.

    `walk` is the logarithm of where the walk ends up, against its best. `lexical` is the share of the best BM25 there
    can be, `dense` the cosine above what is usual, `sentence` the share of the question's other words in one sentence.
    `title` marks a passage about an entity of the question, `mention` is the share of these entities that it has.
    A bridge is an entity in a sentence around one of the question's: `bridge` is how well the best sentence that leads
    to what the passage is about fits the question, `title_bridge` marks that it stands in a passage about an entity of
    the question.
    """

    walk: float = 0.0
    lexical: float = 0.0
    dense: float = 0.0
    sentence: float = 0.0
    title: float = 0.0
    mention: float = 0.0
    bridge: float = 0.0
    title_bridge: float = 0.0
    depth: int = 40
    """How many of the walk's best are ranked by all signals; the others follow in the walk's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphConfidence:
    """How far the best passages together answer a question at all, on the scale of `Blend`: the sum, through the
    logistic curve, is the score of the best. The others have less by `spread` times what separates them."""

    lexical: float = 0.0
    dense: float = 0.0
    sentence: float = 0.0
    mention: float = 0.0
    margin: float = 0.0
    """How far the best stands out from the sixth to the tenth."""
    bias: float = 0.0
    spread: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentScale:
    """How far a document bears on a question, by what it has of it itself. The sum, through the logistic curve, is its
    score, where 0.5 means what it does in `Blend`.

    `term` is the share of the question's words that it has. `about` marks a document about a name in the question, or
    about one to which such a document leads. `cosine` is the cosine as it is: a question on something else has a low
    one everywhere. It is used for the encoder in the package. Cosines of other models cannot be compared with it: of
    them counts only what is above the usual (`dense`). `size_penalty` is as in `Blend`.
    """

    term: float = 0.0
    cosine: float = 0.0
    dense: float = 0.0
    short: float = 0.0
    about: float = 0.0
    bias: float = 0.0
    size_penalty: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankSettings:
    """A second stage for a blend: the reranker reads the best together with the question.

    What its score lies above the baseline, times the weight, is added to the sum of `Blend`.
    """

    depth: int = 0
    """How many of the best it reads; the others follow in the blend's order. 0: there is no second stage."""
    weight: float = 0.0
    baseline: float = 0.0
    budget_ms: float | None = None
    """How many milliseconds it may read; None: as long as it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A named way to rank: a blend of all signals, the ranks or values of single ones, the entity graph, or the blend
    and the graph together (`documents`)."""

    name: str
    method: Literal["blend", "rrf", "lexical", "dense", "associative", "documents"] = "blend"
    blend: Blend = Blend()
    """Used when the question has a vector."""
    blends_by_model: Mapping[str, LengthBlend] = field(default_factory=dict)
    """Used in its place for vectors of these models."""
    lexical_blend: Blend = Blend()
    """Used when the question has no vector."""
    rrf_k: int = 60
    """The constant of reciprocal rank fusion."""
    graph_weights: GraphWeights = GraphWeights()
    graph_confidence: GraphConfidence = GraphConfidence()
    """Used when the question has a vector."""
    lexical_graph_confidence: GraphConfidence = GraphConfidence()
    """Used when it has none."""
    document_scale: DocumentScale = DocumentScale()
    """Used when the question has a vector."""
    document_scales_by_model: Mapping[str, DocumentScale] = field(default_factory=dict)
    """Used in its place for vectors of these models."""
    lexical_document_scale: DocumentScale = DocumentScale()
    """Used for documents without a vector, and when the question has none."""
    rerank: RerankSettings = RerankSettings()


_BLEND: Final = Blend(
    exact=4.00, term=0.35, term_before=0.72, term_two_before=1.04, term_after=0.51, term_answer=0.39, window=3.60,
    session_term=1.27, dense=6.63, dense_before=2.56, dense_two_before=1.46, dense_after=1.49, dense_answer=0.85,
    session_dense=2.15, speaker=1.94, date=2.04, time=1.35, number=1.45, user=1.44, length=0.93, question=-0.89,
    answer=0.20, feedback=4.00, later=6.00, bias=-5.04, size_penalty=0.75,
)  # fmt: skip
_SHORT: Final = Blend(
    exact=4.00, term=0.35, term_before=1.50, term_two_before=1.77, term_answer=1.15, window=1.90, session_term=1.03,
    dense=12.37, dense_before=2.88, dense_two_before=2.54, dense_after=0.40, dense_answer=1.90, session_dense=5.02,
    speaker=2.21, date=1.94, time=0.79, number=1.05, user=0.94, length=0.27, question=-1.25, answer=0.42,
    feedback=4.00, later=6.00, bias=-6.52, size_penalty=1.04,
)  # fmt: skip
_LONG: Final = Blend(
    exact=4.00, term=1.38, term_before=1.55, term_two_before=0.16, term_after=1.00, term_answer=0.48, window=2.72,
    session_term=0.59, dense=10.18, dense_before=1.52, dense_two_before=0.19, dense_after=2.01, dense_answer=0.56,
    session_dense=3.44, speaker=1.16, date=1.22, time=0.45, number=0.65, user=1.31, length=0.46, question=-0.03,
    feedback=4.00, later=6.00, bias=-6.52, size_penalty=1.04,
)  # fmt: skip
_LEXICAL_BLEND: Final = Blend(
    exact=4.00, term=2.26, term_before=1.60, term_two_before=1.48, term_after=1.06, term_answer=0.67, window=3.35,
    session_term=1.07, speaker=1.40, date=1.61, time=1.08, number=1.13, user=0.98, length=0.64, question=-0.54,
    answer=0.22, feedback=4.00, bias=-2.86, size_penalty=0.47,
)  # fmt: skip


_DEFAULT: Final = Recipe(
    name="default",
    blend=_BLEND,
    blends_by_model={Encoder.name: LengthBlend(_SHORT, _LONG)},
    lexical_blend=_LEXICAL_BLEND,
)
_THOROUGH: Final = replace(_DEFAULT, name="thorough", rerank=RerankSettings(depth=22, weight=0.5, baseline=-1.21))
_ASSOCIATIVE: Final = Recipe(
    name="associative",
    method="associative",
    graph_weights=GraphWeights(
        walk=0.85, lexical=1.71, dense=1.49, sentence=0.94, title=1.73, mention=-0.94, bridge=0.72, title_bridge=2.49
    ),
    graph_confidence=GraphConfidence(lexical=5.63, dense=4.76, sentence=2.15, mention=1.52, margin=0.34, bias=-6.19),
    lexical_graph_confidence=GraphConfidence(lexical=7.80, sentence=2.49, mention=1.95, margin=0.32, bias=-5.23),
)
# Fitted on own and foreign questions of technical and of encyclopedic text: docs/decisions/0043-project-ranking.md.
_DOCUMENTS: Final = replace(
    _DEFAULT,
    name="documents",
    method="documents",
    graph_weights=_ASSOCIATIVE.graph_weights,
    graph_confidence=_ASSOCIATIVE.graph_confidence,
    lexical_graph_confidence=_ASSOCIATIVE.lexical_graph_confidence,
    document_scale=DocumentScale(term=8.7, dense=14.0, about=4.0, bias=-4.8, size_penalty=0.73),
    document_scales_by_model={
        Encoder.name: DocumentScale(term=6.0, cosine=18.0, short=0.15, about=2.3, bias=-6.4, size_penalty=0.8)
    },
    lexical_document_scale=DocumentScale(term=12.5, about=4.4, bias=-3.1, size_penalty=0.47),
)

MAX_BUDGET_MS: Final = 60_000
"""Longer than reading ever takes."""


def within_budget(milliseconds: float) -> Recipe:
    """`thorough`, as far as it gets in so many milliseconds of reading."""
    return replace(_THOROUGH, rerank=replace(_THOROUGH.rerank, budget_ms=float(milliseconds)))


def divide_budget(recipe: Recipe, count: int) -> Recipe:
    """The same recipe for each of several questions that are asked together."""
    budget = recipe.rerank.budget_ms
    return (
        recipe if budget is None else replace(recipe, rerank=replace(recipe.rerank, budget_ms=budget / max(count, 1)))
    )


RECIPES: Final[Mapping[str, Recipe]] = {
    "default": _DEFAULT,
    "thorough": _THOROUGH,
    "lexical": Recipe(name="lexical", method="lexical"),
    "dense": Recipe(name="dense", method="dense"),
    "rrf": Recipe(name="rrf", method="rrf"),
    "associative": _ASSOCIATIVE,
    "documents": _DOCUMENTS,
}
