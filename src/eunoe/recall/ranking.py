"""Ranking: from the signals of each row to the best candidates and why, in the same way over one stream or several."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache, partial, reduce
from math import exp, log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.graph import EntityGraph
from eunoe.index.lexical import NUMBER, TIME, LexicalIndex, TermGroup, group_fits
from eunoe.index.stream import ConversationLayout, StreamIndex
from eunoe.index.tables import Bools, Floats
from eunoe.model.result import Reason
from eunoe.recall.documents import GraphRanking, combine_scores, own_log_odds, rank_by_graph, short_excess
from eunoe.recall.query import QueryPlan, Question, Synonyms, exact_groups, plan_query, read_question
from eunoe.recall.recipes import RECIPES, REFERENCE_ITEMS, Blend, Recipe, interpolate
from eunoe.recall.request import NO_FILTER, Filter
from eunoe.text.dates import DAY_SECONDS, DateRange
from eunoe.text.languages import FRAME_WORDS, INDEFINITE_WORDS, STOP_WORDS

Reasons = tuple[Reason, ...]
Explain = Callable[..., Reasons]
Doubles = NDArray[np.float64]
ExplainRows = Callable[[list[int]], list[Explain]]

_FEEDBACK_ROWS: Final = 8
_FEEDBACK_TERMS: Final = 40
_FEEDBACK_MAX_SHARE: Final = 0.05
"""Feedback comes from so many rows and terms, and not from terms that a larger share of all rows have."""
_MIN_LOG_ODDS: Final = -40
_EMPTY_LOG_ODDS: Final = -6.0
"""At most, for what tells nothing: whatever may be an answer comes first."""
_MAX_EMPTY_WORDS: Final = 8
_EMPTY_WORDS: Final = FRAME_WORDS.union(["know", "sure", "idea", "sorry", "don't"], *STOP_WORDS.values())
"""Words that name nothing, of which an empty row has so many at most."""
_LATER_EXCESS: Final = 0.1
"""A later statement stands just above the one whose place it takes."""
_IMAGINED_DOCUMENTS: Final = 2
"""Added to the documents there are: the best of very few is hardly the best of anything."""
_ZERO: Final = np.zeros(1, np.float32)
_SUPPORT: Final = ("term", "window", "dense", "dense_before", "dense_after", "date")
"""Signals of which a row needs one to be found at all: who said it, and how, is no answer."""
_SESSION_SUPPORT: Final = ("session_term", "session_dense")
"""The same for rows of a named session."""
_TURN_SIGNALS: Final = (
    "term_before", "term_two_before", "term_after", "term_answer", "window", "session_term", "dense_before",
    "dense_two_before", "dense_after", "dense_answer", "session_dense", "user", "length", "question", "answer",
    "feedback",
)  # fmt: skip
"""What only turns have."""
_ATOM_NEIGHBOUR: Final = 0.5
"""Where turns lend to their neighbours, an atom lends this share to itself."""
_NEIGHBOUR_SHARES: Final = (("before", 0.6), ("after", 0.5), ("two_before", 0.4))
"""What the words of turns around count for in a window."""
_USUAL_COSINE: Final = 0.1
_USUAL_COSINE_ROWS: Final = 20
"""The usual cosine of a stream is that of its rows, and of so many imagined ones with this cosine."""
_SAME_COSINE: Final = 0.95
"""What is so near is the question itself, asked before: that says nothing of what is usual."""
_WORDS_SHARE: Final = 0.75
"""Where some rows have a vector and some do not: how far the weights of the latter go towards those for words alone.
All the way they crowd out what only its meaning finds, half the way they are crowded out."""


class Candidate(NamedTuple):
    """One item found: the index it is in, its number and id there, its score and why.

    With the default recipe the score is on the scale of `Blend`, the same among few items and among many: an unrelated
    question gets low scores throughout. So it does with `documents` (`DocumentScale`). The best of `associative` is
    on such a scale too (`GraphConfidence`); the others score higher than a blend would give them. `lexical` is the
    share of the best BM25 there can be, `dense` the cosine, `rrf` the share of being first in both.
    """

    stream: int
    seq: int
    id: str
    score: float
    explain: Explain

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return self.explain()


class Evidence(NamedTuple):
    """The signals of the rows of an index by the names of `Blend`, and what reasons are read from."""

    signals: dict[str, Floats]
    has_turns: bool
    matches: Floats
    cosines: Floats | None
    mask: Bools


class _Search(NamedTuple):
    question: Question
    vector: Floats | None
    recipe: Recipe
    filter: Filter
    synonyms: Synonyms | None
    model: str


class _Ranking(NamedTuple):
    """A score for each row of an index, 0 for what is not found, and how to explain some of them."""

    scores: Doubles
    explain: ExplainRows
    item_count: float = 0.0
    """How many items there were to choose from."""
    size_penalty: float = 0.0
    """The `Blend.size_penalty` that was used."""


def find_candidates(
    indexes: Sequence[StreamIndex],
    query: str,
    query_vector: Floats | None = None,
    recipe: Recipe = RECIPES["default"],
    filter: Filter = NO_FILTER,
    now: float = 0.0,
    limit: int = 10,
    synonyms: Synonyms | None = None,
    model: str = "",
) -> list[Candidate]:
    """The best items of all indexes together, best first, ties by id. Filters apply before anything is ranked.

    `query_vector` is the vector of `without_names(query, indexes)` by `model`.
    """
    languages = {language for index in indexes for language in index.lexical.languages}
    search = _Search(read_question(query, languages, now), query_vector, recipe, filter, synonyms, model)
    if recipe.method == "rrf":
        rankings = _rank_rrf(indexes, search)
    else:
        rankings = [_RANKERS[recipe.method](index, search) for index in indexes]
    best = sorted(
        (-score, indexes[number].ids[row], number, row)
        for number, ranking in enumerate(rankings)
        for row, score in _top_rows(ranking.scores, limit)
    )[: max(limit, 0)]
    chosen: dict[int, list[int]] = {}
    for _, _, number, row in best:
        chosen.setdefault(number, []).append(row)
    explained = {number: iter(rankings[number].explain(rows)) for number, rows in chosen.items()}
    # What the odds of all candidates are divided by: one number, so that it changes no order.
    item_count = max(sum(ranking.item_count for ranking in rankings), 1)
    penalty = sum(ranking.item_count * ranking.size_penalty for ranking in rankings) / item_count
    divisor = exp(penalty * log(item_count / REFERENCE_ITEMS))
    return [
        Candidate(
            number,
            indexes[number].seqs[row],
            id,
            -negative if divisor == 1 else 1 / (1 + divisor * (1 / -negative - 1)),
            next(explained[number]),
        )
        for negative, id, number, row in best
    ]


def _top_rows(scores: Doubles, limit: int) -> list[tuple[int, float]]:
    """The best rows with their scores. What ties with the last stays: the id decides, not the order of rows."""
    # float32 is much quicker to compare, and rounding keeps the order.
    rough = scores.astype(np.float32)
    edge = np.partition(rough, -limit)[-limit] if len(rough) > limit > 0 else 0.0
    rows = (rough >= edge if edge > 0 else scores > 0).nonzero()[0]
    return list(zip(rows.tolist(), scores.take(rows).tolist(), strict=True))


def _rank_blend(index: StreamIndex, search: _Search) -> _Ranking:
    return _blend_signals(index, search, *_read_signals(index, search))


def _read_signals(index: StreamIndex, search: _Search) -> tuple[QueryPlan, Evidence]:
    plan = plan_query(search.question, index, search.synonyms)
    mask = search.filter.mask(index, search.question.now)
    return plan, collect_signals(index, plan, search.vector, mask)


def _blend_signals(index: StreamIndex, search: _Search, plan: QueryPlan, evidence: Evidence) -> _Ranking:
    recipe, by_length = search.recipe, search.recipe.blends_by_model.get(search.model)
    # The weights for rows that have a vector, and for the others among them.
    blend = words = recipe.lexical_blend
    if evidence.cosines is not None:
        blend = interpolate(*by_length, round(index.layout.verbosity, 2)) if by_length else recipe.blend
        words = interpolate(blend, words, _WORDS_SHARE)
    if not evidence.has_turns:
        blend, words = _blend_for_atoms(blend), _blend_for_atoms(words)
    total = _weighted_sum(evidence.signals, blend, index.rows)
    if words is not blend and index.dense.count < index.rows:
        total = np.where(index.dense.present, total, _weighted_sum(evidence.signals, words, index.rows))
    found = _supported_rows(index, evidence)
    total[_empty_rows(index, plan, evidence, total)] = _EMPTY_LOG_ODDS
    total[~found] = -np.inf
    if blend.feedback and evidence.has_turns and found.any():
        # What each row has of the rare words of the best rows, besides those of the question.
        edge = np.partition(total, -_FEEDBACK_ROWS)[-_FEEDBACK_ROWS] if len(total) > _FEEDBACK_ROWS else -np.inf
        best = np.flatnonzero(total >= edge)
        best = np.sort(best[np.argsort(-total[best], kind="stable")[:_FEEDBACK_ROWS]])
        best = best[total[best] > -np.inf]
        chances = (1 / (1 + np.exp(-np.maximum(total[best], _MIN_LOG_ODDS)))).tolist()
        asked = {term for group in plan.groups for term in group.terms}
        terms = index.lexical.feedback_terms(best.tolist(), chances, asked, _FEEDBACK_TERMS, _FEEDBACK_MAX_SHARE)
        evidence.signals["feedback"] = index.lexical.sum_weights(terms)
        total = _reorder(total, evidence.signals["feedback"] * blend.feedback)
    if blend.later and found.any() and (share := plan.present_share):
        evidence.signals["later"] = later_signal(index, total) * np.float32(share)
        total = _reorder(total, evidence.signals["later"] * blend.later, _LATER_EXCESS)
    scores = np.where(found, 1 / (1 + np.exp(-np.maximum(total, _MIN_LOG_ODDS))), 0)
    explain = partial(_explain_blend, index, evidence, plan, (blend, words))
    return _Ranking(scores, explain, float(index.layout.item_counts[evidence.mask].sum()), blend.size_penalty)


def _weighted_sum(signals: dict[str, Floats], blend: Blend, rows: int) -> Doubles:
    total = np.full(rows, blend.bias, np.float64)
    for name, weight in blend.weights:
        if name in signals:
            total += signals[name] * weight
    return total


def _reorder(total: Doubles, added: Floats, excess: float = 1.0) -> Doubles:
    """Add what sets the order and not the scale: the best score stays what it was.

    Only a share `excess` counts of what lifts a row above the best, so that the others need not come down far.
    """
    best, changed = float(total.max()), total + added
    changed = np.where(changed > best, best + excess * (changed - best), changed)
    return changed + (best - float(changed.max()))


@lru_cache(maxsize=256)
def _blend_for_atoms(blend: Blend) -> Blend:
    """The weights where there are only atoms: where a turn is backed by its neighbours, an atom is by its own words."""
    nothing: dict[str, Any] = dict.fromkeys(_TURN_SIGNALS, 0.0)
    term = blend.term_before + blend.term_two_before + blend.term_after
    dense = blend.dense_before + blend.dense_two_before + blend.dense_after
    return replace(
        blend,
        term=blend.term + blend.window + blend.session_term + _ATOM_NEIGHBOUR * term,
        dense=blend.dense + blend.session_dense + _ATOM_NEIGHBOUR * dense,
        **nothing,
    )


def _supported_rows(index: StreamIndex, evidence: Evidence) -> Bools:
    signals, named = evidence.signals, index.layout.in_named_session
    found: Bools = reduce(np.maximum, [signals[name] for name in _SUPPORT if name in signals]) > 0
    if evidence.has_turns and named is not None:
        found |= named & (reduce(np.maximum, [signals[name] for name in _SESSION_SUPPORT if name in signals]) > 0)
    return evidence.mask & found


def _empty_rows(index: StreamIndex, plan: QueryPlan, evidence: Evidence, total: Doubles) -> list[int]:
    """Rows that fit and tell nothing: questions that name no more than is asked now, and empty answers to them."""
    lexical, asked = index.lexical, {term for group in plan.groups for term in group.terms}
    others = lexical.rows["end"] - lexical.rows["start"] - np.count_nonzero(evidence.matches, axis=0)
    may_be = (total > _EMPTY_LOG_ODDS) & (others <= _MAX_EMPTY_WORDS)
    questions = _rows_of_only(lexical, may_be & index.columns["asks"], asked)
    if not questions or not evidence.has_turns:
        return questions
    return [*questions, *_rows_of_only(lexical, may_be & np.isin(index.layout.before, questions), set())]


def _rows_of_only(lexical: LexicalIndex, rows: Bools, known: Set[int]) -> list[int]:
    """Those of some rows that have no terms but known ones and words that name nothing."""
    numbers = np.flatnonzero(rows).tolist()
    return [
        row
        for row, terms in zip(numbers, lexical.row_terms(numbers), strict=True)
        if all(lexical.keys[term] in _EMPTY_WORDS for term in terms - known)
    ]


def collect_signals(index: StreamIndex, plan: QueryPlan, vector: Floats | None, mask: Bools) -> Evidence:
    """All signals of one index. Rows outside the mask lend nothing to others; `_supported_rows` drops them."""
    layout = index.layout
    matches = index.lexical.matches(plan.groups)
    if not mask.all():
        matches *= mask
    weights = [index.lexical.idf(group) * group.weight for group in plan.groups]
    total = max(sum(weights), 1e-9)
    shares = np.array([weight / total for weight in weights], np.float32).reshape(-1, 1)
    # Not a matrix product: that may round equal columns differently, and ties would not be ties.
    signals: dict[str, Floats] = {"term": np.add.reduce(shares * matches, axis=0)}
    cosines = None if vector is None else index.dense.cosines(vector)
    if cosines is not None:
        signals["dense"] = _dense_signal(index, cosines, mask)
    has_turns = len(layout.order) > 0 and bool((mask & layout.message).any())
    if has_turns:
        signals |= _turn_signals(layout, signals, shares, matches, mask)
    signals |= item_signals(index, plan, matches)
    return Evidence(signals, has_turns, matches, cosines, mask)


def _dense_signal(index: StreamIndex, cosines: Floats, mask: Bools) -> Floats:
    """Cosines above what is usual in the stream."""
    count = index.dense.count
    # Without the gaps, so that it is the same sum, and is rounded alike, whatever was removed.
    held = cosines if count == index.rows else cosines[index.dense.present]
    others = held[held < _SAME_COSINE]
    usual = (float(others.sum()) + _USUAL_COSINE * _USUAL_COSINE_ROWS) / (len(others) + _USUAL_COSINE_ROWS)
    lift: Floats = (cosines - np.float32(usual)) / np.float32(max(1 - usual, 0.05))
    return lift if count == index.rows and mask.all() else lift * (index.dense.present & mask)


def _turn_signals(
    layout: ConversationLayout, signals: dict[str, Floats], shares: Floats, matches: Floats, mask: Bools
) -> dict[str, Floats]:
    """What the turns around a turn and in its session lend to it, and what it is itself."""
    term = signals["term"]
    best_matches = np.maximum.reduceat(matches.take(layout.order, axis=1), layout.starts, axis=1)
    by_session = {"term": np.add.reduce(shares * best_matches, axis=0)}
    if "dense" in signals:
        by_session["dense"] = np.maximum.reduceat(signals["dense"].take(layout.order), layout.starts)
    turns = {
        "window": _window_signal(layout, shares, matches, term),
        "length": layout.length,
        "question": layout.question,
        "answer": layout.answer * np.append(mask, False).take(layout.before),
    }
    if layout.user is not None:
        turns["user"] = layout.user
    for name, best in by_session.items():
        own = signals[name]
        # What is no turn is a session of its own, and its own neighbour.
        turns[f"session_{name}"] = np.where(layout.message, best.take(layout.session, mode="clip"), own)
        neighbour = np.where(layout.message, np.float32(0), own * np.float32(_ATOM_NEIGHBOUR))
        padded = np.concatenate((own, _ZERO))
        before = padded.take(layout.before)
        turns[f"{name}_before"] = before + neighbour
        turns[f"{name}_two_before"] = padded.take(layout.two_before) + neighbour
        turns[f"{name}_after"] = padded.take(layout.after) + neighbour
        turns[f"{name}_answer"] = before * layout.answer
    return turns


def _window_signal(layout: ConversationLayout, shares: Floats, matches: Floats, term: Floats) -> Floats:
    """Each turn's matches together with those of its neighbours, which count for less."""
    padded = np.concatenate((matches, np.zeros((len(matches), 1), np.float32)), axis=1)
    is_match = padded.any(axis=0)
    near = is_match.take(layout.before) | is_match.take(layout.after) | is_match.take(layout.two_before)
    rows = near.nonzero()[0]
    wide = matches.take(rows, axis=1)
    for place, share in _NEIGHBOUR_SHARES:
        neighbours = getattr(layout, place).take(rows)
        np.maximum(wide, padded.take(neighbours, axis=1) * np.float32(share), out=wide)
    window = term.copy()
    window[rows] = np.add.reduce(shares * wide, axis=0)
    return window


def _explain_blend(
    index: StreamIndex, evidence: Evidence, plan: QueryPlan, blends: tuple[Blend, Blend], rows: list[int]
) -> list[Explain]:
    layout, where = index.layout, np.array(rows)
    named = layout.in_named_session
    explanation = BlendExplanation(
        is_turn=layout.message.take(where) if evidence.has_turns else None,
        in_named_session=None if named is None else named.take(where),
        signals={name: signal.take(where) for name, signal in evidence.signals.items()},
        matches=evidence.matches.take(where, axis=1),
        cosines=None if evidence.cosines is None else evidence.cosines.take(where),
        plan=plan,
        blend=blends[0],
    )
    others = explanation._replace(blend=blends[1])
    has_vector = index.dense.present.take(where).tolist()
    return [partial((explanation if has else others).reasons, place) for place, has in enumerate(has_vector)]


def _rank_lexical(index: StreamIndex, search: _Search) -> _Ranking:
    groups = exact_groups(search.question, index)
    mask = search.filter.mask(index, search.question.now)
    scores = np.where(mask, index.lexical.bm25(groups), 0).astype(np.float64)

    def explain(rows: list[int]) -> list[Explain]:
        return [partial(_lexical_reason, groups, terms) for terms in index.lexical.row_terms(rows)]

    return _Ranking(scores, explain)


def _rank_dense(index: StreamIndex, search: _Search) -> _Ranking:
    found = None if search.vector is None else index.dense.cosines(search.vector)
    cosines = np.zeros(index.rows) if found is None else found
    mask = search.filter.mask(index, search.question.now)
    scores = np.where(mask, np.clip(cosines, 0, 1), 0).astype(np.float64)
    return _Ranking(scores, lambda rows: [partial(_only_reason, "dense", f"cosine {cosines[row]:.2f}") for row in rows])


def _rank_rrf(indexes: Sequence[StreamIndex], search: _Search) -> list[_Ranking]:
    """Reciprocal ranks of the lexical and the dense order over all indexes, as a share of being first in both."""
    rankings_by_method = [[rank(index, search) for index in indexes] for rank in (_rank_lexical, _rank_dense)]
    ids = [id for index in indexes for id in index.ids]
    fused = np.zeros(len(ids), np.float64)
    for rankings in rankings_by_method:
        scores = np.concatenate([fused[:0], *(ranking.scores for ranking in rankings)])
        rows = sorted(np.flatnonzero(scores > 0).tolist(), key=lambda row: (-scores[row], ids[row]))
        fused[rows] += (search.recipe.rrf_k + 1) / (2 * (search.recipe.rrf_k + np.arange(1, len(rows) + 1)))
    parts = np.split(fused, np.cumsum([index.rows for index in indexes])[:-1]) if indexes else []

    def explain(rankings: Sequence[_Ranking], rows: list[int]) -> list[Explain]:
        explanations: dict[int, list[Explain]] = {row: [] for row in rows}
        for ranking in rankings:
            found = [row for row in rows if ranking.scores[row] > 0]
            for row, why in zip(found, ranking.explain(found), strict=True):
                explanations[row].append(why)
        return [partial(_all_reasons, explanations[row]) for row in rows]

    pairs = zip(*rankings_by_method, strict=True)
    return [_Ranking(scores, partial(explain, pair)) for scores, pair in zip(parts, pairs, strict=True)]


def _rank_graph(index: StreamIndex, search: _Search) -> _Ranking:
    """By the entity graph; an index that has none is ranked by the blend."""
    if index.graph is None:
        return _rank_blend(index, search._replace(recipe=RECIPES["default"]))._replace(item_count=0)  # no size penalty
    mask = search.filter.mask(index, search.question.now)
    cosines = None if search.vector is None else index.dense.cosines(search.vector)
    dense = None if cosines is None else _dense_signal(index, cosines, mask)
    ranking, explain = _follow_graph(index, index.graph, search, mask, cosines, dense)
    return _Ranking(ranking.score(), explain)


def _follow_graph(
    index: StreamIndex, graph: EntityGraph, search: _Search, mask: Bools, cosines: Floats | None, dense: Floats | None
) -> tuple[GraphRanking, ExplainRows]:
    question, vector, recipe = search.question, search.vector, search.recipe
    groups = exact_groups(question, index)
    dense = np.zeros(index.rows, np.float32) if dense is None else dense
    own = {"lexical": index.lexical.bm25(groups), "dense": dense}
    has_vector = vector is not None and len(vector) == index.dense.dimensions
    confidence = recipe.graph_confidence if has_vector else recipe.lexical_graph_confidence
    ranking = rank_by_graph(index, graph, question, own, mask, search.synonyms, recipe.graph_weights, confidence)

    def explain(rows: list[int]) -> list[Explain]:
        near = None if cosines is None else cosines.take(rows)
        explanation = GraphExplanation(*ranking.shares(rows), groups, index.lexical.row_terms(rows), near)
        return [partial(explanation.reasons, place) for place in range(len(rows))]

    return ranking, explain


def _rank_documents(index: StreamIndex, search: _Search) -> _Ranking:
    """By the blend and the entity graph together; an index that has no graph is ranked by the blend.

    What says nothing, such as stop words alone, is no question.
    """
    plan, evidence = _read_signals(index, search)
    blend = _blend_signals(index, search, plan, evidence)
    blend = blend._replace(item_count=blend.item_count + _IMAGINED_DOCUMENTS)
    if INDEFINITE_WORDS.issuperset(word.folded or word.label for word in search.question.words):
        return blend._replace(scores=np.zeros(index.rows))
    if index.graph is None:
        return blend
    graph, explain_by_graph = _follow_graph(
        index, index.graph, search, evidence.mask, evidence.cosines, evidence.signals.get("dense")
    )

    def explain(rows: list[int]) -> list[Explain]:
        by_blend, by_graph = blend.explain(rows), explain_by_graph(rows)
        return [by_blend[place] if graph.total[row] == -np.inf else by_graph[place] for place, row in enumerate(rows)]

    # How far each row bears on the question by itself, before the size penalty, and the scale that this is on.
    scale, signals = search.recipe.lexical_document_scale, evidence.signals
    own = own_log_odds(scale, signals["term"], graph.is_about)
    if evidence.cosines is not None:
        scale = search.recipe.document_scales_by_model.get(search.model, search.recipe.document_scale)
        excess = short_excess(scale, len(search.question.words), index.lexical.rows["length"])
        likeness = (evidence.cosines - excess).astype(np.float32)
        with_vector = own_log_odds(scale, signals["term"], graph.is_about, likeness, signals["dense"])
        own = np.where(index.dense.present, with_vector, own)
    size_loss = scale.size_penalty * log(blend.item_count / REFERENCE_ITEMS)
    scores = combine_scores(blend.scores, own, graph, size_loss)
    return blend._replace(scores=scores, explain=explain, size_penalty=scale.size_penalty)


_RANKERS: Final[dict[str, Callable[[StreamIndex, _Search], _Ranking]]] = {
    "blend": _rank_blend,
    "lexical": _rank_lexical,
    "dense": _rank_dense,
    "associative": _rank_graph,
    "documents": _rank_documents,
}


_DAYS_TOLD_LATER: Final = 7.0
_DAYS_PLANNED_BEFORE: Final = 3.0
"""Things are told some days after they happen, or planned some days before."""


def item_signals(index: StreamIndex, plan: QueryPlan, matches: Floats) -> dict[str, Floats]:
    """The signals that this question asks for."""
    signals: dict[str, Floats] = {}
    if plan.identifiers:
        held = matches.take(plan.identifiers, axis=0)
        signals["exact"] = np.add.reduce(held, axis=0) / np.float32(len(plan.identifiers))
    if plan.speaker_words:
        # 1 for what a person named in the question said, or for atoms that name the person.
        said: Floats = index.rows_with("speaker", plan.speakers).astype(np.float32)
        if not index.layout.message.all() and plan.name_groups:
            named = index.lexical.matches(plan.name_groups).max(axis=0)
            said = np.where(index.layout.message, said, np.maximum(said, named))
        signals["speaker"] = said
    if plan.date_ranges:
        signals["date"] = _date_signal(index, plan.date_ranges)
    if plan.question.asks_time:
        signals["time"] = ((index.lexical.rows["flags"] & TIME) > 0).astype(np.float32)
    if plan.question.asks_number:
        signals["number"] = ((index.lexical.rows["flags"] & NUMBER) > 0).astype(np.float32)
    return signals


def _date_signal(index: StreamIndex, ranges: Sequence[DateRange]) -> Floats:
    """1 within a range, less the further outside."""
    times, valid_from = index.columns["time"], index.columns["valid_from"]
    times = np.where(np.isnan(times), valid_from, times)
    nearness = np.zeros(index.rows, np.float64)
    for range in ranges:
        scale = max(1.0, (range.end - range.start) / DAY_SECONDS) ** 0.5 * DAY_SECONDS
        late = 0.8 * np.exp(-np.maximum(times - range.end, 0) / (_DAYS_TOLD_LATER * scale))
        early = 0.5 * np.exp(-np.maximum(range.start - times, 0) / (_DAYS_PLANNED_BEFORE * scale))
        outside = np.where(times >= range.end, late, early)
        nearness = np.fmax(nearness, np.where((times >= range.start) & (times < range.end), 1.0, outside))
    return nearness.astype(np.float32)


_ROWS: Final = 16
"""So many of the best rows are compared."""
_PAIR_COSINE: Final = 0.15
_PAIR_SPREAD: Final = 0.12
_IMAGINED_PAIRS: Final = 12
"""What is usual among the best rows is what these have, and so many imagined pairs."""
_LIKE: Final = 4.0
"""Two statements are surely about one thing if their cosine is so many standard deviations above what is usual."""
_FIT_SCALE: Final = 2.0
"""How far a row may lie behind the best and still be a statement that another one takes the place of."""
_TURNS_APART: Final = 5
"""Nearer turns of a session go on about one thing; they do not take each other's place."""
_HOUR: Final = 3600.0


def later_signal(index: StreamIndex, total: NDArray[np.float64]) -> Floats:
    """How far each of the best rows says anew what another good one said earlier, from 0 to 1; less where a still later
    one says it again.

    `total` is the sum of all other signals, -inf for what is not found.
    """
    signal = np.zeros(index.rows, np.float32)
    if index.dense.count < 2:
        return signal
    present = np.where(index.dense.present, total, -np.inf)
    # Those above the first that is too many, so that ties are all in or all out.
    edge = np.partition(present, -_ROWS - 1)[-_ROWS - 1] if index.rows > _ROWS else -np.inf
    rows = (present > edge).nonzero()[0]
    if len(rows) > 1:
        fit = np.exp((total[rows] - total[rows].max()) / _FIT_SCALE)
        replaces = _likeness(index.dense.rows["vector"][rows]) * _is_later(index, rows)
        is_replaced = (replaces * fit[:, None]).max(axis=0)
        signal[rows] = np.maximum((replaces * fit).max(axis=1) - is_replaced, 0)
    return signal


def _likeness(vectors: Floats) -> Floats:
    """How far the statements of each pair are about one thing, from 0 to 1."""
    # Not a matrix product: that may round equal rows differently, and ties would not be ties.
    cosines = np.vecdot(vectors[:, None], vectors[None])
    pairs = cosines[np.triu_indices(len(cosines), 1)]
    count = len(pairs) + _IMAGINED_PAIRS
    usual = (pairs.sum() + _IMAGINED_PAIRS * _PAIR_COSINE) / count
    squares = ((pairs - usual) ** 2).sum() + _IMAGINED_PAIRS * (_PAIR_SPREAD**2 + (_PAIR_COSINE - usual) ** 2)
    likeness: Floats = np.clip((cosines - usual) / (_LIKE * np.sqrt(squares / count)), 0, 1)
    return likeness


def _is_later(index: StreamIndex, rows: NDArray[np.intp]) -> Bools:
    """Whether the row of each line was said later than that of each column, and not in one breath."""
    moments = index.columns["time"][rows]
    for name in ("valid_from", "recorded"):
        moments = np.where(np.isnan(moments), index.columns[name][rows], moments)
    seqs = np.array([index.seqs[row] for row in rows.tolist()])
    gap, places = moments[:, None] - moments, seqs[:, None] - seqs
    turn, session, named = index.layout.message[rows], index.columns["session"][rows], index.layout.in_named_session
    turns = turn[:, None] & turn
    # A fact may have been taken from a turn of the same day.
    later: Bools = gap > np.where(turns, _HOUR, np.where(turn[:, None] ^ turn, DAY_SECONDS, 0))
    # A turn comes after another one, and in a session with a name some turns after.
    in_one_session = (session[:, None] == session) & (False if named is None else named[rows])
    later |= turns & (gap >= 0) & (places >= np.where(in_one_session, _TURNS_APART, 1))
    return later


_MIN_SHARE: Final = 0.05
"""A smaller share is no reason."""

_TURN_REASONS: Final = {
    "term": "lexical", "window": "neighbour", "dense": "dense", "session_term": "session", "session_dense": "session",
    "term_before": "neighbour", "term_two_before": "neighbour", "term_after": "neighbour", "term_answer": "neighbour",
    "dense_before": "neighbour", "dense_two_before": "neighbour", "dense_after": "neighbour",
    "dense_answer": "neighbour", "exact": "exact", "speaker": "speaker", "date": "date", "time": "time",
    "number": "number", "user": "role", "feedback": "feedback",
    "later": "later",
}  # fmt: skip
"""The reason that a signal is shown as. Signals that are not here count without being shown."""
LENT_REASONS: Final = frozenset({"neighbour", "session"})
"""What other turns lend to one."""
_ATOM_REASONS: Final = _TURN_REASONS | {
    signal: "dense" if "dense" in signal else "lexical"
    for signal, reason in _TURN_REASONS.items()
    if reason in LENT_REASONS
}
"""An atom has neither neighbours nor a session: its own words and vector stand in."""
_OWN_SIGNAL: Final = {"window": "term", "session_term": "term", "session_dense": "dense"}
"""Signals in which a turn's own words or vector count as well: only what other turns add to these is theirs."""


class BlendExplanation(NamedTuple):
    """The signals of some rows, as arrays by place."""

    is_turn: Bools | None
    """None where there are no turns."""
    in_named_session: Bools | None
    """None where no session has a name."""
    signals: dict[str, Floats]
    matches: Floats
    cosines: Floats | None
    plan: QueryPlan
    blend: Blend

    def reasons(self, place: int, rerank: float = 0.0) -> Reasons:
        shares = {"rerank": rerank}
        for name, share in self._shares(place):
            shares[name] = shares.get(name, 0.0) + share
        if self.in_named_session is None or not self.in_named_session[place]:
            shares.pop("session", None)
        return ranked_reasons(shares, lambda name: self._detail(name, place))

    def _shares(self, place: int) -> Iterator[tuple[str, float]]:
        is_turn = self.is_turn is not None and self.is_turn[place]
        names = _TURN_REASONS if is_turn else _ATOM_REASONS
        for signal, weight in self.blend.weights:
            if signal not in self.signals or signal not in names:
                continue
            value = float(self.signals[signal][place])
            if is_turn and signal in _OWN_SIGNAL:
                own = max(float(self.signals[_OWN_SIGNAL[signal]][place]), 0.0)
                yield names[_OWN_SIGNAL[signal]], weight * own
                value -= own
            yield names[signal], weight * value

    def _detail(self, name: str, place: int) -> str:
        if name == "lexical":
            return matched_words(self.plan.groups, self.matches[:, place].tolist())
        if name == "exact":
            labels = [self.plan.groups[each].label for each in self.plan.identifiers if self.matches[each, place]]
            return ", ".join(labels)
        if name == "dense" and self.cosines is not None:
            return f"cosine {self.cosines[place]:.2f}"
        return ", ".join(sorted(self.plan.speaker_words)) if name == "speaker" else ""


class GraphExplanation(NamedTuple):
    """What speaks for some rows that were found through the entity graph, by place."""

    shares: dict[str, NDArray[np.float64]]
    """By reason."""
    paths: list[str]
    """From the question to each row, empty where none leads there."""
    groups: Sequence[TermGroup]
    terms: list[frozenset[int]]
    """Those that each row has."""
    cosines: Floats | None

    def reasons(self, place: int) -> Reasons:
        shares = {name: float(values[place]) for name, values in self.shares.items()}
        return ranked_reasons(shares, lambda name: self._detail(name, place))

    def _detail(self, name: str, place: int) -> str:
        if name == "graph":
            return self.paths[place]
        if name == "lexical":
            return _words_of(self.groups, self.terms[place])
        return "" if self.cosines is None else f"cosine {self.cosines[place]:.2f}"


def ranked_reasons(shares: Mapping[str, float], detail_of: Callable[[str], str]) -> Reasons:
    """The signals whose share of all that speaks for a row is a reason, the largest first."""
    total = sum(share for share in shares.values() if share > 0) or 1.0
    ranked = sorted(((share / total, name) for name, share in shares.items()), reverse=True)
    return tuple(Reason(name, round(share, 3), detail_of(name)) for share, name in ranked if share >= _MIN_SHARE)


def matched_words(groups: Sequence[TermGroup], fits: Sequence[float]) -> str:
    """The words of the question that a row has; ~ where by another word of like meaning.

    Of an identifier and its parts only the longest are shown.
    """
    found = [(group, fit) for group, fit in zip(groups, fits, strict=True) if fit > 0]
    exact = [group for group, fit in found if fit >= 1]
    return ", ".join(
        group.label if fit >= 1 else f"~{group.label}"
        for group, fit in found
        if not any(group.chunk == other.chunk and group.label in other.label != group.label for other in exact)
    )


def _words_of(groups: Sequence[TermGroup], terms: Set[int]) -> str:
    return matched_words(groups, group_fits(groups, terms))


def _lexical_reason(groups: Sequence[TermGroup], terms: Set[int]) -> Reasons:
    """The words of the question that a row with these terms has."""
    return _only_reason("lexical", _words_of(groups, terms))


def _only_reason(name: str, detail: str) -> Reasons:
    return (Reason(name, 1.0, detail),)


def _all_reasons(explanations: Sequence[Explain]) -> Reasons:
    return tuple(reason for explain in explanations for reason in explain())
