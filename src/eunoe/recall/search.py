"""From a question to what answers it: the same ranking over one stream or several."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.lexical import Group
from eunoe.index.stream import StreamIndex
from eunoe.recall import query as queries
from eunoe.recall.evidence import Evidence, gather
from eunoe.recall.filters import ALL, Filter
from eunoe.recall.query import Plan, Question, Synonyms
from eunoe.recall.recipes import RECIPES, Blend, Recipe

Floats = NDArray[np.float32]

_SHOWN: Final = 0.05
_GROUNDS: Final = ("window", "session_term", "dense", "dense_before", "dense_after", "session_dense", "date")
_SPOKEN_AS: Final = {
    "term": "lexical", "window": "lexical", "dense": "dense", "session_term": "session", "session_dense": "session",
    "term_before": "neighbour", "term_two_before": "neighbour", "term_after": "neighbour", "term_answer": "neighbour",
    "dense_before": "neighbour", "dense_two_before": "neighbour", "dense_after": "neighbour",
    "dense_answer": "neighbour", "speaker": "speaker", "date": "date", "when": "time", "amount": "number",
    "user": "role",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """One ground for a hit: its kind, its share of the evidence, and what was seen."""

    name: str
    weight: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """One item found: the index it is in, its number and id there, its score and why.

    With the default recipe the score is on the scale of `Blend`, the same in every stream: an unrelated question gets
    low scores throughout. `lexical` is the share of the best BM25 there can be, `dense` the cosine, `rrf` the share of
    being first in both.
    """

    stream: int
    seq: int
    id: str
    score: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class _Ask:
    """One search: the question and how it is to be answered."""

    question: Question
    vector: Floats | None
    recipe: Recipe
    filter: Filter
    synonyms: Synonyms | None


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A score per row of an index, 0 for what is not found, and how to explain one."""

    scores: NDArray[np.float64]
    explain: Callable[[int], tuple[Reason, ...]]


def search(
    indexes: Sequence[StreamIndex],
    query: str,
    query_vector: Floats | None = None,
    recipe: Recipe = RECIPES["default"],
    filter: Filter = ALL,
    now: float = 0.0,
    limit: int = 10,
    synonyms: Synonyms | None = None,
) -> list[Found]:
    """The best items of all indexes together, best first, ties by id. Filters apply before anything is ranked.

    `query_vector` is the vector of `query.without_names(query, indexes)`.
    """
    languages = {language for index in indexes for language in index.lexical.languages}
    ask = _Ask(queries.read(query, languages, now), query_vector, recipe, filter, synonyms)
    ranked = (
        _fused(indexes, ask) if recipe.method == "rrf" else [_RANKERS[recipe.method](each, ask) for each in indexes]
    )
    best = heapq.nsmallest(max(limit, 0), _candidates(indexes, ranked, limit))
    return [
        Found(number, indexes[number].seqs[row], name, -score, ranked[number].explain(row))
        for score, name, number, row in best
    ]


def _candidates(
    indexes: Sequence[StreamIndex], ranked: Sequence[_Ranked], limit: int
) -> Iterator[tuple[float, str, int, int]]:
    for number, (index, scores) in enumerate((index, each.scores) for index, each in zip(indexes, ranked, strict=True)):
        rows = np.flatnonzero(scores > 0)
        if len(rows) > limit > 0:
            # Everything that ties with the last place stays: the id decides, not the order of rows.
            edge = np.partition(scores[rows], len(rows) - limit)[len(rows) - limit]
            rows = rows[scores[rows] >= edge]
        for row in rows.tolist():
            yield -float(scores[row]), index.ids[row], number, row


def _blended(index: StreamIndex, ask: _Ask) -> _Ranked:
    plan = queries.plan(ask.question, index, ask.synonyms)
    evidence = gather(index, plan, ask.vector, ask.filter.mask(index, ask.question.now))
    blend = ask.recipe.bare if evidence.cosines is None else ask.recipe.blend
    total = np.full(index.rows, blend.bias, np.float64)
    for name, weight in blend.weights().items():
        if name in evidence.legs:
            total += weight * evidence.legs[name]
    scores = np.where(_grounded(evidence), 1 / (1 + np.exp(-np.clip(total, -40, 40))), 0)
    return _Ranked(scores, lambda row: _reasons(evidence, plan, blend, row))


def _grounded(evidence: Evidence) -> NDArray[np.bool_]:
    """Rows that may be found and for which more speaks than who they are."""
    legs = [evidence.legs[name] > 0 for name in _GROUNDS if name in evidence.legs]
    grounded: NDArray[np.bool_] = evidence.mask & np.logical_or.reduce(legs)
    return grounded


def _reasons(evidence: Evidence, plan: Plan, blend: Blend, row: int) -> tuple[Reason, ...]:
    shares: dict[str, float] = {}
    for name, weight in blend.weights().items():
        spoken = _SPOKEN_AS.get(name)
        if spoken and name in evidence.legs:
            shares[spoken] = shares.get(spoken, 0.0) + weight * float(evidence.legs[name][row])
    total = sum(share for share in shares.values() if share > 0) or 1.0
    found = sorted(((share / total, name) for name, share in shares.items() if share / total >= _SHOWN), reverse=True)
    return tuple(Reason(name, round(share, 3), _detail(name, evidence, plan, row)) for share, name in found)


def _detail(name: str, evidence: Evidence, plan: Plan, row: int) -> str:
    if name == "lexical":
        return _words(plan.groups, evidence.matches[:, row])
    if name == "dense" and evidence.cosines is not None:
        return f"cosine {evidence.cosines[row]:.2f}"
    return ", ".join(sorted(plan.names)) if name == "speaker" else ""


def _words(groups: Sequence[Group], fits: Floats) -> str:
    """The words of the question that were met; ~ where by another word of like meaning."""
    met = ((group.label, fit) for group, fit in zip(groups, fits.tolist(), strict=True) if fit > 0)
    return ", ".join(label if fit >= 1 else f"~{label}" for label, fit in met)


def _lexical(index: StreamIndex, ask: _Ask) -> _Ranked:
    groups = queries.plain(ask.question, index)
    scores = np.where(ask.filter.mask(index, ask.question.now), index.lexical.bm25(groups), 0).astype(np.float64)
    return _Ranked(scores, lambda row: (Reason("lexical", 1.0, _words(groups, index.lexical.matches(groups)[:, row])),))


def _dense(index: StreamIndex, ask: _Ask) -> _Ranked:
    found = None if ask.vector is None else index.dense.cosines(ask.vector)
    cosines = np.zeros(index.rows) if found is None else found
    scores = np.where(ask.filter.mask(index, ask.question.now), np.clip(cosines, 0, 1), 0).astype(np.float64)
    return _Ranked(scores, lambda row: (Reason("dense", 1.0, f"cosine {cosines[row]:.2f}"),))


def _fused(indexes: Sequence[StreamIndex], ask: _Ask) -> list[_Ranked]:
    """Reciprocal ranks of the lexical and the dense order over all indexes, as a share of being first in both."""
    legs = [[ranker(index, ask) for index in indexes] for ranker in (_lexical, _dense)]
    names = [name for index in indexes for name in index.ids]
    fused = np.zeros(len(names), np.float64)
    for leg in legs:
        scores = np.concatenate([fused[:0], *(ranked.scores for ranked in leg)])
        rows = sorted(np.flatnonzero(scores > 0).tolist(), key=lambda row: (-scores[row], names[row]))
        fused[rows] += (ask.recipe.k + 1) / (2 * (ask.recipe.k + np.arange(1, len(rows) + 1)))
    edges = np.cumsum([index.rows for index in indexes])[:-1]
    parts = np.split(fused, edges) if indexes else []
    return [_Ranked(scores, partial(_both, pair)) for scores, pair in zip(parts, zip(*legs, strict=True), strict=True)]


def _both(legs: Sequence[_Ranked], row: int) -> tuple[Reason, ...]:
    return tuple(reason for leg in legs if leg.scores[row] > 0 for reason in leg.explain(row))


_RANKERS: Final = {"blend": _blended, "lexical": _lexical, "dense": _dense}
