"""The entity graph: which passages name which entities, and their sentences, as flat arrays that grow by appending."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Bools, Ints, Table
from eunoe.index.passage import NO_GRAPH, Passage, parse_passage
from eunoe.model.graph import PassageGraph
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


class _Spans(NamedTuple):
    """Where the rows of a passage are in each table."""

    edges: slice
    sentences: slice
    mentions: slice
    words: slice


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
        self._tables = (self.edges, self.sentences, self.mentions, self.words)
        self._rows: dict[int, int] = {}
        self._spans: dict[int, _Spans] = {}
        self._labels: dict[int, tuple[str, ...]] = {}
        self._hashes: dict[int, int] = {}
        self._passage_counts: list[int] = [0]
        self._free_rows: list[int] = []
        self._free_entities: list[int] = []
        self._removed = 0
        self._view: GraphView | None = None

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
        return sum(table.nbytes for table in self._tables) + objects

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
            digest = hash((text, passage_graph))
            if self._hashes.get(seq) != digest:
                self.remove(seq)
                self._add(seq, parse_passage(text, self.extractor, passage_graph))
                self._hashes[seq] = digest

    def remove(self, seq: int) -> None:
        """Take a passage out, with its edges, its sentences, and the entities that no other has."""
        row = self._rows.pop(seq, None)
        if row is None:
            return
        self._view = None
        spans = self._spans.pop(row)
        del self._hashes[seq], self._labels[row]
        for entity in self.edges["entity"][spans.edges].tolist():
            self._passage_counts[entity] -= 1
            if not self._passage_counts[entity]:
                del self.entities[self.keys[entity]]
                self.keys[entity] = ""
                self._free_entities.append(entity)
        for table, span in zip(self._tables, spans, strict=True):
            for column in table.values():
                column[span] = _REMOVED
        self._removed += spans.words.stop - spans.words.start + spans.edges.stop - spans.edges.start
        self.seqs[row] = -1
        self._free_rows.append(row)
        if self._removed > max(_MIN_REMOVED, (self.words.size + self.edges.size) // 2):
            self._compact()

    def entities_of(self, seq: int) -> dict[str, float]:
        """The keys of a passage's entities with their weights."""
        row = self._rows.get(seq)
        return {} if row is None else {self.keys[entity]: weight for entity, weight in self.entities_at(row)}

    def entities_at(self, row: int) -> list[tuple[int, float]]:
        """The numbers of a row's entities with their weights."""
        span = self._spans[row].edges
        return list(zip(self.edges["entity"][span].tolist(), self.edges["weight"][span].tolist(), strict=True))

    def contents(self) -> dict[int, tuple[dict[str, float], list[tuple[list[str], list[int]]]]]:
        """Each passage's entities with weights, and each of its sentences' entities and terms: for comparing."""
        return {
            seq: (self.entities_of(seq), list(self._sentences(self._spans[row]))) for seq, row in self._rows.items()
        }

    def _sentences(self, spans: _Spans) -> Iterator[tuple[list[str], list[int]]]:
        for number in range(spans.sentences.start, spans.sentences.stop):
            entities = self.mentions["entity"][spans.mentions][self.mentions["sentence"][spans.mentions] == number]
            terms = self.words["term"][spans.words][self.words["sentence"][spans.words] == number]
            yield [self.keys[entity] for entity in entities.tolist()], terms.tolist()

    def label(self, entity: int) -> str:
        """How an entity is written in one of the passages that have it."""
        return self.label_in(int(self.edges["row"][np.argmax(self.edges["entity"] == entity)]), entity)

    def label_in(self, row: int, entity: int) -> str:
        """How an entity is written in a row that has it."""
        return self._labels[row][int(np.argmax(self.edges["entity"][self._spans[row].edges] == entity))]

    def view(self, visible: Bools) -> GraphView:
        """The graph of the rows that may be seen, and no others."""
        if self._view is None or not np.array_equal(self._view.visible, visible):
            self._view = GraphView(self, visible)
        return self._view

    def _add(self, seq: int, passage: Passage) -> None:
        self._view = None
        if not self._free_rows:
            self._free_rows.append(len(self.seqs))
            self.seqs.append(-1)
        row = self._free_rows.pop()
        self._rows[seq], self.seqs[row] = row, seq
        self._labels[row] = tuple(passage.labels.values())
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
        self._spans[row] = _Spans(edges, sentences, mentions, words)

    def _entity_number(self, key: str) -> int:
        """The number of an entity that one more passage has."""
        number = self.entities.get(key)
        if number is None:
            if not self._free_entities:
                self._free_entities.append(len(self.keys))
                self.keys.append("")
                self._passage_counts.append(0)
            number = self._free_entities.pop()
            self.entities[key], self.keys[number] = number, key
        self._passage_counts[number] += 1
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
        columns = [_closed_up([spans[place] for spans in self._spans.values()]) for place in range(len(_Spans._fields))]
        self._spans = dict(zip(self._spans, map(_Spans._make, zip(*columns, strict=True)), strict=True))
        self._removed = 0


def _closed_up(spans: Sequence[slice]) -> list[slice]:
    closed = [slice(0, 0)] * len(spans)
    end = 0
    for place in sorted(range(len(spans)), key=lambda place: spans[place].start):
        start, end = end, end + spans[place].stop - spans[place].start
        closed[place] = slice(start, end)
    return closed


class GraphView:
    """A graph as seen by one who may see some of its rows: passage counts, and the walk along its edges."""

    def __init__(self, graph: EntityGraph, visible: Bools) -> None:
        row, entity = graph.edges["row"], graph.edges["entity"]
        weight = graph.edges["weight"] * visible.take(row)
        self.visible = visible
        self.row, self.entity = row, entity
        self.row_count, self.entity_count = graph.rows, len(graph.keys)
        self.in_title = weight > 1
        """Which edges go to an entity that the passage is about."""
        self.passage_counts = sum_by(entity, weight > 0, self.entity_count)
        """How many rows have each entity."""
        self.common = self.passage_counts > max(COMMON_PASSAGES, COMMON_SHARE * int(visible.sum()))
        """Entities that so many rows have that they say nothing: no path leads through them."""
        by_row, by_entity = sum_by(row, weight, self.row_count), sum_by(entity, weight, self.entity_count)
        self._to_entity = weight / np.where(by_row > 0, by_row, 1.0).take(row) * ~self.common.take(entity)
        self._to_row = weight / np.where(by_entity > 0, by_entity, 1.0).take(entity)

    def walk(self, entities: Floats, rows: Floats, damping: float = 0.5, steps: int = 5) -> Floats:
        """Personalised PageRank of the rows, for a walk that starts and restarts at entities and rows by these
        weights."""
        start = float(entities.sum() + rows.sum()) or 1.0
        entities, rows = entities * ((1 - damping) / start), rows * ((1 - damping) / start)
        at_entities, at_rows = entities, rows
        for _ in range(steps):
            to_entities = sum_by(self.entity, self._to_entity * at_rows.take(self.row), self.entity_count)
            to_rows = sum_by(self.row, self._to_row * at_entities.take(self.entity), self.row_count)
            at_entities, at_rows = entities + damping * to_entities, rows + damping * to_rows
        return at_rows


def sum_by(places: Ints, values: NDArray[Any], size: int) -> Floats:
    """The sum of the values at each place."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)
