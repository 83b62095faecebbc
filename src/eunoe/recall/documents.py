"""Passages and documents through the entity graph: seeds, bridges, a walk, all signals of the best, and one scale.

A bridge is an entity in a sentence about one of the question's entities. Why it is so: docs/decisions/0014-graph.md,
and for how blend and graph together rank documents, 0043-project-ranking.md.
"""

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.graph import EntityGraph, GraphView, sum_by
from eunoe.index.passage import term_number
from eunoe.index.stream import StreamIndex
from eunoe.index.tables import Bools
from eunoe.index.tables import Floats as Signal
from eunoe.recall.query import Question, Synonyms, expand_words, term_group
from eunoe.recall.recipes import DocumentScale, GraphConfidence, GraphWeights
from eunoe.text import analyzer
from eunoe.text.entities import spaceless_keys, usual_key
from eunoe.text.languages import detect_language, stop_words_and_english
from eunoe.text.normalize import fold

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.signedinteger[Any]]

PRIOR_WEIGHT: Final = 0.05
"""What a passage's own words and vector count beside the entities, at most."""
BRIDGE_WEIGHT: Final = 2.0
"""What all bridges together count beside the entities in the question."""

_BEST_SENTENCES: Final = 3
"""Sentences of an entity from which the walk starts too."""
_MAX_SENTENCES: Final = 200
"""Sentences of an entity that lead on."""
_MIN_SENTENCE_FIT: Final = 0.05
"""What a sentence that fits the question in no word still counts."""
_MAX_NAME_WORDS: Final = 12
_MIN_WALK: Final = 1e-6
_MIN_LOG_WALK: Final = float(np.log(_MIN_WALK))
_SIGNALS: Final = ("walk", "lexical", "dense", "sentence", "title", "mention", "bridge", "title_bridge")
_STEP_DOWN: Final = 0.01
"""What separates those in the walk's order from the last of the best."""
_TINY: Final = 1e-300
_BEST_PASSAGES: Final = 3
_MARGIN_FROM, _MARGIN_TO = 5, 10
_MAX_MARGIN: Final = 12.0
_USUAL_MARGIN: Final = 3.0
"""Stands in for passages that are not there: a memory of one thing says nothing by what else it holds."""
_MAX_LOG_ODDS: Final = 40.0
_SCORE_DECIMALS: Final = 12
"""Sums that are added up in another order differ after these: ties stay ties, however a graph came about."""
_TOKEN: Final = re.compile(r"[^\W_]+")
_POSSESSIVE: Final = re.compile(r"['’`]s\b|['’`](?=\s|$)", re.IGNORECASE)


class GraphRanking(NamedTuple):
    """What was found by row of an index, and why, with details by reason."""

    total: Floats
    """What gives the order; minus infinity for what is not found."""
    score: Callable[[], Floats]
    """Works out the scores, 0 for what is not found."""
    shares: Callable[[list[int]], tuple[dict[str, Floats], list[str]]]
    """Works out what speaks for some rows, by reason, and the paths to them."""
    has_names: bool
    """Whether the question has a name that the graph knows, and that does not stand nearly everywhere."""
    is_about: Bools
    """Which rows are about such a name, or about one to which a row about it leads."""


class _Evidence(NamedTuple):
    """What was found on the way from a question to the rows of a graph."""

    visible: Bools
    """Which rows may be found."""
    asked: tuple[int, ...]
    """Entities in the question, but for those that stand nearly everywhere."""
    has_names: bool
    """Whether one of them is written as a name is."""
    bridge_fit: Floats
    """How well the best sentence that leads to an entity fits the question."""
    origin: NDArray[np.int32]
    """The entity in the question from which an entity was reached, 0 where none."""
    signals: dict[str, Floats]
    """By row, as in `GraphWeights`."""


class _Bridges(NamedTuple):
    """What the sentences about the question's entities lead to, by entity."""

    weight: Floats
    fit: Floats
    title_fit: Floats
    origin: NDArray[np.int32]


def rank_by_graph(
    index: StreamIndex, graph: EntityGraph, question: Question, own: dict[str, NDArray[np.float32]], mask: Bools,
    synonyms: Synonyms | None, weights: GraphWeights, confidence: GraphConfidence,
) -> GraphRanking:  # fmt: skip
    """Rank the rows of an index by its graph. Rows outside the mask take no part and lend nothing.

    `own` are the signals of each row's own words (`lexical`) and vector (`dense`).
    """
    evidence = _follow(index, graph, question, own, mask, synonyms)
    total = _weighted_sum(evidence, weights)
    rows, is_found = index.graph_rows(graph), np.isfinite(total)
    order = np.full(index.rows, -np.inf)
    order[rows[is_found]] = total[is_found].round(_SCORE_DECIMALS)

    def score() -> Floats:
        odds = _log_odds(evidence.signals, total, confidence, len(graph) + 1)
        # What has no word or entity of the question, nor one that these lead to, is at best as likely as not.
        leads = evidence.bridge_fit > 0
        leads[list(evidence.asked)] = True
        is_connected = (evidence.signals["lexical"] > 0) | (evidence.signals["sentence"] > 0)
        is_connected[graph.edges["row"].take(graph.edges_to(leads.nonzero()[0])[0])] = True
        odds = np.where(is_connected, odds, -np.logaddexp(0, -np.maximum(odds, -_MAX_LOG_ODDS)))
        scores = np.zeros(index.rows)
        found = 1 / (1 + np.exp(-np.clip(odds[is_found], -_MAX_LOG_ODDS, _MAX_LOG_ODDS)))
        scores[rows[is_found]] = np.maximum(found.round(_SCORE_DECIMALS), 10.0**-_SCORE_DECIMALS)
        return scores

    def shares(rows: list[int]) -> tuple[dict[str, Floats], list[str]]:
        own = [graph.row_of(index.seqs[row]) for row in rows]
        paths = [_path(graph, evidence, row) for row in own]
        share = {name: getattr(weights, name) * evidence.signals[name].take(own) for name in _SIGNALS}
        walk = weights.walk * (evidence.signals["walk"].take(own) - _MIN_LOG_WALK) / 4
        leads = walk + share["title"] + share["bridge"] + share["title_bridge"]
        found = {"graph": leads * [bool(path) for path in paths], "lexical": share["lexical"] + share["sentence"]}
        return found | {"dense": share["dense"]}, paths

    is_about = np.zeros(index.rows, np.bool_)
    if evidence.has_names:
        about = np.maximum(evidence.signals["title"], evidence.signals["title_bridge"]) > 0
        is_about[rows[is_found & about]] = True
    return GraphRanking(order, score, shares, evidence.has_names, is_about)


def _weighted_sum(evidence: _Evidence, weights: GraphWeights) -> Floats:
    """The sum for each row of the graph; minus infinity where the walk does not come."""
    walk = evidence.signals["walk"]
    total = np.zeros(len(walk))
    for name in _SIGNALS:
        total += getattr(weights, name) * evidence.signals[name]
    is_reached = evidence.visible & (walk > _MIN_LOG_WALK)
    if int(is_reached.sum()) > weights.depth:
        is_far = is_reached & (walk < np.partition(walk[is_reached], -weights.depth)[-weights.depth])
        if is_far.any():
            # The walk's order stays beyond its best: there the other signals are mostly chance.
            least = float(total[is_reached & ~is_far].min())
            total[is_far] = least + weights.walk * (walk[is_far] - float(walk[is_far].max())) - _STEP_DOWN
    return np.where(is_reached, total, -np.inf)


def _log_odds(signals: dict[str, Floats], total: Floats, confidence: GraphConfidence, count: int) -> Floats:
    """How far the best rows together answer the question, less what separates each row from the best.

    Beyond the best `count` rows there are only gaps.
    """
    top = float(total.max(initial=-np.inf))
    if not np.isfinite(top):
        return total
    order = top_rows(total, min(count, _MARGIN_TO))
    best = order[np.isfinite(total[order])][:_BEST_PASSAGES]
    margins = np.clip(total[order[0]] - total[order[_MARGIN_FROM:]], 0, _MAX_MARGIN)
    missing = _MARGIN_TO - max(len(order), _MARGIN_FROM)
    features = {name: float(signals[name][best].max()) for name in ("lexical", "dense", "sentence", "mention")}
    features["margin"] = (float(margins.sum()) + missing * _USUAL_MARGIN) / (_MARGIN_TO - _MARGIN_FROM)
    answered = confidence.bias + sum(getattr(confidence, name) * value for name, value in features.items())
    odds: Floats = answered + confidence.spread * (total - top)
    return odds


def top_rows(values: Floats, count: int) -> Ints:
    """The rows with the most, best first, the earlier one of equals."""
    least = np.partition(values, -count)[-count] if len(values) > count else -np.inf
    rows = (values >= least).nonzero()[0]
    best: Ints = rows[np.argsort(-values[rows], kind="stable")][:count]
    return best


def _path(graph: EntityGraph, evidence: _Evidence, row: int) -> str:
    """The way to a row: an entity in the question, and that of a bridge; empty where none leads there."""
    entities = graph.entities_at(row)
    asked = [(entity, weight) for entity, weight in entities if entity in evidence.asked]
    for entity, weight in asked:
        if weight > 1:
            return graph.label(entity)
    if entities:
        numbers, weights = zip(*entities, strict=True)
        bridge = numbers[int((evidence.bridge_fit.take(numbers) * weights).argmax())]
        if evidence.origin[bridge]:
            return f"{graph.label(int(evidence.origin[bridge]))} -> {graph.label(bridge)}"
    return graph.label(asked[0][0]) if asked else ""


def _follow(
    index: StreamIndex, graph: EntityGraph, question: Question, own: dict[str, NDArray[np.float32]], mask: Bools,
    synonyms: Synonyms | None,
) -> _Evidence:  # fmt: skip
    rows = index.graph_rows(graph)
    visible = (rows >= 0) & np.append(mask, False).take(rows)
    view = graph.view(visible)
    is_name = _find_entities(question.text, graph, view)
    asked = list(is_name)
    fit = _sentence_fit(index, graph, question, asked, synonyms) * view.visible_sentences
    specific = [entity for entity in asked if not view.common[entity]]
    bridges = _find_bridges(graph, view, specific or asked, fit)
    signals = {name: np.append(values.astype(np.float64), 0.0).take(rows) * visible for name, values in own.items()}
    prior = PRIOR_WEIGHT * _share_of_max(_share_of_max(signals["lexical"]) + _share_of_max(signals["dense"]))
    # Where the walk starts: the rarer an entity, the more it says.
    seeds = np.zeros(view.entity_count)
    seeds[list(asked)] = 1 / np.maximum(view.passage_counts[list(asked)], 1)
    if (bridged := float(bridges.weight.sum())) > 0:
        seeds = seeds + bridges.weight * (BRIDGE_WEIGHT * float(seeds.sum()) / bridged)
    reached = view.walk(seeds, prior)
    signals["walk"] = np.log(np.maximum(reached / max(float(reached.max(initial=0)), _TINY), _MIN_WALK))
    signals["sentence"] = view.best_of_sentences(fit)
    signals |= _entity_signals(graph, view, asked, bridges)
    has_names = any(is_name[entity] for entity in specific)
    return _Evidence(visible, tuple(specific), has_names, bridges.fit, bridges.origin, signals)


def _find_entities(query: str, graph: EntityGraph, view: GraphView) -> dict[int, bool]:
    """The entities of the graph in a question, the longest name wherever one begins, and whether each is written as a
    name is: with a capital that does not merely begin the question."""
    tokens = _TOKEN.findall(_POSSESSIVE.sub("", query).replace("'", "").replace("’", ""))
    folded = [fold(token) for token in tokens]
    stop_words = stop_words_and_english(detect_language(query))
    known = [graph.entities[name] for name in spaceless_keys(query) if name in graph.entities]
    found = dict.fromkeys([entity for entity in known if view.passage_counts[entity]], False)
    start = 0
    while start < len(tokens):
        for end in range(min(len(tokens), start + _MAX_NAME_WORDS), start, -1):
            entity = graph.entities.get(usual_key(" ".join(folded[start:end])), 0)
            if entity and view.passage_counts[entity] and _may_be_name(tokens, folded, start, end, stop_words):
                found[entity] = any(token[0].isupper() for token in tokens[max(start, 1) : end])
                start = end
                break
        else:
            start += 1
    return found


def _may_be_name(tokens: Sequence[str], folded: Sequence[str], start: int, end: int, stops: frozenset[str]) -> bool:
    """Whether some words may be a name: not stop words alone, and with a capital where others have one."""
    has_capitals = any(token[0].isupper() for token in tokens[1:])
    is_capital = [not token[0].islower() for token in tokens[start:end]]
    if folded[start] in stops and (start == 0 or (has_capitals and not is_capital[0])):
        return False
    if stops.issuperset(folded[start:end]):
        return len(is_capital) > 1 and all(is_capital)
    return any(is_capital) or not has_capitals


def _sentence_fit(
    index: StreamIndex, graph: EntityGraph, question: Question, asked: Sequence[int], synonyms: Synonyms | None
) -> Floats:
    """How much of what the question says besides its entities each sentence says too, 0 to 1."""
    names = {word for entity in asked for word in graph.keys[entity].split()}
    words = [word for word in question.words if not names.issuperset(analyzer.folded_words(word.label) or [word.label])]
    weights = np.array([index.lexical.idf(term_group(word, index)) * word.weight for word in words])
    terms: dict[int, tuple[int, float]] = {}
    for place, forms in enumerate(expand_words(words, index.lexical.languages, synonyms)):
        for form, fit in forms.items():
            number = term_number(form)
            if number not in terms or terms[number][1] < fit:
                terms[number] = (place, fit)
    by_place: dict[int, list[tuple[float, Places]]] = {}
    sentences = graph.sentences_with(np.array(list(terms), np.uint32))
    for (place, fit), own in zip(terms.values(), sentences, strict=True):
        by_place.setdefault(place, []).append((fit, own))
    total = np.zeros(graph.sentences.size)
    for place in sorted(by_place):
        # The sentences that have one of the forms of a word, each once, and the fit of the best form that each has.
        held = sorted(((fit, own) for fit, own in by_place[place] if len(own)), key=itemgetter(0))
        if len(held) == 1:
            total[held[0][1]] += weights[place] * held[0][0]
            continue
        best = np.zeros(len(total))
        for fit, own in held:
            best[own] = fit
        found = best.nonzero()[0]
        total[found] += weights[place] * best.take(found)
    return total / max(float(weights.sum()), 1e-9)


def _find_bridges(graph: EntityGraph, view: GraphView, asked: Sequence[int], fit: Floats) -> _Bridges:
    """The entities in sentences that have to do with an entity of the question, or stand in a passage about it."""
    weights, fits, title_fits = np.zeros(len(fit)), np.zeros(len(fit)), np.zeros(len(fit))
    source = np.zeros(len(fit), np.int32)
    used = [np.zeros(0, np.int64)]
    for number in asked:
        edges = graph.edges_to(np.array([number]))[0]
        about = graph.sentences_of(view.row[edges[view.in_title[edges]]])
        near = np.unique(np.concatenate((about, graph.mentions["sentence"].take(graph.mentions_of(number)))))
        near = near[view.visible.take(graph.sentences["row"].take(near))]
        near = near[np.lexsort((near, graph.sentence_order(near), -fit.take(near)))[:_MAX_SENTENCES]]
        titled = near[np.isin(near, about)]
        used.append(near)
        value = fit.take(near) + _MIN_SENTENCE_FIT
        weights[near[:_BEST_SENTENCES]] += value[:_BEST_SENTENCES]
        source[near[value > fits.take(near)]] = number
        fits[near] = np.maximum(fits.take(near), value)
        title_fits[titled] = np.maximum(title_fits.take(titled), fit.take(titled) + _MIN_SENTENCE_FIT)
    # What the sentences are worth is handed on to the entities in them.
    rows = np.unique(graph.sentences["row"].take(np.concatenate(used)))
    places = np.sort(graph.mentions_in(rows))
    places = places[fits.take(graph.mentions["sentence"].take(places)) > 0]
    entity, sentence = graph.mentions["entity"].take(places), graph.mentions["sentence"].take(places)
    weight = np.bincount(entity, weights.take(sentence), view.entity_count) / np.maximum(view.passage_counts, 1)
    best = _max_by(entity, fits.take(sentence), view.entity_count)
    title_best = _max_by(entity, title_fits.take(sentence), view.entity_count)
    origin = np.zeros(view.entity_count, np.int32)
    order = np.lexsort((sentence, graph.sentence_order(sentence), fits.take(sentence)))
    origin[entity[order]] = source.take(sentence[order])
    for by_entity in (weight, best, title_best):
        by_entity[list(asked)] = 0
        by_entity[view.common] = 0
        by_entity[0] = 0
    origin[view.common] = 0
    return _Bridges(weight, best, title_best, origin)


def _entity_signals(graph: EntityGraph, view: GraphView, asked: Sequence[int], bridges: _Bridges) -> dict[str, Floats]:
    """Whether a row is about an entity in the question, has it, or is about one that a bridge leads to."""
    rarity = np.log1p(max(len(graph), 1) / np.maximum(view.passage_counts[list(asked)], 1))
    inside = rarity / max(float(rarity.sum()), 1e-9)
    edges, which = graph.edges_to(np.array(asked, np.int64))
    has_it = view.row.take(edges)
    row, entity = view.title_row, view.title_entity
    title_fit = _max_by(row, bridges.title_fit.take(entity), graph.rows)
    return {
        "title": _max_by(has_it, view.in_title.take(edges).astype(np.float64), graph.rows),
        "mention": sum_by(has_it, inside.take(which) * view.visible.take(has_it), graph.rows),
        "bridge": _max_by(row, bridges.fit.take(entity), graph.rows),
        "title_bridge": (title_fit > 0).astype(np.float64),
    }


def _max_by(places: Places, values: Floats, size: int) -> Floats:
    """The best value at each place."""
    best = np.zeros(size)
    used = values.nonzero()[0]
    np.maximum.at(best, places.take(used), values.take(used))
    return best


def _share_of_max(values: Floats) -> Floats:
    """What is above 0, as a share of the most."""
    above = np.maximum(values, 0)
    return above / max(float(above.max(initial=0)), _TINY)


_SPREAD: Final = 0.5
"""What a row loses, in log-odds, for each unit that separates it from the best in the order."""
_NAME_SPREAD: Final = 1.0
"""The same if the question has a name: only the distance in the order counts then."""
_MAX_CERTAINTY: Final = 3.5
"""To be more certain of the first says nothing about the next, to which its names lead."""
_BEST_ROWS: Final = 3
"""Of so many rows the one that bears most on the question says whether it is answered."""
_JUDGED_ROWS: Final = 100
"""So many rows are judged each by itself; the others follow in their order."""
_TIE: Final = 0.001
"""Taken off so that two rows never have the same score."""
_BEHIND: Final = 50.0
"""More than any two rows differ by: what the graph does not reach comes after what it does."""
_SHORT_WORDS: Final = 6
"""From so many words on a text's vector says what the text says, and no longer how short it is."""
_LEAST_LOG_ODDS, _MOST_LOG_ODDS = -300.0, 30.0
_MIN_SCORE, _MAX_SCORE = 1e-18, 1 - 1e-15


def own_log_odds(
    scale: DocumentScale, term: Signal, is_about: Bools, cosines: Signal | None = None, dense: Signal | None = None
) -> Floats:
    """How far each row bears on the question by itself, before the size penalty."""
    own: Floats = scale.bias + scale.term * term.astype(np.float64) + scale.about * is_about
    if cosines is not None:
        own += scale.cosine * cosines
    if dense is not None:
        own += scale.dense * dense
    return own


def short_excess(scale: DocumentScale, question_words: int, lengths: Signal) -> Floats:
    """By how much each row's cosine with the question is too high, because both are short.

    >>> short_excess(DocumentScale(short=0.25), 1, np.array([1, 3, 20], np.float32)).round(2).tolist()
    [0.25, 0.15, 0.0]
    """
    most = scale.short * min(max(_SHORT_WORDS - question_words, 0) / (_SHORT_WORDS - 1), 1)
    if not most:
        return np.zeros(len(lengths))
    excess: Floats = most * np.clip((_SHORT_WORDS - lengths.astype(np.float64)) / (_SHORT_WORDS - 1), 0, 1)
    return excess


def combine_scores(blend: Floats, own: Floats, graph: GraphRanking, size_loss: float = 0.0) -> Floats:
    """The scores by row, best first in the order of the two rankings.

    Where the question has a name that leads somewhere, the graph gives the order: the next step shares a name with the
    first and no word with the question. Elsewhere both count alike, which is better than either. `own` are log-odds:
    how far each row bears on the question by itself. The first row gets the highest of the first three. Every other row
    gets its own, less what separates it from the first; no row scores more than the one before it. Where names lead,
    the way to a row counts in place of what it says itself. `size_loss` is taken off all of them later.
    """
    # What the rows are ordered by; minus infinity for what neither finds.
    within = np.clip(blend, _MIN_SCORE, _MAX_SCORE)
    odds = np.log(within) - np.log1p(-within)
    is_reached = np.isfinite(graph.total)
    order = np.where(is_reached, graph.total + (0.0 if graph.has_names else odds), odds - _BEHIND)
    order[(blend == 0) & ~is_reached] = -np.inf
    best = top_rows(order, _JUDGED_ROWS)
    best = best[np.isfinite(order[best])]
    if not len(best):
        return np.zeros(len(blend))
    answered = float(own[best[:_BEST_ROWS]].max())
    distance = order[best[0]] - order
    if graph.has_names:
        judged = min(answered, _MAX_CERTAINTY + size_loss) - _NAME_SPREAD * distance[best]
    else:
        judged = own[best] - _SPREAD * distance[best]
    judged[0] = answered
    log_odds = np.minimum.accumulate(judged)[-1] - _SPREAD * (distance - distance[best[-1]])
    log_odds[best] = np.minimum.accumulate(np.minimum(judged, answered))
    log_odds = np.clip(log_odds - _TIE * distance, _LEAST_LOG_ODDS, _MOST_LOG_ODDS)
    return np.where(order > -np.inf, 1 / (1 + np.exp(-log_odds)), 0.0)
