"""From a question to passages through the names they share: seeds, bridges, a walk, and a last look at the best."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.graph import Graph, View, summed
from eunoe.index.passage import number
from eunoe.index.stream import StreamIndex
from eunoe.model.hit import Reason
from eunoe.recall import query as queries
from eunoe.recall.query import Question, Synonyms, Word
from eunoe.recall.recipes import Links, Recipe, Trust
from eunoe.text import analyzer
from eunoe.text.entities import spaceless_keys
from eunoe.text.languages import detect_language, stop_words_and_english
from eunoe.text.normalize import fold

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

PRIOR: Final = 0.05
"""What a passage's own words and vector count beside the names, at most."""
BRIDGES: Final = 2.0
"""What all bridges together count beside the names in the question."""
_BEST: Final = 3
"""Sentences through which a name leads on."""
_POOL: Final = 200
_LEAST: Final = 0.05
_LONGEST: Final = 12
_FLOOR: Final = 1e-6
_LOW_BITS: Final = 0xFFFF
_TOKEN: Final = re.compile(r"[^\W_]+")
_LOWEST: Final = float(np.log(_FLOOR))
_LEGS: Final = ("walk", "words", "vector", "sentence", "about", "named", "led", "bridged")
_STEP: Final = 0.01
_TINY: Final = 1e-300
_FIRST_AFTER, _DEPTH = 5, 10
_FAR_AHEAD: Final = 12.0
_USUAL_LEAD: Final = 3.0
"""Stands in for rows that are not there: a memory of one thing tells nothing by what else it holds."""
_SHOWN: Final = 0.05
_FARTHEST: Final = 40.0


class Ranked(NamedTuple):
    """Scores by row of an index, 0 for what is not found, and what speaks for a row."""

    scores: Floats
    reasons: Callable[[int], tuple[Reason, ...]]


def rank(
    index: StreamIndex, graph: Graph, question: Question, vector: NDArray[np.float32] | None, mask: Bools,
    synonyms: Synonyms | None, recipe: Recipe,
) -> Ranked:  # fmt: skip
    """Ranks the rows of an index by its graph. Rows outside the mask take no part and lend nothing."""
    found = trail(index, graph, question, vector, mask, synonyms)
    where = index.rows_of(graph)
    total = weighed(found, recipe.links)
    odds = _odds(found.legs, total, recipe.bare_trust if _is_bare(index, vector) else recipe.trust)
    odds = np.where(_told(graph, found), odds, -np.logaddexp(0, -np.maximum(odds, -_FARTHEST)))
    scores = np.zeros(index.rows)
    seen = np.isfinite(total)
    scores[where[seen]] = 1 / (1 + np.exp(-np.clip(odds[seen], -_FARTHEST, _FARTHEST)))
    return Ranked(scores, lambda row: _reasons(graph, found, recipe.links, int(np.argmax(where == row))))


def _is_bare(index: StreamIndex, vector: NDArray[np.float32] | None) -> bool:
    return vector is None or len(vector) != index.dense.size


def weighed(found: Trail, links: Links) -> Floats:
    """What speaks for each row of the graph; minus infinity where nothing does."""
    walk = found.legs["walk"]
    total = np.zeros(len(walk))
    for name in _LEGS:
        total += getattr(links, name) * found.legs[name]
    reached = found.visible & (walk > _LOWEST)
    far = _far(walk, reached, links.depth)
    if far.any():
        # The walk's order stays beyond its best: there the other evidence is mostly chance.
        least = float(total[reached & ~far].min())
        total[far] = least + links.walk * (walk[far] - float(walk[far].max())) - _STEP
    return np.where(reached, total, -np.inf)


def _far(walk: Floats, reached: Bools, depth: int) -> Bools:
    """Rows that are not among the walk's best."""
    if int(reached.sum()) <= depth:
        return np.zeros(len(walk), np.bool_)
    edge = np.partition(walk[reached], -depth)[-depth]
    far: Bools = reached & (walk < edge)
    return far


def _odds(legs: dict[str, Floats], total: Floats, trust: Trust) -> Floats:
    """The log-odds of each row: how far the question is answered at all, less what separates the row from the best."""
    top = float(total.max(initial=-np.inf))
    if not np.isfinite(top):
        return total
    best = trust.bias + sum(getattr(trust, name) * value for name, value in answered(legs, total).items())
    odds: Floats = best + trust.spread * (total - top)
    return odds


def answered(legs: dict[str, Floats], total: Floats) -> dict[str, float]:
    """What speaks for a question being answered by the best rows together."""
    order = np.argsort(-total, kind="stable")[:_DEPTH]
    best = order[np.isfinite(total[order])][:_BEST]
    lead = float(np.clip(total[order[0]] - total[order[_FIRST_AFTER:]], 0, _FAR_AHEAD).sum())
    missing = _DEPTH - max(len(order), _FIRST_AFTER)
    features = {name: float(legs[name][best].max()) for name in ("words", "vector", "sentence", "named")}
    return features | {"lead": (lead + missing * _USUAL_LEAD) / (_DEPTH - _FIRST_AFTER)}


def _told(graph: Graph, found: Trail) -> Bools:
    """Rows that have a word or a name of the question, or a name that one of these leads to. What has none of them is
    at best as likely as not."""
    leads = found.led > 0
    leads[list(found.asked)] = True
    told = (found.legs["words"] > 0) | (found.legs["sentence"] > 0)
    told[graph.edges["row"][leads.take(graph.edges["entity"])]] = True
    return told


def _reasons(graph: Graph, found: Trail, links: Links, row: int) -> tuple[Reason, ...]:
    """What speaks for a row, by its share, with the way that the names lead."""
    legs = {name: getattr(links, name) * float(found.legs[name][row]) for name in _LEGS}
    way = path(graph, found, row)
    walked = links.walk * (float(found.legs["walk"][row]) - _LOWEST) / 4 if way else 0.0
    shares = {
        "graph": walked + legs["about"] + legs["led"] + legs["bridged"] if way else 0.0,
        "lexical": legs["words"] + legs["sentence"],
        "dense": legs["vector"],
    }
    total = sum(share for share in shares.values() if share > 0) or 1.0
    told = sorted(((share / total, name) for name, share in shares.items() if share > 0), reverse=True)
    return tuple(
        Reason(name, round(share, 3), way if name == "graph" else "") for share, name in told if share >= _SHOWN
    )


def path(graph: Graph, found: Trail, row: int) -> str:
    """The way to a row: a name in the question, the name of a bridge; empty where no name leads there."""
    names = graph.names_at(row)
    asked = [name for name, _ in names if name in found.asked]
    titled = [name for name, weight in names if weight > 1]
    for name in asked:
        if name in titled:
            return graph.label(name)
    led = max(names, key=lambda each: float(found.led[each[0]]) * each[1], default=(0, 0.0))[0]
    if found.origin[led]:
        return f"{graph.label(int(found.origin[led]))} -> {graph.label(led)}"
    return graph.label(asked[0]) if asked else ""


class Trail(NamedTuple):
    """What was found out on the way from a question to the rows of a graph."""

    visible: Bools
    """Which rows may be found."""
    asked: tuple[int, ...]
    """Names in the question, but for those that stand nearly everywhere."""
    led: Floats
    """How well the best sentence that leads to a name fits the question."""
    origin: NDArray[np.int32]
    """The name in the question from which a name was reached, 0 where none."""
    legs: dict[str, Floats]
    """Evidence by row, as in `Links`."""


def trail(
    index: StreamIndex, graph: Graph, question: Question, vector: NDArray[np.float32] | None, mask: Bools,
    synonyms: Synonyms | None,
) -> Trail:  # fmt: skip
    """Follows a question through the graph. Rows outside the mask take no part."""
    where = index.rows_of(graph)
    visible = (where >= 0) & np.append(mask, False).take(where)
    view = graph.view(visible)
    asked = names_in(question.text, graph, view)
    like = _likeness(index, graph, question, asked, synonyms) * visible.take(graph.sentences["row"])
    telling = [name for name in asked if not view.common[name]]
    bridges = _bridges(graph, view, telling or asked, like)
    own = _direct(index, question, vector, where, visible)
    names = _seeds(graph, view, asked, bridges)
    prior = PRIOR * _scaled(_scaled(own["words"]) + _scaled(own["vector"]))
    walked = view.walk(names, prior)
    legs = own | {
        "walk": np.log(np.maximum(walked / max(float(walked.max(initial=0)), _TINY), _FLOOR)),
        "sentence": _by_row(like, graph.sentences["row"], graph.rows),
        **_covered(graph, view, asked, bridges),
    }
    return Trail(visible, tuple(telling), bridges.led, bridges.origin, legs)


def names_in(query: str, graph: Graph, view: View) -> list[int]:
    """The names of the graph in a question, the longest wherever one begins."""
    chunks = _TOKEN.findall(_bare(query))
    words = _Words(
        chunks, [fold(chunk) for chunk in chunks], stop_words_and_english(detect_language(query))
    )
    known = {name: number for name, number in _spaceless(query, graph) if view.holders[number]}
    start = 0
    while start < len(chunks):
        end = words.longest(graph, view, start)
        if end:
            name = " ".join(words.folded[start:end])
            known[name] = graph.entities[name]
        start = end or start + 1
    return list(dict.fromkeys(known.values()))


def _spaceless(query: str, graph: Graph) -> Iterator[tuple[str, int]]:
    """Names in scripts that put no space between words."""
    for name in spaceless_keys(query):
        if name in graph.entities:
            yield name, graph.entities[name]


class _Words(NamedTuple):
    """The words of a question as written and folded, and those that say nothing."""

    chunks: Sequence[str]
    folded: Sequence[str]
    empty: frozenset[str]

    def longest(self, graph: Graph, view: View, start: int) -> int:
        """Where the longest known name that starts here ends; 0 where there is none."""
        for end in range(min(len(self.chunks), start + _LONGEST), start, -1):
            number = graph.entities.get(" ".join(self.folded[start:end]))
            if number and view.holders[number] and self._may_name(start, end):
                return end
        return 0

    def _may_name(self, start: int, end: int) -> bool:
        """Whether some words may be a name: not stop words alone, and with a capital where others have one."""
        cased = any(chunk[0].isupper() for chunk in self.chunks[1:])
        capital = [not chunk[0].islower() for chunk in self.chunks[start:end]]
        if self.folded[start] in self.empty and (start == 0 or (cased and not capital[0])):
            return False
        if self.empty.issuperset(self.folded[start:end]):
            return len(capital) > 1 and all(capital)
        return any(capital) or not cased


def _bare(query: str) -> str:
    """A question without possessives and apostrophes, its case kept."""
    return re.sub(r"['’`]s\b|['’`](?=\s|$)", "", query, flags=re.IGNORECASE).replace("'", "").replace("’", "")


def _likeness(
    index: StreamIndex, graph: Graph, question: Question, asked: Sequence[int], synonyms: Synonyms | None
) -> Floats:
    """How much of what the question says besides its names each sentence says too, 0 to 1."""
    named = {word for each in asked for word in graph.keys[each].split()}
    words = [word for word in question.words if not named.issuperset(analyzer.folded_words(word.label) or [word.label])]
    fits = queries.fits(words, index.lexical.languages, synonyms)
    worth = np.array([_worth(index, word) for word in words])
    terms: dict[int, tuple[int, float]] = {}
    for place, forms in enumerate(fits):
        for form, fit in forms.items():
            known = terms.get(number(form))
            if known is None or known[1] < fit:
                terms[number(form)] = (place, fit)
    like = np.zeros(graph.sentences.used)
    if terms:
        sentences, places, found = _met(graph, terms)
        like = np.bincount(sentences, found * worth.take(places), len(like)) / max(float(worth.sum()), 1e-9)
    return like


def _worth(index: StreamIndex, word: Word) -> float:
    return index.lexical.idf(queries.exactly(word, index)) * word.weight


def _met(graph: Graph, terms: dict[int, tuple[int, float]]) -> tuple[Ints, Ints, Floats]:
    """Sentences with the places of the words that they have, each once, with its best fit."""
    wanted = np.array(sorted(terms), np.uint32)
    low = np.zeros(_LOW_BITS + 1, np.bool_)
    low[wanted & _LOW_BITS] = True
    held = graph.words["term"]
    maybe = low.take(held & _LOW_BITS).nonzero()[0]
    which = np.searchsorted(wanted, held.take(maybe)).clip(max=len(wanted) - 1)
    sure = wanted.take(which) == held.take(maybe)
    of = [terms[each] for each in wanted.tolist()]
    place = np.array([each[0] for each in of])[which[sure]]
    fit = np.array([each[1] for each in of])[which[sure]]
    sentence = graph.words["sentence"].take(maybe[sure]).astype(np.int64)
    order = np.lexsort((fit, place, sentence))
    sentence, place, fit = sentence[order], place[order], fit[order]
    last = np.append((sentence[1:] != sentence[:-1]) | (place[1:] != place[:-1]), np.ones(min(len(order), 1), np.bool_))
    return sentence[last], place[last], fit[last]


class _Bridges(NamedTuple):
    """What the sentences around the question's names lead to."""

    weight: Floats
    led: Floats
    led_by_title: Floats
    origin: NDArray[np.int32]


def _bridges(graph: Graph, view: View, asked: Sequence[int], like: Floats) -> _Bridges:
    """The names in the sentences that speak of a name in the question, or stand in a passage about it."""
    weight, best, titled = np.zeros(len(like)), np.zeros(len(like)), np.zeros(len(like))
    source = np.zeros(len(like), np.int32)
    for name in asked:
        around, about = _around(graph, view, name)
        around = around[np.argsort(-like.take(around), kind="stable")][:_POOL]
        worth = like.take(around) + _LEAST
        weight[around[:_BEST]] += worth[:_BEST]
        better = worth > best.take(around)
        source[around[better]] = name
        best[around] = np.maximum(best.take(around), worth)
        there = about.take(around)
        titled[around[there]] = np.maximum(titled.take(around[there]), worth[there])
    return _led(graph, view, asked, (weight, best, titled), source)


def _around(graph: Graph, view: View, name: int) -> tuple[Ints, Bools]:
    """Visible sentences that have to do with a name, and which sentences stand in passages about it."""
    rows = np.zeros(view.sizes[0], np.bool_)
    rows[view.row[(view.entity == name) & view.titled]] = True
    about = rows.take(graph.sentences["row"])
    near = about.copy()
    near[graph.mentions["sentence"][graph.mentions["entity"] == name]] = True
    return (near & view.visible.take(graph.sentences["row"])).nonzero()[0], about


def _led(
    graph: Graph, view: View, asked: Sequence[int], values: tuple[Floats, Floats, Floats], source: NDArray[np.int32]
) -> _Bridges:
    """What sentences are worth, handed on to the names in them."""
    used = values[1].take(graph.mentions["sentence"]).nonzero()[0]
    entity, sentence = graph.mentions["entity"][used], graph.mentions["sentence"][used]
    weight = np.bincount(entity, values[0].take(sentence), view.sizes[1]) / np.maximum(view.holders, 1)
    led, by_title = np.zeros(view.sizes[1]), np.zeros(view.sizes[1])
    np.maximum.at(led, entity, values[1].take(sentence))
    np.maximum.at(by_title, entity, values[2].take(sentence))
    origin = np.zeros(view.sizes[1], np.int32)
    order = np.argsort(values[1].take(sentence), kind="stable")
    origin[entity[order]] = source.take(sentence[order])
    for values_of in (weight, led, by_title):
        values_of[list(asked)] = 0
        values_of[view.common] = 0
        values_of[0] = 0
    origin[view.common] = 0
    return _Bridges(weight, led, by_title, origin)


def _seeds(graph: Graph, view: View, asked: Sequence[int], bridges: _Bridges) -> Floats:
    """Where the walk starts: the rarer a name, the more it tells."""
    seeds = np.zeros(view.sizes[1])
    for name in asked:
        seeds[name] = 1 / max(view.holders[name], 1)
    total = float(bridges.weight.sum())
    return seeds + bridges.weight * (BRIDGES * float(seeds.sum()) / total) if total > 0 else seeds


def _direct(
    index: StreamIndex, question: Question, vector: NDArray[np.float32] | None, where: Ints, visible: Bools
) -> dict[str, Floats]:
    """What a row's own words and vector say: the share of the best BM25 there can be, the cosine above the usual."""
    words = index.lexical.bm25(queries.plain(question, index)).astype(np.float64)
    cosines = None if vector is None else index.dense.cosines(vector)
    lift = np.zeros(index.rows)
    if cosines is not None:
        usual = (float(cosines.sum()) + 2.0) / (index.dense.count + 20)
        lift = np.where(index.dense.present, (cosines - usual) / max(1 - usual, 0.05), 0)
    return {name: np.append(leg, 0.0).take(where) * visible for name, leg in (("words", words), ("vector", lift))}


def _covered(graph: Graph, view: View, asked: Sequence[int], bridges: _Bridges) -> dict[str, Floats]:
    """Whether a row is about a name in the question, has it, or is about one that a bridge leads to."""
    inside = np.zeros(view.sizes[1])
    rarity = np.log1p(max(len(graph), 1) / np.maximum(view.holders.take(asked), 1)) if asked else np.zeros(0)
    inside[list(asked)] = rarity / max(float(rarity.sum()), 1e-9)
    is_asked = inside > 0
    row, entity = view.row[view.titled], view.entity[view.titled]
    seen = view.visible.take(view.row)
    by_title = _by_row(bridges.led_by_title.take(entity), row, graph.rows)
    return {
        "about": _by_row(is_asked.take(entity).astype(np.float64), row, graph.rows),
        "named": summed(view.row, inside.take(view.entity) * seen, graph.rows),
        "led": _by_row(bridges.led.take(entity), row, graph.rows),
        "bridged": (by_title > 0).astype(np.float64),
    }


def _by_row(values: Floats, row: NDArray[np.int32], rows: int) -> Floats:
    """The best value of each row."""
    best = np.zeros(rows)
    used = values.nonzero()[0]
    np.maximum.at(best, row.take(used), values.take(used))
    return best


def _scaled(values: Floats) -> Floats:
    """What is above 0, as a share of the most."""
    above = np.maximum(values, 0)
    return above / max(float(above.max(initial=0)), _TINY)
