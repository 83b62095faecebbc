"""The part of an entity graph around one entity, or its entities, the best connected first: for people to look at.

Which entities are shown as names, and which of them are one, is told by what all passages of a stream say.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from time import time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import NotFoundError
from eunoe.index.cache import HeldIndex, IndexCache
from eunoe.index.graph import TITLE_WEIGHT, EntityGraph, sum_by
from eunoe.index.passage import term_number
from eunoe.index.stream import StreamIndex
from eunoe.index.tables import Bools, Ints
from eunoe.model.arguments import show
from eunoe.model.result import Entity, GraphSize, Link, Mention, Neighbourhood, PassageGraph, Relation
from eunoe.model.scope import Scope
from eunoe.recall.request import NO_FILTER
from eunoe.store.contract import ItemQuery, Reading
from eunoe.store.schema import PassageGraphRecord
from eunoe.text import analyzer
from eunoe.text.entities import entity_key, group_names, title_keys, usual_key
from eunoe.text.names import GIVEN_NAMES, find_similar_names, is_identifier, load_name_model

Floats = NDArray[np.float64]


MAX_ENTITIES: Final = 1000
MAX_DEPTH: Final = 6
_MAX_SUGGESTIONS: Final = 5
_MAX_SPELLINGS: Final = 50
"""Rows that are looked at for how an entity is written."""


def find_neighbourhood(indexes: IndexCache, scope: Scope, entity: str, depth: int, limit: int) -> Neighbourhood:
    """What is near to an entity, at most so many others; without one, those that are tied to most first."""

    def find(store: Reading, held: Sequence[HeldIndex]) -> Neighbourhood:
        for lent in held:
            edges = _Edges(lent.index)
            if entity.strip():
                return _around(store, edges, _find_entity(edges, scope, entity), depth, limit)
            # Where there is room, those that nothing connects follow, the most frequent first.
            ties = edges.ties_to_all()
            numbers = _strongest(edges, ties, limit)
            apart = np.where(ties > 0, 0.0, edges.passage_counts)
            numbers += _strongest(edges, apart, limit - len(numbers), numbers)
            entities = [edges.describe(number, float(ties[number]), 0) for number in numbers]
            keys = [each.key for each in entities]
            return Neighbourhood("", tuple(entities), _links(edges, keys), (), _relations(store, edges, keys))
        if entity.strip():
            raise NotFoundError(f"{scope} holds nothing yet, so it knows no {show(entity)}")
        return Neighbourhood()

    return indexes.read([scope], find, graph=True)


def measure_graph(indexes: IndexCache, scope: Scope) -> GraphSize:
    """How much the graph of a scope holds, of what is true now."""

    def measure(store: Reading, held: Sequence[HeldIndex]) -> GraphSize:
        for each in held:
            edges = _Edges(each.index)
            triples = {
                (subject, relation.casefold(), object)
                for _, graph in _passage_graphs(store, edges, edges.visible_rows)
                for subject, relation, object in graph.triples
            }
            entities = int(np.count_nonzero(edges.passage_counts))
            return GraphSize(len(edges.visible_rows), entities, len(edges.row), len(triples))
        return GraphSize()

    return indexes.read([scope], measure, graph=True)


class _Edges:
    """The edges of the rows that are true now, and no others."""

    def __init__(self, index: StreamIndex) -> None:
        assert index.graph is not None
        self.graph: EntityGraph = index.graph
        rows = index.graph_rows(self.graph)
        visible = (rows >= 0) & np.append(NO_FILTER.mask(index, time()), False).take(rows)
        self.visible_rows: list[int] = np.flatnonzero(visible).tolist()
        self.names = ShownNames(self.graph, visible)
        self.shown = self.names.groups()
        """For each entity the one that it is shown as."""
        edges = self.graph.edges
        is_visible = visible.take(edges["row"])
        # Each edge once, with its greatest weight.
        row, entity = edges["row"][is_visible], self.shown.take(edges["entity"][is_visible])
        weight = edges["weight"][is_visible]
        order = np.lexsort((-weight, entity, row))
        row, entity, weight = row[order], entity[order], weight[order]
        is_first = np.append(np.ones(min(len(row), 1), np.bool_), (np.diff(row) != 0) | (np.diff(entity) != 0))
        self.row, self.entity = row[is_first], entity[is_first]
        self.weight: Floats = weight[is_first].astype(np.float64)
        self.row_count, self.entity_count = self.graph.rows, len(self.graph.keys)
        self.passage_counts = np.bincount(self.entity, minlength=self.entity_count)
        """How many rows have each entity."""
        self._labels: dict[int, str] = {}

    def row_weights(self, entity: int) -> Floats:
        """How much each row has to do with an entity, 0 where it does not have it."""
        is_own = self.entity == entity
        return sum_by(self.row[is_own], self.weight[is_own], self.row_count)

    def ties_to(self, entity: int) -> Floats:
        """How strongly each entity is tied to this one."""
        own = self.row_weights(entity).take(self.row)
        ties = sum_by(self.entity, np.where(own > 0, np.maximum(own, self.weight), 0), self.entity_count)
        ties[entity] = 0
        return ties

    def ties_to_all(self) -> Floats:
        """How strongly each entity is tied to all others together, without going through the pairs."""
        in_title = self.weight > 1
        titles = np.bincount(self.row, in_title, self.row_count).take(self.row)
        others = np.bincount(self.row, minlength=self.row_count).take(self.row) - 1
        ties = np.where(in_title, TITLE_WEIGHT * others, others + (TITLE_WEIGHT - 1) * titles)
        return sum_by(self.entity, ties, self.entity_count)

    def label(self, entity: int) -> str:
        """How an entity is written where it stands alone, or else as the title that it is a short form of."""
        if entity not in self._labels:
            title = next(self._spellings(entity))
            own = (name for name in self._spellings(entity) if entity_key(name) == self.graph.keys[entity])
            self._labels[entity] = next(own, title)
        return self._labels[entity]

    def is_short_form(self, entity: int) -> bool:
        """Say whether an entity stands nowhere without the title that it is a short form of, which is shown instead."""
        title = int(self.shown[self.graph.entities.get(entity_key(self.label(entity)), entity)])
        return title != entity and self.passage_counts[title] > 0 and self.names.is_name(title)

    def _spellings(self, entity: int) -> Iterator[str]:
        places = np.flatnonzero(self.entity == entity)
        order = places[np.argsort(-self.weight[places], kind="stable")][:_MAX_SPELLINGS]
        for row in self.row[order].tolist():
            own = [number for number, _ in self.graph.entities_at(row) if self.shown[number] == entity]
            yield self.graph.label_in(row, entity if entity in own else own[0])

    def keys_of(self, seq: int) -> list[str]:
        """The keys under which the entities of a passage are shown."""
        numbers = [self.graph.entities[key] for key in self.graph.entities_of(seq)]
        return [self.graph.keys[number] for number in self.shown[numbers].tolist()]

    def describe(self, entity: int, weight: float, distance: int) -> Entity:
        passages = int(self.passage_counts[entity])
        return Entity(self.graph.keys[entity], self.label(entity), passages, round(weight, 3), distance)


def _around(store: Reading, edges: _Edges, start: int, depth: int, limit: int) -> Neighbourhood:
    entities = [edges.describe(start, 0.0, 0)]
    known, frontier = {start}, {start: 1.0}
    for distance in range(1, depth + 1):
        ties = sum((share * edges.ties_to(number) for number, share in frontier.items()), np.zeros(edges.entity_count))
        ties[list(known)] = 0
        chosen = _strongest(edges, ties, limit + 1 - len(entities), sorted(known))
        entities += [edges.describe(number, float(ties[number]), distance) for number in chosen]
        known |= set(chosen)
        total = float(ties[chosen].sum()) or 1.0
        frontier = {number: float(ties[number]) / total for number in chosen}
        if not frontier or len(entities) > limit:
            break
    keys = [entity.key for entity in entities]
    passages = _passages(store, edges, start, keys, limit)
    return Neighbourhood(keys[0], tuple(entities), _links(edges, keys), passages, _relations(store, edges, keys))


def _find_entity(edges: _Edges, scope: Scope, name: str) -> int:
    """The number of an entity, however it is written."""
    graph, counts = edges.graph, edges.passage_counts
    for spelling in (entity_key(name), *title_keys(name)):
        number = int(edges.shown[graph.entities.get(usual_key(spelling), 0)])
        if number and counts[number]:
            return number
    visible = (key for key, number in graph.entities.items() if counts[edges.shown[number]])
    similar = [
        int(edges.shown[graph.entities[key]]) for key in find_similar_names(entity_key(name), visible, _MAX_SUGGESTIONS)
    ]
    labels = " or ".join(dict.fromkeys(edges.label(number) for number in similar))
    hint = f": did you mean {labels}?" if labels else ""
    raise NotFoundError(f"{scope} has no passage that names {show(name)}{hint}")


def _strongest(edges: _Edges, ties: Floats, limit: int, known: Sequence[int] = ()) -> list[int]:
    """The entities with the strongest ties, the rarer first among equals: they say more. No two are written alike."""
    labels = {edges.label(number) for number in known}
    chosen: list[int] = []
    for number in np.lexsort((np.arange(len(ties)), edges.passage_counts, -ties)).tolist():
        if len(chosen) >= limit or ties[number] <= 0:
            break
        if not edges.names.is_name(number) or edges.is_short_form(number) or edges.label(number) in labels:
            continue
        labels.add(edges.label(number))
        chosen.append(number)
    return chosen


def _links(edges: _Edges, keys: Sequence[str]) -> tuple[Link, ...]:
    place_of = np.full(edges.entity_count, -1)
    place_of[[edges.graph.entities[name] for name in keys]] = np.arange(len(keys))
    place = place_of.take(edges.entity)
    inside = np.flatnonzero(place >= 0)
    inside = inside[np.bincount(edges.row[inside], minlength=edges.row_count)[edges.row[inside]] > 1]
    inside = inside[np.argsort(edges.row[inside], kind="stable")]
    ties = np.zeros((len(keys), len(keys)))
    for part in np.split(inside, np.flatnonzero(np.diff(edges.row[inside])) + 1):
        ties[np.ix_(place[part], place[part])] += np.maximum.outer(edges.weight[part], edges.weight[part])
    pairs = np.argwhere(np.triu(ties, 1) > 0).tolist()
    return tuple(Link(keys[a], keys[b], round(float(ties[a, b]), 3)) for a, b in pairs)


def _relations(store: Reading, edges: _Edges, keys: Sequence[str]) -> tuple[Relation, ...]:
    """What was extracted from the rows that have two of these entities or more."""
    numbers = [edges.graph.entities[key] for key in keys]
    shared = np.bincount(edges.row[np.isin(edges.entity, numbers)], minlength=edges.row_count)
    shown = {edges.label(number): key for key, number in zip(keys, numbers, strict=True)}
    spellings: dict[tuple[str, str, str], str] = {}
    counts: Counter[tuple[str, str, str]] = Counter()
    for row, graph in _passage_graphs(store, edges, np.flatnonzero(shared > 1).tolist()):
        found = {}
        for triple in graph.triples:
            a, b = (_shown_key(edges, row, name, shown) for name in (triple.subject, triple.object))
            if a and b and a != b:
                found[a, triple.relation.casefold(), b] = triple.relation
        counts.update(found.keys())
        spellings = found | spellings
    return tuple(Relation(a, spellings[a, own, b], b, count) for (a, own, b), count in counts.most_common())


def _passage_graphs(store: Reading, edges: _Edges, rows: Iterable[int]) -> Iterator[tuple[int, PassageGraph]]:
    row_of = {edges.graph.seqs[row]: row for row in rows}
    for record in store.load(PassageGraphRecord, seq=list(row_of)):
        yield row_of[record.seq], PassageGraph.of(record.data)


def _shown_key(edges: _Edges, row: int, name: str, shown: Mapping[str, str]) -> str:
    """The key under which an entity of a row is shown; empty if it is not. A single word may stand for the one name of
    the row that begins or ends with it."""
    own = {edges.graph.keys[number]: int(edges.shown[number]) for number, _ in edges.graph.entities_at(row)}
    key = entity_key(name)
    full = [key] if key in own else [each for each in own if key in (each.split()[0], each.split()[-1])]
    forms = {shown.get(edges.label(own[each]), "") for each in full}
    return forms.pop() if len(forms) == 1 else ""


def _passages(store: Reading, edges: _Edges, start: int, keys: Sequence[str], limit: int) -> tuple[Mention, ...]:
    """Those that are about the entity first, then the latest."""
    weights = edges.row_weights(start)
    by_seq = {edges.graph.seqs[row]: float(weights[row]) for row in np.flatnonzero(weights).tolist()}
    order = sorted(by_seq, key=lambda seq: (-by_seq[seq], -seq))[:limit]
    records = {record.seq: record for record in store.select(ItemQuery(seqs=order))}
    shown = frozenset(keys)
    return tuple(
        Mention(
            id=record.id,
            kind=record.kind,
            text=record.text,
            about=by_seq[record.seq] > 1,
            keys=tuple(dict.fromkeys(name for name in edges.keys_of(record.seq) if name in shown)),
        )
        for record in (records[seq] for seq in order if seq in records)
    )


_MAX_SCORE: Final = 0.98
"""No single passage is surer than this."""
_OTHER_USE_WEIGHT: Final = 2.0
"""What counts how often a word is no name elsewhere, beside what its own passages say."""
_MAX_OTHER_USE: Final = 0.8
"""What can be said for a name by its being no word elsewhere: a word may be rare."""
_MAX_SENTENCES: Final = 500
_MAX_LABELS: Final = 50
"""Passages that are looked at for how a name is written."""


class ShownNames:
    """What the passages of one graph say together about its entities."""

    def __init__(self, graph: EntityGraph, visible: Bools) -> None:
        """`visible` are the rows of the graph that count."""
        self._graph, self._size = graph, len(graph.keys)
        is_visible = visible.take(graph.edges["row"])
        entity, score = graph.edges["entity"][is_visible], graph.edges["score"][is_visible].astype(np.float64)
        likely = np.clip(score, 1 - _MAX_SCORE, _MAX_SCORE)
        counts = self._counts = np.bincount(entity, minlength=self._size)
        self._odds = sum_by(entity, np.log(likely / (1 - likely)), self._size) / np.maximum(counts, 1)
        self._sentence_is_visible = visible.take(graph.sentences["row"])
        self._is_name: dict[int, bool] = {}

    def is_name(self, entity: int) -> bool:
        """Say whether an entity is more likely a name than not."""
        if entity not in self._is_name:
            likely = self._odds[entity] + self._other_use(entity) > 0
            self._is_name[entity] = likely or self._is_identifier(self._graph.keys[entity])
        return self._is_name[entity]

    def _other_use(self, entity: int) -> float:
        """How much the sentences with the same word speak for a name, or against."""
        key = self._graph.keys[entity]
        if " " in key or self._odds[entity] < -np.log(_MAX_SCORE / (1 - _MAX_SCORE)):
            return 0.0
        words, mentions = self._graph.words, self._graph.mentions
        numbers = [term_number(term) for term in analyzer.terms_of_each([key])[0]]
        sentences = np.unique(words["sentence"][np.isin(words["term"], numbers)])
        sentences = sentences[self._sentence_is_visible.take(sentences)][:_MAX_SENTENCES]
        inside = np.flatnonzero(np.isin(mentions["sentence"], sentences)).tolist()
        holds_key = [key in self._graph.keys[mentions["entity"][place]].split() for place in inside]
        named = len(set(compress(mentions["sentence"][inside].tolist(), holds_key)))
        use = _OTHER_USE_WEIGHT * float(np.log((named + 0.5) / (len(sentences) - named + 0.5)))
        # The name of who speaks stands before the words, "Jonas: ...", and is not read as a name there.
        is_known = key in GIVEN_NAMES or not load_name_model().level(key)
        return min(max(use, 0.0) if is_known else use, _MAX_OTHER_USE)

    def groups(self) -> Ints:
        """For each entity the one that it is shown as."""
        likely = np.flatnonzero(self._odds > 0)
        keys = [self._graph.keys[entity] for entity in likely.tolist()]
        same = group_names(dict(zip(keys, self._counts[likely].tolist(), strict=True)), self._may_be_person)
        shown = np.arange(self._size, dtype=np.int32)
        apart = ((name, full) for name, full in same.items() if " " in name or not self._stand_together(name, full))
        for name, full in (*apart, *self._overlong()):
            shown[self._graph.entities[name]] = shown[self._graph.entities[full]]
        return shown

    def _may_be_person(self, key: str) -> bool:
        level = load_name_model().level
        return all(not level(word) or word in GIVEN_NAMES for word in key.split()) and not self._is_identifier(key)

    def _is_identifier(self, key: str) -> bool:
        """Say whether a name is written like an identifier wherever it stands."""
        entity = self._graph.entities[key]
        rows = self._graph.edges["row"].take(self._graph.edges_to(np.array([entity]))[0])[:_MAX_LABELS]
        return all(is_identifier(self._graph.label_in(row, entity)) for row in rows.tolist())

    def _stand_together(self, *names: str) -> bool:
        """Say whether a passage tells two names apart: it would have joined what it holds to be one."""
        edges = self._graph.edges
        one, other = (edges["row"][edges["entity"] == self._graph.entities[name]] for name in names)
        return bool(np.isin(one, other).any())

    def _overlong(self) -> Iterator[tuple[str, str]]:
        """Names that have a word too many in front, or a number behind, with the name alone, which is more frequent."""
        level = load_name_model().level
        for key in filter(None, self._graph.keys):
            first, _, rest = key.partition(" ")
            name, _, last = key.rpartition(" ")
            for short, is_extra in (
                (rest, bool(level(first)) and not level(rest.partition(" ")[0])),
                (name, last.isdecimal()),
            ):
                number = self._graph.entities.get(short, 0)
                if not is_extra or not number or self._counts[number] < self._counts[self._graph.entities[key]]:
                    continue
                if not self._is_identifier(key):
                    yield key, short
                    break
