"""The entity graph: which passages name which entities, and their sentences, as flat arrays that grow by appending."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.passage import NO_GRAPH, Passage, parse_passage
from eunoe.index.tables import (
    Arrays,
    Bools,
    ColumnOrder,
    Ints,
    Longs,
    Table,
    pack_texts,
    prefixed,
    text_digest,
    unpack_texts,
    unprefixed,
)
from eunoe.model.result import PassageGraph
from eunoe.text.entities import EntityExtractor

Floats = NDArray[np.float64]

TITLE_WEIGHT: Final = 4.0
"""How much more a passage has to do with what it is about than with what it mentions."""
COMMON_PASSAGES: Final = 8
COMMON_SHARE: Final = 0.25
"""An entity in more passages than these, and in more than this share of all, connects nothing."""

_REMOVED: Final = 0
"""What rows of tables of a removed passage point to."""
_MIN_REMOVED: Final = 1024
_KEY_BYTES, _ROW_BYTES, _EDGE_BYTES = 220, 600, 24


_TABLES: Final = ("edges", "sentences", "mentions", "words")
_BOUNDS: Final = tuple(f"{name}_{end}" for name in _TABLES for end in ("start", "end"))
_SEPARATOR: Final = "\0"
"""Between the labels of a passage."""


class EntityGraph:
    """The passages and entities of one stream. Row 0 and entity 0 stand for nothing.

    To add or to remove a passage costs what the passage itself holds, not what the graph holds.
    """

    def __init__(self, extractor: EntityExtractor | None = None) -> None:
        self.version = 0
        self.extractor = extractor
        self.entities: dict[str, int] = {}
        """Numbers of entities by their keys."""
        self.keys: list[str] = [""]
        """Keys of entities by their numbers."""
        self.seqs: list[int] = [-1]
        """Numbers of the records, by row."""
        self.edges = Table(row=np.int32, entity=np.int32, weight=np.float32, score=np.float32)
        self.sentences = Table(row=np.int32)
        self.mentions = Table(sentence=np.int32, entity=np.int32)
        self.words = Table(sentence=np.int32, term=np.uint32)
        self.passages = Table(seq=np.int64, digest=np.int64, **dict.fromkeys(_BOUNDS, np.int32))
        """By row the number of its record, a digest of what was read, and where its own rows of each table are."""
        self.passages.extend(1)
        self.passage_counts = Table(rows=np.int32)
        """How many rows have each entity."""
        self.passage_counts.extend(1)
        self._rows: dict[int, int] = {}
        self._labels: list[str] = [""]
        self._free_rows: list[int] = []
        self._free_entities: list[int] = []
        self._removed = 0
        self._clear_orders()

    def _clear_orders(self) -> None:
        self._edge_order = ColumnOrder(self.edges, "entity")
        self._mention_order = ColumnOrder(self.mentions, "entity")
        self._word_order = ColumnOrder(self.words, "term")
        self._note_change()

    def _note_change(self) -> None:
        self._view: GraphView | None = None
        self._label_by_entity: dict[int, str] = {}

    def state(self) -> Arrays:
        """What it is made of. It has to be looked at as it was read by the extractor in the package."""
        arrays = prefixed("keys", pack_texts(self.keys)) | prefixed("labels", pack_texts(self._labels))
        for name, table in self._tables().items():
            arrays |= prefixed(name, table)
        for name, order in self._orders().items():
            arrays |= prefixed(f"{name}_order", order.state())
        return arrays | {"seqs": np.array(self.seqs, np.int64)}

    @classmethod
    def of(cls, state: Arrays, version: int) -> EntityGraph:
        graph = cls()
        graph.version = version
        for name, table in graph._tables().items():
            table.restore(unprefixed(name, state))
        for name, order in graph._orders().items():
            order.restore(unprefixed(f"{name}_order", state))
        graph.keys, graph._labels = (unpack_texts(unprefixed(name, state)) for name in ("keys", "labels"))
        graph.seqs = state["seqs"].tolist()
        is_used = graph.passage_counts["rows"] > 0
        graph.entities = {graph.keys[number]: number for number in np.flatnonzero(is_used).tolist()}
        graph._rows = dict(zip(graph.seqs, range(len(graph.seqs)), strict=True))
        graph._rows.pop(-1)
        graph._free_rows = (np.flatnonzero(state["seqs"][1:] < 0) + 1).tolist()
        graph._free_entities = (np.flatnonzero(~is_used[1:]) + 1).tolist()
        graph._removed = int(np.count_nonzero(graph.words["term"] == _REMOVED))
        graph._removed += int(np.count_nonzero(graph.edges["row"] == _REMOVED))
        return graph

    def _tables(self) -> dict[str, Table]:
        tables = (self.edges, self.sentences, self.mentions, self.words)
        return dict(zip(_TABLES, tables, strict=True)) | {"passages": self.passages, "counts": self.passage_counts}

    def _orders(self) -> dict[str, ColumnOrder]:
        """The orders in which rows of tables are looked up, by the names of the tables."""
        return {"edges": self._edge_order, "mentions": self._mention_order, "words": self._word_order}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> int:
        """How many rows there are, gaps and the empty one included."""
        return len(self.seqs)

    @property
    def nbytes(self) -> int:
        """Memory held; strings and objects are estimated."""
        objects = _KEY_BYTES * len(self.keys) + _ROW_BYTES * self.rows + _EDGE_BYTES * self.edges.size
        tables, orders = self._tables().values(), self._orders().values()
        return sum(table.nbytes for table in tables) + sum(order.nbytes for order in orders) + objects

    def holds(self, seq: int) -> bool:
        return seq in self._rows

    def apply(
        self,
        texts: Iterable[tuple[int, str]],
        removed: Iterable[int] = (),
        version: int = 0,
        passage_graphs: Mapping[int, PassageGraph] | None = None,
    ) -> None:
        """Take in texts by the numbers of their records, and drop others. What did not change is left alone."""
        self.version = max(version, self.version)
        for seq in removed:
            self.remove(seq)
        for seq, text in texts:
            passage_graph = (passage_graphs or {}).get(seq, NO_GRAPH)
            digest = text_digest(text if passage_graph == NO_GRAPH else f"{text}{_SEPARATOR}{passage_graph!r}")
            row = self._rows.get(seq)
            if row is None or int(self.passages["digest"][row]) != digest:
                self.remove(seq)
                self._add(seq, parse_passage(text, self.extractor, passage_graph), digest)

    def remove(self, seq: int) -> None:
        """Take a passage out, with its edges, its sentences, and the entities that no other has."""
        row = self._rows.pop(seq, None)
        if row is None:
            return
        own = self._spans(row)
        self._label_by_entity = {}
        counts = self.passage_counts["rows"]
        for entity in self.edges["entity"][own["edges"]].tolist():
            counts[entity] -= 1
            if not counts[entity]:
                del self.entities[self.keys[entity]]
                self.keys[entity] = ""
                self._free_entities.append(entity)
        for name, order in self._orders().items():
            order.remove(own[name])
        if self._view is not None:
            self._view.remove(row, own)
        for name, span in own.items():
            for column in self._tables()[name].values():
                column[span] = _REMOVED
        for column in self.passages.values():
            column[row] = 0
        self._removed += own["words"].stop - own["words"].start + own["edges"].stop - own["edges"].start
        self.seqs[row], self._labels[row] = -1, ""
        self._free_rows.append(row)
        if self._removed > max(_MIN_REMOVED, (self.words.size + self.edges.size) // 2):
            self._compact()

    def _spans(self, row: int) -> dict[str, slice]:
        """Where what is a row's own is in each table."""
        bounds = self.passages
        return {name: slice(int(bounds[f"{name}_start"][row]), int(bounds[f"{name}_end"][row])) for name in _TABLES}

    def entities_of(self, seq: int) -> dict[str, float]:
        """The keys of a passage's entities with their weights."""
        row = self._rows.get(seq)
        return {} if row is None else {self.keys[entity]: weight for entity, weight in self.entities_at(row)}

    def entities_at(self, row: int) -> list[tuple[int, float]]:
        """The numbers of a row's entities with their weights."""
        span = self._spans(row)["edges"]
        return list(zip(self.edges["entity"][span].tolist(), self.edges["weight"][span].tolist(), strict=True))

    def edges_to(self, entities: Longs) -> tuple[Longs, Longs]:
        """The edges to these entities, in order, and to which of them each goes."""
        return self._edge_order.find(entities)

    def mentions_of(self, entity: int) -> Longs:
        """The mentions of an entity."""
        return self._mention_order.find(np.array([entity]))[0]

    def sentences_with(self, terms: NDArray[np.uint32]) -> list[Ints]:
        """For each of these terms the sentences that have it."""
        return self._word_order.values("sentence", terms)

    def sentences_of(self, rows: Longs) -> Longs:
        """The sentences of these rows, row by row."""
        return ranges(self.passages["sentences_start"].take(rows), self.passages["sentences_end"].take(rows))

    def mentions_in(self, rows: Longs) -> Longs:
        """The mentions in these rows, row by row."""
        return ranges(self.passages["mentions_start"].take(rows), self.passages["mentions_end"].take(rows))

    def layers(self, table: str) -> RowLayers:
        """What the rows own in a table, in layers."""
        return RowLayers(self.passages[f"{table}_start"], self.passages[f"{table}_end"])

    def row_of(self, seq: int) -> int:
        """The row of a record; 0 if it does not hold it."""
        return self._rows.get(seq, 0)

    def sentence_order(self, sentences: Longs) -> Longs:
        """The numbers of the records that sentences stand in, by which they are in the same order in every graph of the
        same texts, with the numbers of the sentences themselves."""
        return self.passages["seq"].take(self.sentences["row"].take(sentences))

    def label(self, entity: int) -> str:
        """How an entity is written in the first of the passages that have it."""
        if entity not in self._label_by_entity:
            rows = self.edges["row"].take(self.edges_to(np.array([entity]))[0]).tolist()
            self._label_by_entity[entity] = self.label_in(min(rows, key=self.seqs.__getitem__), entity)
        return self._label_by_entity[entity]

    def label_in(self, row: int, entity: int) -> str:
        """How an entity is written in a row that has it."""
        place = int(np.argmax(self.edges["entity"][self._spans(row)["edges"]] == entity))
        return self._labels[row].split(_SEPARATOR)[place]

    def view(self, visible: Bools) -> GraphView:
        """The graph of the rows that may be seen, and no others."""
        if self._view is None or not np.array_equal(self._view.visible, visible):
            self._view = GraphView(self, visible)
        return self._view

    def _add(self, seq: int, passage: Passage, digest: int) -> None:
        self._note_change()
        if not self._free_rows:
            self._free_rows.append(len(self.seqs))
            self.seqs.append(-1)
            self._labels.append("")
            self.passages.extend(1)
        row = self._free_rows.pop()
        self._rows[seq], self.seqs[row] = row, seq
        self._labels[row] = _SEPARATOR.join(label.replace(_SEPARATOR, " ") for label in passage.labels.values())
        entities = {name: self._entity_number(name) for name in passage.labels}
        edges = self.edges.append(
            row=[row] * len(entities),
            entity=list(entities.values()),
            weight=[TITLE_WEIGHT if name in passage.about else 1.0 for name in entities],
            score=[passage.scores[name] for name in entities],
        )
        sentences = self.sentences.append(row=[row] * len(passage.sentences))
        numbers = np.arange(sentences.start, sentences.stop)
        mentions = self.mentions.append(
            sentence=np.repeat(numbers, np.array([len(each.entities) for each in passage.sentences], np.int64)),
            entity=[entities[name] for each in passage.sentences for name in each.entities],
        )
        words = self.words.append(
            sentence=np.repeat(numbers, np.array([len(each.terms) for each in passage.sentences], np.int64)),
            term=[term for each in passage.sentences for term in each.terms],
        )
        self.passages["seq"][row], self.passages["digest"][row] = seq, digest
        for name, span in zip(_TABLES, (edges, sentences, mentions, words), strict=True):
            self.passages[f"{name}_start"][row], self.passages[f"{name}_end"][row] = span.start, span.stop

    def _entity_number(self, key: str) -> int:
        """The number of an entity that one more passage has."""
        number = self.entities.get(key)
        if number is None:
            if not self._free_entities:
                self._free_entities.append(len(self.keys))
                self.keys.append("")
                self.passage_counts.extend(1)
            number = self._free_entities.pop()
            self.entities[key], self.keys[number] = number, key
        self.passage_counts["rows"][number] += 1
        return number

    def _compact(self) -> None:
        """Close the gaps that removed passages left."""
        is_kept = self.sentences["row"] != _REMOVED
        new_number = np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
        self.edges.keep(self.edges["row"] != _REMOVED)
        self.sentences.keep(is_kept)
        self.mentions.keep(self.mentions["entity"] != _REMOVED)
        self.words.keep(self.words["term"] != _REMOVED)
        for table in (self.mentions, self.words):
            table["sentence"][:] = new_number[table["sentence"]]
        rows = np.array(list(self._rows.values()), np.int64)
        for name in _TABLES:  # the bounds of rows move to where what they enclose is without gaps
            starts, ends = self.passages[f"{name}_start"], self.passages[f"{name}_end"]
            rows = rows[np.argsort(starts[rows], kind="stable")]
            sizes = ends[rows] - starts[rows]
            ends[rows] = np.cumsum(sizes)
            starts[rows] = ends[rows] - sizes
        self._removed = 0
        self._clear_orders()


class GraphView:
    """A graph as seen by one who may see some of its rows: passage counts, and the walk along its edges."""

    def __init__(self, graph: EntityGraph, visible: Bools) -> None:
        # NumPy looks up and adds by numbers of this type alone: others are turned into it each time.
        row, entity = graph.edges["row"].astype(np.intp), graph.edges["entity"].astype(np.intp)
        weight = graph.edges["weight"].astype(np.float64) * visible.take(row)
        self.visible = visible.copy()
        self.row, self.entity = row, entity
        self.row_count, self.entity_count = graph.rows, len(graph.keys)
        self.visible_sentences = visible.take(graph.sentences["row"])
        self.in_title = weight > 1
        """Which edges go to an entity that the passage is about."""
        self.passage_counts = sum_by(entity, weight > 0, self.entity_count)
        """How many rows have each entity."""
        self.common = self._find_common()
        """Entities that so many rows have that they say nothing: no path leads through them."""
        self._by_entity = sum_by(entity, weight, self.entity_count)
        self._row_share, self._entity_share = _inverse(sum_by(row, weight, self.row_count)), _inverse(self._by_entity)
        """What a row or an entity hands on along an edge of weight 1, as a share of what it has."""
        self._edges_to = graph._edge_order.find
        titles = self.in_title.nonzero()[0]
        self.title_row, self.title_entity = row.take(titles), entity.take(titles)
        """The edges that were in a title at first: a row that is removed keeps its own."""
        # In layers, since that is how it is added up.
        self._layers, self._sentence_layers = graph.layers("edges"), graph.layers("sentences")
        self._layer_entity = entity.take(self._layers.places)
        order = np.argsort(entity, kind="stable")
        bounds = np.searchsorted(entity.take(order), np.arange(self.entity_count + 1))
        self._entity_layers = RowLayers(bounds[:-1], bounds[1:])
        self._layer_row = row.take(order.take(self._entity_layers.places))

    def remove(self, row: int, own: Mapping[str, slice]) -> None:
        """Leave out a row that is taken out of the graph, with what it owns; its edges are no longer looked up.

        Weights are whole numbers, so that what is left is what would be added up anew.
        """
        edges, entities = own["edges"], self.entity[own["edges"]]
        if self.visible[row]:
            self.passage_counts[entities] -= 1
            self._by_entity[entities] -= self._weight(edges)
            self._entity_share[entities] = _inverse(self._by_entity[entities])
        self.visible[row] = self.visible_sentences[own["sentences"]] = self.in_title[edges] = False
        self._row_share[row] = 0
        self.common = self._find_common()

    def _find_common(self) -> Bools:
        is_common: Bools = self.passage_counts > max(COMMON_PASSAGES, COMMON_SHARE * int(self.visible.sum()))
        return is_common

    def walk(self, entities: Floats, rows: Floats, damping: float = 0.5, rounds: int = 2) -> Floats:
        """Personalised PageRank of the rows, for a walk that starts and restarts at entities and rows by these
        weights.

        Entities lead to rows, and a round is the way to entities and back.
        """
        start = float(entities.sum() + rows.sum()) or 1.0
        entities, rows = entities * ((1 - damping) / start), rows * ((1 - damping) / start)
        # At first there are few entities, so that not every edge has to be looked at.
        starts = entities.nonzero()[0]
        edges, which = self._edges_to(starts)
        row = self.row.take(edges)
        shares = (entities.take(starts) * self._entity_share.take(starts)).take(which)
        first = sum_by(row, self._weight(edges) * shares * self.visible.take(row), self.row_count)
        at_rows = rows + damping * first
        for _ in range(rounds):
            # Along all edges it is as if each were a mention, and then what a title counts more.
            shares = at_rows * self._row_share
            total = self._entity_layers.reduce(np.add, shares.take(self._layer_row))
            titles = shares.take(self.title_row) * (TITLE_WEIGHT - 1)
            handed = (total + sum_by(self.title_entity, titles, self.entity_count)) * ~self.common
            shares = (entities + damping * handed) * self._entity_share
            total = self._layers.reduce(np.add, shares.take(self._layer_entity))
            titles = shares.take(self.title_entity) * (TITLE_WEIGHT - 1)
            handed = (total + sum_by(self.title_row, titles, self.row_count)) * self.visible
            at_rows = rows + damping * handed
        return at_rows

    def _weight(self, edges: Longs | slice) -> Floats:
        """The weights of edges of visible rows."""
        return np.where(self.in_title[edges], TITLE_WEIGHT, 1.0)

    def best_of_sentences(self, values: Floats) -> Floats:
        """The best value of the sentences of each row, 0 where it has none above that."""
        return self._sentence_layers.reduce(np.maximum, values.take(self._sentence_layers.places))


def _inverse(values: Floats) -> Floats:
    """1 by each value, 0 where that is 0."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0)


def sum_by(places: NDArray[np.signedinteger[Any]], values: NDArray[Any], size: int) -> Floats:
    """The sum of the values at each place."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)


_MAX_LAYERS: Final = 64
"""Few owners have more entries than this; what these have beyond stands together."""

Places = NDArray[np.intp]


def ranges(starts: NDArray[Any], ends: NDArray[Any]) -> Places:
    """The numbers from each start up to its end, one range after the other.

    >>> ranges(np.array([5, 0, 2]), np.array([7, 0, 3])).tolist()
    [5, 6, 2]
    """
    counts = (ends - starts).astype(np.intp)
    shifts: Places = np.repeat(starts - np.cumsum(counts) + counts, counts).astype(np.intp, copy=False)
    return np.arange(int(counts.sum())) + shifts


class RowLayers:
    """The entries of owners that each have a range of a table.

    >>> layers = RowLayers(np.array([0, 3, 3]), np.array([3, 3, 5]))
    >>> layers.places.tolist(), layers.reduce(np.add, np.array([1.0, 2, 3, 4, 5]).take(layers.places)).tolist()
    ([0, 3, 1, 4, 2], [6.0, 0.0, 9.0])
    """

    def __init__(self, starts: NDArray[Any], ends: NDArray[Any]) -> None:
        counts = ends - starts
        self._owners = np.argsort(-counts, kind="stable")
        starts, ends, counts = starts.take(self._owners), ends.take(self._owners), counts.take(self._owners)
        depth = min(int(counts.max(initial=0)), _MAX_LAYERS)
        self._widths = np.searchsorted(-counts, -np.arange(depth)).tolist()
        """How many owners have an entry in each layer."""
        layers = [starts[:width] + place for place, width in enumerate(self._widths)]
        long = np.searchsorted(-counts, -_MAX_LAYERS)
        rest = ranges(starts[:long] + _MAX_LAYERS, ends[:long])
        self._late_starts = np.cumsum(counts[:long] - _MAX_LAYERS) - (counts[:long] - _MAX_LAYERS)
        self.places: Places = np.concatenate((*layers, rest)).astype(np.intp)
        """Where the entries of the table are, layer by layer."""

    def reduce(self, ufunc: np.ufunc, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each owner what the values of its entries come to, 0 where it has none. Values are given by layer."""
        total, place = np.zeros(len(self._owners)), 0
        for width in self._widths:
            own = total[:width]
            ufunc(own, values[place : place + width], out=own)
            place += width
        if len(self._late_starts):
            own = total[: len(self._late_starts)]
            ufunc(own, ufunc.reduceat(values[place:], self._late_starts), out=own)
        by_owner = np.empty_like(total)
        by_owner[self._owners] = total
        return by_owner
