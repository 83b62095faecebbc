"""Who is named where: passages, the names in them and the sentences between, as flat arrays that grow by appending."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.lexical import grown
from eunoe.index.passage import NOTHING, Passage, read
from eunoe.model.graph import PassageGraph
from eunoe.text.entities import EntityExtractor

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]

TITLE_WEIGHT: Final = 4.0
"""How much more a passage has to do with what it is about than with what it mentions."""
MANY: Final = 8
MOST: Final = 0.25
"""A name that more passages than these have, and more than this share of all, joins nothing."""
_GONE: Final = 0
_FEW: Final = 1024


class Table:
    """Rows of numbers, one array for each column, with room to grow."""

    def __init__(self, **columns: type[np.generic]) -> None:
        self.used = 0
        self._columns: dict[str, NDArray[Any]] = {name: np.zeros(0, kind) for name, kind in columns.items()}

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name][: self.used]

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns.values())

    def columns(self) -> list[NDArray[Any]]:
        return [self[name] for name in self._columns]

    def append(self, **values: Sequence[float]) -> slice:
        """Puts rows at the end and says where they are."""
        count = len(next(iter(values.values())))
        span = slice(self.used, self.used + count)
        for name, column in self._columns.items():
            self._columns[name] = grown(column, self.used, count)
            self._columns[name][span] = values[name]
        self.used += count
        return span

    def clear(self, span: slice) -> None:
        for column in self._columns.values():
            column[span] = _GONE

    def keep(self, where: Bools) -> None:
        """Leaves the other rows out."""
        self._columns = {name: column[: self.used][where].copy() for name, column in self._columns.items()}
        self.used = int(where.sum())


class Spans(NamedTuple):
    """Where a passage's rows are in each table."""

    edges: slice
    sentences: slice
    mentions: slice
    words: slice


class Graph:
    """The names of one stream. Row 0 and entity 0 stand for nothing: what was removed points to them.

    To add or to remove a passage costs what the passage itself holds, not what the graph holds.
    """

    def __init__(self, extractor: EntityExtractor | None = None) -> None:
        self.version = 0
        self.extractor = extractor
        self.entities: dict[str, int] = {}
        """Numbers of names by their keys."""
        self.keys: list[str] = [""]
        """Keys of names by their numbers."""
        self.seqs: list[int] = [-1]
        """Numbers of the entries, by row."""
        self.edges = Table(row=np.int32, entity=np.int32, weight=np.float32)
        self.sentences = Table(row=np.int32)
        self.mentions = Table(sentence=np.int32, entity=np.int32)
        self.words = Table(sentence=np.int32, term=np.uint32)
        self._rows: dict[int, int] = {}
        self._spans: dict[int, Spans] = {}
        self._labels: dict[int, tuple[str, ...]] = {}
        self._digests: dict[int, int] = {}
        self._holders: list[int] = [0]
        self._free_rows: list[int] = []
        self._free_entities: list[int] = []
        self._dead = 0
        self._view: View | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> int:
        """How many rows there are, gaps and the empty one included."""
        return len(self.seqs)

    @property
    def nbytes(self) -> int:
        """Bytes held, with a guess for strings and objects."""
        tables = (self.edges, self.sentences, self.mentions, self.words)
        return sum(table.nbytes for table in tables) + 220 * len(self.keys) + 600 * self.rows + 24 * self.edges.used

    def holds(self, seq: int) -> bool:
        return seq in self._rows

    def apply(
        self,
        texts: Iterable[tuple[int, str]],
        removed: Iterable[int] = (),
        version: int = 0,
        readings: Mapping[int, PassageGraph] | None = None,
    ) -> None:
        """Takes in entries by their number and drops others; an entry whose words and reading did not change is left
        alone."""
        self.version = max(version, self.version)
        for seq in removed:
            self.remove(seq)
        for seq, text in texts:
            reading = (readings or {}).get(seq, NOTHING)
            digest = hash((text, reading))
            if self._digests.get(seq) != digest:
                self.remove(seq)
                self._add(seq, read(text, self.extractor, reading), digest)

    def remove(self, seq: int) -> None:
        """Takes an entry out, with its edges, its sentences, and the names that nobody else has."""
        row = self._rows.pop(seq, None)
        if row is None:
            return
        self._view = None
        spans = self._spans.pop(row)
        del self._digests[seq], self._labels[row]
        for entity in self.edges["entity"][spans.edges].tolist():
            self._release(entity)
        for table, span in self._placed(spans):
            table.clear(span)
        self._dead += spans.words.stop - spans.words.start + spans.edges.stop - spans.edges.start
        self.seqs[row] = -1
        self._free_rows.append(row)
        if self._dead > max(_FEW, (self.words.used + self.edges.used) // 2):
            self._compact()

    def names_of(self, seq: int) -> dict[str, float]:
        """The keys of an entry's names with their weights."""
        row = self._rows.get(seq)
        if row is None:
            return {}
        return {self.keys[entity]: weight for entity, weight in self.names_at(row)}

    def names_at(self, row: int) -> list[tuple[int, float]]:
        """The numbers of a row's names with their weights."""
        span = self._spans[row].edges
        return list(zip(self.edges["entity"][span].tolist(), self.edges["weight"][span].tolist(), strict=True))

    def told(self) -> dict[int, tuple[dict[str, float], tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]]]:
        """All that is known, by entry: names with weights, and each sentence's names and terms. For comparing."""
        return {seq: (self.names_of(seq), tuple(self._sentences(self._spans[row]))) for seq, row in self._rows.items()}

    def label(self, entity: int) -> str:
        """How a name is written in one of the entries that have it."""
        return self.written(int(self.edges["row"][np.argmax(self.edges["entity"] == entity)]), entity)

    def written(self, row: int, entity: int) -> str:
        """How a name is written in a row that has it."""
        return self._labels[row][int(np.argmax(self.edges["entity"][self._spans[row].edges] == entity))]

    def view(self, visible: Bools) -> View:
        """The graph of the rows that may be seen, and no others."""
        if self._view is None or not np.array_equal(self._view.visible, visible):
            self._view = View(self, visible)
        return self._view

    def _sentences(self, spans: Spans) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
        for number in range(spans.sentences.start, spans.sentences.stop):
            named = self.mentions["entity"][spans.mentions][self.mentions["sentence"][spans.mentions] == number]
            terms = self.words["term"][spans.words][self.words["sentence"][spans.words] == number]
            yield tuple(self.keys[each] for each in named.tolist()), tuple(terms.tolist())

    def _placed(self, spans: Spans) -> Iterator[tuple[Table, slice]]:
        return zip((self.edges, self.sentences, self.mentions, self.words), spans, strict=True)

    def _add(self, seq: int, passage: Passage, digest: int) -> None:
        row = self._free_rows.pop() if self._free_rows else self._new_row()
        self._rows[seq], self.seqs[row], self._digests[seq] = row, seq, digest
        about = frozenset(passage.about)
        self._view = None
        self._labels[row] = tuple(passage.labels.values())
        entities = {name: self._taken(name) for name in passage.labels}
        edges = self.edges.append(
            row=[row] * len(entities),
            entity=list(entities.values()),
            weight=[TITLE_WEIGHT if name in about else 1.0 for name in entities],
        )
        sentences = self.sentences.append(row=[row] * len(passage.sentences))
        numbered = list(enumerate(passage.sentences, sentences.start))
        mentions = self.mentions.append(
            sentence=[number for number, each in numbered for _ in each.names],
            entity=[entities[name] for _, each in numbered for name in each.names],
        )
        words = self.words.append(
            sentence=[number for number, each in numbered for _ in each.terms],
            term=[term for _, each in numbered for term in each.terms],
        )
        self._spans[row] = Spans(edges, sentences, mentions, words)

    def _new_row(self) -> int:
        self.seqs.append(-1)
        return len(self.seqs) - 1

    def _taken(self, name: str) -> int:
        number = self.entities.get(name)
        if number is None:
            number = self._free_entities.pop() if self._free_entities else self._new_entity()
            self.entities[name], self.keys[number] = number, name
        self._holders[number] += 1
        return number

    def _new_entity(self) -> int:
        self.keys.append("")
        self._holders.append(0)
        return len(self.keys) - 1

    def _release(self, entity: int) -> None:
        self._holders[entity] -= 1
        if not self._holders[entity]:
            del self.entities[self.keys[entity]]
            self.keys[entity] = ""
            self._free_entities.append(entity)

    def _compact(self) -> None:
        """Closes the gaps that removed passages left."""
        alive = self.sentences["row"] != _GONE
        moved = np.cumsum(alive, dtype=np.int32) - np.int32(1)
        self.edges.keep(self.edges["row"] != _GONE)
        self.sentences.keep(alive)
        self.mentions.keep(self.mentions["entity"] != _GONE)
        self.words.keep(self.words["term"] != _GONE)
        for table in (self.mentions, self.words):
            table["sentence"][:] = moved[table["sentence"]]
        columns = [_closed([spans[place] for spans in self._spans.values()]) for place in range(len(Spans._fields))]
        self._spans = dict(zip(self._spans, map(Spans._make, zip(*columns, strict=True)), strict=True))
        self._dead = 0


def _closed(spans: Sequence[slice]) -> list[slice]:
    """The spans moved together, in their order."""
    closed = [slice(0, 0)] * len(spans)
    end = 0
    for place in sorted(range(len(spans)), key=lambda place: spans[place].start):
        start, end = end, end + spans[place].stop - spans[place].start
        closed[place] = slice(start, end)
    return closed


class View:
    """A graph as seen by one who may see some of its rows: degrees, and the walk from names to passages and back."""

    def __init__(self, graph: Graph, visible: Bools) -> None:
        row, entity = graph.edges["row"], graph.edges["entity"]
        weight = graph.edges["weight"] * visible.take(row)
        self.visible = visible
        self.row, self.entity, self.sizes = row, entity, (graph.rows, len(graph.keys))
        self.titled = weight > 1
        self.holders = summed(entity, weight > 0, self.sizes[1])
        """How many rows have each name."""
        self.common = self.holders > max(MANY, MOST * int(visible.sum()))
        """Names that so many rows have that they tell nothing: no way leads through them."""
        self._there = weight / _or_one(summed(row, weight, self.sizes[0])).take(row) * ~self.common.take(entity)
        self._back = weight / _or_one(summed(entity, weight, self.sizes[1])).take(entity)

    def walk(self, names: Floats, rows: Floats, damping: float = 0.5, steps: int = 5) -> Floats:
        """Personalised PageRank of the rows: where one ends up who starts at names or rows, steps along edges, and
        now and then starts again."""
        start = float(names.sum() + rows.sum()) or 1.0
        names, rows = names * ((1 - damping) / start), rows * ((1 - damping) / start)
        at_names, at_rows = names, rows
        for _ in range(steps):
            reached = summed(self.entity, self._there * at_rows.take(self.row), self.sizes[1])
            back = summed(self.row, self._back * at_names.take(self.entity), self.sizes[0])
            at_names, at_rows = names + damping * reached, rows + damping * back
        return at_rows


def summed(where: Ints, values: NDArray[Any], size: int) -> Floats:
    """The sum of the values at each place."""
    return np.bincount(where, values, size).astype(np.float64, copy=False)


def _or_one(values: Floats) -> Floats:
    return np.where(values > 0, values, 1.0)
