"""From a question to what answers it: the same ranking over one stream or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from math import exp, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.lexical import Group
from eunoe.index.stream import StreamIndex
from eunoe.model.hit import Reason
from eunoe.recall import graph_search
from eunoe.recall import query as queries
from eunoe.recall.evidence import Evidence, alone, gather
from eunoe.recall.filters import ALL, Filter
from eunoe.recall.query import Plan, Question, Synonyms
from eunoe.recall.recipes import RECIPES, USUAL, Blend, Recipe

Floats = NDArray[np.float32]
Explain = Callable[..., tuple[Reason, ...]]

_SHOWN: Final = 0.05
_HEARD: Final = 8
_ECHOED: Final = 40
_OFTEN: Final = 0.05
_GROUNDS: Final = ("term", "window", "dense", "dense_before", "dense_after", "date")
_SESSION_GROUNDS: Final = ("session_term", "session_dense")
_SPOKEN_AS: Final = {
    "term": "lexical", "window": "neighbour", "dense": "dense", "session_term": "session", "session_dense": "session",
    "term_before": "neighbour", "term_two_before": "neighbour", "term_after": "neighbour", "term_answer": "neighbour",
    "dense_before": "neighbour", "dense_two_before": "neighbour", "dense_after": "neighbour",
    "dense_answer": "neighbour", "exact": "exact", "speaker": "speaker", "date": "date", "when": "time",
    "amount": "number", "user": "role", "echo": "echo",
}  # fmt: skip
_SPOKEN_OF_FACTS: Final = _SPOKEN_AS | {
    name: "dense" if "dense" in name else "lexical"
    for name, spoken in _SPOKEN_AS.items()
    if spoken in ("neighbour", "session")
}
"""A fact has neither neighbours nor a session: its own words and vector stand in."""
_OWN: Final = {"window": "term", "session_term": "term", "session_dense": "dense"}
"""Legs in which a turn's own words or vector count as well: only what the other turns add to these is theirs."""


class Found(NamedTuple):
    """One item found: the index it is in, its number and id there, its score and why.

    With the default recipe the score is on the scale of `Blend`, the same among few items and among many: an unrelated
    question gets low scores throughout. The best of `associative` is told likewise (`Trust`), those after it score
    higher than there. `lexical` is the share of the best BM25 there can be, `dense` the cosine, `rrf` the share of
    being first in both.
    """

    stream: int
    seq: int
    id: str
    score: float
    explain: Explain

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return self.explain()


class _Ask(NamedTuple):
    """One search: the question and how it is to be answered."""

    question: Question
    vector: Floats | None
    recipe: Recipe
    filter: Filter
    synonyms: Synonyms | None
    model: str

    def blend(self, index: StreamIndex, evidence: Evidence) -> Blend:
        """The weights that suit what there is to go by."""
        tuned = self.recipe.tuned.get(self.model)
        if evidence.cosines is None:
            blend = self.recipe.bare
        else:
            blend = tuned.at(index.layout.wordy) if tuned else self.recipe.blend
        return blend if evidence.talk else alone(blend)


class _Ranked(NamedTuple):
    """A score per row of an index, 0 for what is not found, and how to explain some of them.

    An explanation holds what it needs of its row and nothing of the index.
    """

    scores: NDArray[np.float64]
    explain: Callable[[list[int]], list[Explain]]
    many: float = 0.0
    """How many rows there were to choose from (`Layout.bulk`),"""
    crowd: float = 0.0
    """and what that is worth (`Blend`)."""


def search(
    indexes: Sequence[StreamIndex],
    query: str,
    query_vector: Floats | None = None,
    recipe: Recipe = RECIPES["default"],
    filter: Filter = ALL,
    now: float = 0.0,
    limit: int = 10,
    synonyms: Synonyms | None = None,
    model: str = "",
) -> list[Found]:
    """The best items of all indexes together, best first, ties by id. Filters apply before anything is ranked.

    `query_vector` is the vector of `query.without_names(query, indexes)` by `model`.
    """
    languages = {language for index in indexes for language in index.lexical.languages}
    ask = _Ask(queries.read(query, languages, now), query_vector, recipe, filter, synonyms, model)
    ranked = (
        _fused(indexes, ask) if recipe.method == "rrf" else [_RANKERS[recipe.method](each, ask) for each in indexes]
    )
    best = sorted(_candidates(indexes, ranked, limit))[: max(limit, 0)]
    chosen: dict[int, list[int]] = {}
    for _, _, number, row in best:
        chosen.setdefault(number, []).append(row)
    rivals = _rivals(ranked)
    explained = {number: iter(ranked[number].explain(rows)) for number, rows in chosen.items()}
    return [
        Found(number, indexes[number].seqs[row], name, _among(rivals, -score), next(explained[number]))
        for score, name, number, row in best
    ]


def _rivals(ranked: Sequence[_Ranked]) -> float:
    """What the odds of all that is found are divided by: one number, so that it changes no order."""
    many = max(sum(each.many for each in ranked), 1)
    crowd = sum(each.many * each.crowd for each in ranked) / many
    return exp(crowd * log(many / USUAL))


def _among(rivals: float, score: float) -> float:
    return score if rivals == 1 else 1 / (1 + rivals * (1 / score - 1))


def _candidates(
    indexes: Sequence[StreamIndex], ranked: Sequence[_Ranked], limit: int
) -> Iterator[tuple[float, str, int, int]]:
    for number, (index, scores) in enumerate((index, each.scores) for index, each in zip(indexes, ranked, strict=True)):
        # Everything that ties with the last place stays: the id decides, not the order of rows. Rounded scores are
        # told apart much quicker, and rounding puts nothing behind what it was before.
        rough = scores.astype(np.float32)
        edge = np.partition(rough, -limit)[-limit] if len(rough) > limit > 0 else 0.0
        rows = (rough >= edge if edge > 0 else scores > 0).nonzero()[0]
        for row, score in zip(rows.tolist(), scores.take(rows).tolist(), strict=True):
            yield -score, index.ids[row], number, row


def _blended(index: StreamIndex, ask: _Ask) -> _Ranked:
    plan = queries.plan(ask.question, index, ask.synonyms)
    evidence = gather(index, plan, ask.vector, ask.filter.mask(index, ask.question.now))
    blend = ask.blend(index, evidence)
    total = np.full(index.rows, blend.bias, np.float64)
    for name, weight in blend.weights:
        if name in evidence.legs:
            total += evidence.legs[name] * weight
    grounded = _grounded(index, evidence)
    if blend.echo and evidence.talk and grounded.any():
        evidence.legs["echo"] = _echo(index, plan, np.where(grounded, total, -np.inf))
        total = _echoed(total, evidence.legs["echo"] * blend.echo, grounded)
    scores = np.where(grounded, 1 / (1 + np.exp(-np.maximum(total, -40))), 0)
    explain = partial(_blend_reasons, index, evidence, plan, blend)
    return _Ranked(scores, explain, float(index.layout.bulk[evidence.mask].sum()), blend.crowd)


def _echo(index: StreamIndex, plan: Plan, total: NDArray[np.float64]) -> Floats:
    """What each row has of the telling words of those found first, besides those of the question."""
    asked = {term for group in plan.groups for term in group.terms}
    first = sorted(np.argpartition(-total, _HEARD)[:_HEARD] if len(total) > _HEARD else range(len(total)))
    heard = [row for row in map(int, first) if total[row] > -np.inf]
    worth = (1 / (1 + np.exp(-np.maximum(total[heard], -40)))).tolist()
    return index.lexical.shares(index.lexical.told(heard, worth, asked, _ECHOED, _OFTEN))


def _echoed(total: NDArray[np.float64], echo: Floats, grounded: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Echoes set the order, not the scale: turns echo each other whatever was asked, so the best keeps its score."""
    heard = total + echo
    return heard + float(total[grounded].max() - heard[grounded].max())


def _grounded(index: StreamIndex, evidence: Evidence) -> NDArray[np.bool_]:
    """Rows that may be found and for which more speaks than who they are."""
    found = _best(evidence, _GROUNDS) > 0
    if evidence.talk and index.layout.named is not None:
        found |= index.layout.named & (_best(evidence, _SESSION_GROUNDS) > 0)
    return evidence.mask & found


def _best(evidence: Evidence, names: Sequence[str]) -> Floats:
    return reduce(np.maximum, [evidence.legs[name] for name in names if name in evidence.legs])


class _Grounds(NamedTuple):
    """What speaks for some rows of an index, read off before the index changes."""

    turns: NDArray[np.bool_] | None
    """Which are turns; None where there is no talk."""
    named: NDArray[np.bool_] | None
    """Which turns have a session that somebody named; None where none has."""
    legs: dict[str, Floats]
    matches: Floats
    cosines: Floats | None
    plan: Plan
    blend: Blend

    def reasons(self, place: int, read: float = 0.0) -> tuple[Reason, ...]:
        shares = {"read": read}
        for name, share in self._shares(place):
            shares[name] = shares.get(name, 0.0) + share
        if self.named is None or not self.named[place]:
            shares.pop("session", None)
        total = sum(share for share in shares.values() if share > 0) or 1.0
        shown = sorted(((share / total, name) for name, share in shares.items()), reverse=True)
        return tuple(
            Reason(name, round(share, 3), self._detail(name, place)) for share, name in shown if share >= _SHOWN
        )

    def _shares(self, place: int) -> Iterator[tuple[str, float]]:
        turn = self.turns is not None and self.turns[place]
        names = _SPOKEN_AS if turn else _SPOKEN_OF_FACTS
        for name, weight in self.blend.weights:
            if name not in self.legs or name not in names:
                continue
            value = float(self.legs[name][place])
            if turn and name in _OWN:
                own = max(float(self.legs[_OWN[name]][place]), 0.0)
                yield names[_OWN[name]], weight * own
                value -= own
            yield names[name], weight * value

    def _detail(self, name: str, place: int) -> str:
        if name == "lexical":
            return _words(self.plan.groups, self.matches[:, place].tolist())
        if name == "exact":
            return ", ".join(self.plan.groups[each].label for each in self.plan.exact if self.matches[each, place])
        if name == "dense" and self.cosines is not None:
            return f"cosine {self.cosines[place]:.2f}"
        return ", ".join(sorted(self.plan.names)) if name == "speaker" else ""


def _blend_reasons(index: StreamIndex, evidence: Evidence, plan: Plan, blend: Blend, rows: list[int]) -> list[Explain]:
    where, layout = np.array(rows), index.layout
    grounds = _Grounds(
        turns=layout.message.take(where) if evidence.talk else None,
        named=None if layout.named is None else layout.named.take(where),
        legs={name: leg.take(where) for name, leg in evidence.legs.items()},
        matches=evidence.matches.take(where, axis=1),
        cosines=None if evidence.cosines is None else evidence.cosines.take(where),
        plan=plan,
        blend=blend,
    )
    return [partial(grounds.reasons, place) for place in range(len(rows))]


def _words(groups: Sequence[Group], fits: Sequence[float]) -> str:
    """The words of the question that were met; ~ where by another word of like meaning.

    Of an identifier and its parts only the longest are told.
    """
    met = [(group, fit) for group, fit in zip(groups, fits, strict=True) if fit > 0]
    exact = [group for group, fit in met if fit >= 1]
    return ", ".join(
        group.label if fit >= 1 else f"~{group.label}"
        for group, fit in met
        if not any(group.whole == other.whole and group.label in other.label != group.label for other in exact)
    )


def _lexical(index: StreamIndex, ask: _Ask) -> _Ranked:
    groups = queries.plain(ask.question, index)
    scores = np.where(ask.filter.mask(index, ask.question.now), index.lexical.bm25(groups), 0).astype(np.float64)
    return _Ranked(scores, partial(_lexical_reasons, index, groups))


def _lexical_reasons(index: StreamIndex, groups: Sequence[Group], rows: list[int]) -> list[Explain]:
    fits = index.lexical.matches(groups).take(rows, axis=1).T.tolist()
    return [partial(_one, "lexical", _words(groups, each)) for each in fits]


def _dense(index: StreamIndex, ask: _Ask) -> _Ranked:
    found = None if ask.vector is None else index.dense.cosines(ask.vector)
    cosines = np.zeros(index.rows) if found is None else found
    scores = np.where(ask.filter.mask(index, ask.question.now), np.clip(cosines, 0, 1), 0).astype(np.float64)
    return _Ranked(scores, lambda rows: [partial(_one, "dense", f"cosine {cosines[row]:.2f}") for row in rows])


def _one(name: str, detail: str) -> tuple[Reason, ...]:
    return (Reason(name, 1.0, detail),)


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
    pairs = zip(*legs, strict=True)
    return [_Ranked(scores, partial(_fused_reasons, pair)) for scores, pair in zip(parts, pairs, strict=True)]


def _fused_reasons(legs: Sequence[_Ranked], rows: list[int]) -> list[Explain]:
    whys: dict[int, list[Explain]] = {row: [] for row in rows}
    for leg in legs:
        found = [row for row in rows if leg.scores[row] > 0]
        for row, explain in zip(found, leg.explain(found), strict=True):
            whys[row].append(explain)
    return [partial(_joined, whys[row]) for row in rows]


def _joined(whys: Sequence[Explain]) -> tuple[Reason, ...]:
    return tuple(reason for explain in whys for reason in explain())


def _associated(index: StreamIndex, ask: _Ask) -> _Ranked:
    """By the graph of names; an index that has none is ranked by the blend."""
    if index.graph is None:
        return _blended(index, ask._replace(recipe=RECIPES["default"]))._replace(many=0)
    mask = ask.filter.mask(index, ask.question.now)
    found = graph_search.rank(index, index.graph, ask.question, ask.vector, mask, ask.synonyms, ask.recipe)
    return _Ranked(found.scores, partial(_associated_reasons, index, ask, found))


def _associated_reasons(index: StreamIndex, ask: _Ask, found: graph_search.Ranked, rows: list[int]) -> list[Explain]:
    groups = queries.plain(ask.question, index)
    fits = index.lexical.matches(groups).take(rows, axis=1).T.tolist()
    cosines = None if ask.vector is None else index.dense.cosines(ask.vector)
    whys: list[Explain] = []
    for row, each in zip(rows, fits, strict=True):
        told = {"lexical": _words(groups, each), "dense": "" if cosines is None else f"cosine {cosines[row]:.2f}"}
        whys.append(partial(tuple, [why._replace(detail=told.get(why.name, why.detail)) for why in found.reasons(row)]))
    return whys


_RANKERS: Final = {"associative": _associated, "blend": _blended, "lexical": _lexical, "dense": _dense}
