"""The stream index: one stream as a searcher sees it, row by row, with its vectors, brought up to date by deltas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import isfinite, log, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.graph import EntityGraph
from eunoe.index.lexical import LexicalIndex, pieces
from eunoe.index.tables import (
    Arrays,
    Bools,
    Floats,
    Ints,
    Table,
    pack_texts,
    prefixed,
    text_digest,
    unpack_texts,
    unprefixed,
)
from eunoe.text.analyzer import folded_words
from eunoe.text.languages import ENGLISH
from eunoe.text.normalize import normalize_name
from eunoe.text.sentences import LONG_TEXT_WORDS, PART_WORDS

PIECE_CHARACTERS: Final = 100_000
"""So much of a text is indexed before the reply, which takes a fraction of a second; the rest of a huge one follows,
in pieces of this size. No page and hardly a chapter is longer."""
NO_RECORD: Final = -1
"""Stands in the place of a record's number in a gap."""
CATEGORIES: Final = ("kind", "label", "session", "speaker")
TIMES: Final = ("time", "valid_from", "valid_to", "recorded", "retired")

_SHORT_TEXT_WORDS: Final = 8.0
_LONG_TEXT_WORDS: Final = 120.0
"""How long the texts of a stream are on average at either end of `ConversationLayout.verbosity`."""
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")
_USER_NAMES: Final = frozenset({"user", "human"})
_MACHINE_NAMES: Final = frozenset({"assistant", "ai", "bot", "model", "agent", "system", "tool"})
_BASE_BYTES, _ROW_BYTES, _TERM_BYTES, _NAME_BYTES, _METADATA_BYTES, _LAYOUT_ROW_BYTES = 4096, 280, 132, 60, 400, 50
"""Estimates for what cannot be measured: an empty index, and the objects of each row, term, name and so on."""


class IndexEntry(NamedTuple):
    """What a searcher needs to know of a message or an atom. Times are seconds since 1970."""

    seq: int
    id: str
    kind: str
    text: str
    time: float | None = None
    session: str = ""
    speaker: str = ""
    role: str = ""
    label: str = ""
    people: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    valid_from: float | None = None
    valid_to: float | None = None
    recorded: float = 0.0
    retired: float | None = None
    in_review: bool = False
    vector: Floats | None = None
    stream: int = 0
    """Tells the streams apart where an index has several: a session of one is no session of another."""


class StreamIndex:
    """The searchable form of one stream. Not to be read while `apply` runs: whoever holds it sees to that."""

    def __init__(self) -> None:
        self.version = 0
        self.model = ""
        """The name of the model that made its vectors."""
        self.rows = 0
        """How many rows there are, gaps included."""
        self.lexical = LexicalIndex()
        self.dense = DenseIndex()
        self.graph: EntityGraph | None = None
        """Made when a recipe first asks for it."""
        self.metadata: dict[int, Mapping[str, Any]] | None = None
        """The metadata of the items that have some, by their numbers; read when a filter first asks for it."""
        self.columns = Table(
            asks=np.bool_, by_user=np.bool_, by_machine=np.bool_, in_review=np.bool_, text_digest=np.int64,
            stream=np.int64, **dict.fromkeys(CATEGORIES, np.int32), **dict.fromkeys(TIMES, np.float64),
        )  # fmt: skip
        """Whether a row ends in a question mark, was said by the user of an assistant or by an assistant or tool, or
        waits for review; a digest of its text; the codes of its categories; and its times, NaN where there is none."""
        self.codes: dict[str, dict[str, int]] = {name: {"": 0} for name in CATEGORIES}
        """The code of each value of a column of categories."""
        self.open: Bools = np.zeros(0, np.bool_)
        """Which rows are neither retired nor in review."""
        self.outdated: Bools | None = None
        """Where there are several streams: which open atoms another stream held in the same words and has closed since.
        A conversation and its user keep the same, and what changes is closed where it is known to change."""
        self.has_ends = False
        """Whether the validity of any row ends."""
        self.ids: list[str] = []
        self.seqs: list[int] = []
        self.people: list[tuple[str, ...]] = []
        """Names as they are compared."""
        self.files: list[tuple[str, ...]] = []
        self.row_of: dict[int, int] = {}
        """Where each record is, by its number."""
        self.unfinished: dict[int, None] = {}
        """Numbers of the records of whose texts only the beginning is indexed."""
        self._name_count = 0
        self._layout: ConversationLayout | None = None
        self._rows_by_file: dict[str, list[int]] | None = None
        self._graph_rows: NDArray[np.int64] | None = None

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.row_of)

    def state(self) -> Arrays:
        """The arrays of which it is made, but for its graph and its metadata. No text may be unfinished."""
        arrays = prefixed("columns", self.columns) | {"seqs": np.array(self.seqs, np.int64)}
        arrays |= prefixed("ids", pack_texts(self.ids)) | prefixed("lexical", self.lexical.state())
        arrays |= prefixed("dense", self.dense.state())
        for name, codes in self.codes.items():
            arrays |= prefixed(f"codes.{name}", pack_texts(list(codes)))
        for name, names in (("people", self.people), ("files", self.files)):
            counts = np.fromiter(map(len, names), np.int32, len(names))
            arrays |= prefixed(name, pack_texts([each for own in names for each in own])) | {f"{name}.counts": counts}
        return arrays

    @classmethod
    def of(cls, state: Arrays, version: int, model: str) -> StreamIndex:
        """Put an index together from its arrays, which it may change. Raise ValueError or KeyError if they are none."""
        index = cls()
        index.version, index.model = version, model
        index.columns.restore(unprefixed("columns", state))
        index.lexical = LexicalIndex.of(unprefixed("lexical", state))
        index.dense = DenseIndex.of(unprefixed("dense", state))
        index.rows, index.seqs = index.columns.size, state["seqs"].tolist()
        index.ids = unpack_texts(unprefixed("ids", state))
        index.row_of = {seq: row for row, seq in enumerate(index.seqs) if seq >= 0}
        for name in CATEGORIES:
            texts = unpack_texts(unprefixed(f"codes.{name}", state))
            index.codes[name] = {text: code for code, text in enumerate(texts)}
        index.people, index.files = (_unpack_names(unprefixed(name, state)) for name in ("people", "files"))
        index._name_count = sum(map(len, index.people)) + sum(map(len, index.files))
        index._note_change()
        return index

    @property
    def nbytes(self) -> int:
        """Memory held, for a bound on all indexes together; strings and objects are estimated."""
        lexical, dense = self.lexical, self.dense
        tables = (self.columns, lexical, dense.rows, dense.parts)
        return (
            _BASE_BYTES
            + sum(table.nbytes for table in tables)
            + (self.graph.nbytes if self.graph else 0)
            + _ROW_BYTES * self.rows
            + _TERM_BYTES * len(lexical.vocabulary)
            + _NAME_BYTES * self._name_count
            + _METADATA_BYTES * len(self.metadata or ())
            + (_LAYOUT_ROW_BYTES * self.rows if self._layout else 0)
        )

    @property
    def layout(self) -> ConversationLayout:
        """Worked out when first asked for after a change."""
        if self._layout is None:
            self._layout = ConversationLayout.of(self)
        return self._layout

    def rows_with(self, column: str, values: Iterable[str]) -> Bools:
        """Which rows have one of these values in a column of categories."""
        codes = self.codes[column]
        chosen = np.zeros(len(codes), np.bool_)
        chosen[[codes[value] for value in values if value in codes]] = True
        return chosen.take(self.columns[column])

    def rows_said_by(self, names: Iterable[str]) -> Bools:
        """Which rows one of these people said, however the name is written."""
        wanted = frozenset(map(normalize_name, names))
        return self.rows_with("speaker", [name for name in self.codes["speaker"] if normalize_name(name) in wanted])

    def rows_naming_people(self, names: Iterable[str]) -> Bools:
        """Which rows name one of these people."""
        wanted = frozenset(map(normalize_name, names))
        return np.fromiter((not wanted.isdisjoint(people) for people in self.people), np.bool_, self.rows)

    def rows_naming_files(self, paths: Iterable[str]) -> Bools:
        """Which rows name one of these files, or a file in one of these folders."""
        if self._rows_by_file is None:
            self._rows_by_file = defaultdict(list)
            for row, files in enumerate(self.files):
                for file in files:
                    self._rows_by_file[file].append(row)
        wanted = frozenset(paths)
        folders = tuple(f"{path.rstrip('/')}/" for path in wanted)
        found = np.zeros(self.rows, np.bool_)
        for file, rows in self._rows_by_file.items():
            if file in wanted or file.startswith(folders):
                found[rows] = True
        return found

    def find_by_files(self, paths: Iterable[str]) -> list[int]:
        """Numbers of the records that name one of these files, or a file in one of these folders."""
        return [self.seqs[row] for row in np.flatnonzero(self.rows_naming_files(paths)).tolist()]

    def graph_rows(self, graph: EntityGraph) -> NDArray[np.int64]:
        """Where the passages of a graph are, by its rows; -1 for those that are not here."""
        if self._graph_rows is None or len(self._graph_rows) != graph.rows:
            wanted, seqs = np.array(graph.seqs, np.int64), np.array(self.seqs, np.int64)
            order = np.argsort(seqs, kind="stable")
            found = np.append(order, -1).take(np.searchsorted(seqs, wanted, sorter=order))
            is_found = (wanted >= 0) & (np.append(seqs, NO_RECORD).take(found) == wanted)
            self._graph_rows = np.where(is_found, found, -1)
        return self._graph_rows

    def apply(self, entries: Iterable[IndexEntry], version: int = 0) -> None:
        """Take in new and changed entries."""
        latest = {entry.seq: entry for entry in entries}
        if not latest:
            self.version = version
            return
        changed = [entry for entry in latest.values() if entry.seq in self.row_of]
        new = sorted((entry for entry in latest.values() if entry.seq not in self.row_of), key=lambda entry: entry.seq)
        span = self.columns.extend(len(new))
        self.dense.reserve(span.stop)
        self.rows = span.stop
        self.ids += [""] * len(new)
        self.seqs += [0] * len(new)
        self.people += [()] * len(new)
        self.files += [()] * len(new)
        self.row_of.update((entry.seq, row) for row, entry in enumerate(new, span.start))
        for batch in (new, changed):
            if batch:
                self._write([self.row_of[entry.seq] for entry in batch], batch)
        self._note_change()
        self._graph_rows = None
        self.version = version

    def _note_change(self) -> None:
        self.open = np.isnan(self.columns["retired"]) & ~self.columns["in_review"]
        self.has_ends = not np.isnan(self.columns["valid_to"]).all()
        self.outdated = _find_outdated(self) if self.columns["stream"].any() else None
        self._layout = self._rows_by_file = None

    def remove(self, seqs: Collection[int]) -> None:
        """Take records out, with every word that no other has. Their rows stay as gaps, which nothing finds."""
        rows = [row for seq in seqs if (row := self.row_of.pop(seq, None)) is not None]
        if not rows:
            return
        where = np.asarray(rows, np.int32)
        self.lexical.remove(rows)
        self.dense.remove(where)
        for name, column in self.columns.items():
            column[where] = np.nan if name in TIMES else name == "in_review"
        for row in rows:
            self._name_count -= len(self.people[row]) + len(self.files[row])
            self.ids[row], self.seqs[row], self.people[row], self.files[row] = "", NO_RECORD, (), ()
        for name, codes in self.codes.items():  # the values that no row has any more are forgotten
            values, column = list(codes), self.columns[name]
            is_used = np.zeros(len(values), np.bool_)
            is_used[column] = is_used[0] = True
            if not is_used.all():
                column[:] = (np.cumsum(is_used) - 1).take(column)
                used = [values[code] for code in np.flatnonzero(is_used).tolist()]
                self.codes[name] = {value: code for code, value in enumerate(used)}
        if self._graph_rows is not None:
            self._graph_rows[np.isin(self._graph_rows, where)] = -1
        for seq in seqs:
            self.unfinished.pop(seq, None)
            if self.metadata is not None:
                self.metadata.pop(seq, None)
        self._note_change()

    def _write(self, rows: Sequence[int], entries: Sequence[IndexEntry]) -> None:
        self._write_texts(dict(zip(rows, entries, strict=True)))
        of: dict[str, Any] = dict(zip(IndexEntry._fields, zip(*entries, strict=True), strict=True))
        columns, where = self.columns, np.asarray(rows, np.int32)
        self.dense.put(where, of["vector"])
        columns["stream"][where] = of["stream"]
        columns["asks"][where] = [text.rstrip().endswith(_QUESTION_MARKS) for text in of["text"]]
        sides = {side: _is_machine_or_user(*side) for side in set(zip(of["speaker"], of["role"], strict=True))}
        said_by = [sides[side] for side in zip(of["speaker"], of["role"], strict=True)]
        columns["by_machine"][where], columns["by_user"][where] = np.array(said_by, np.bool_).T
        columns["in_review"][where] = np.array(of["in_review"], np.bool_)
        for name in TIMES:
            columns[name][where] = np.array(of[name], np.float64)  # NumPy reads None as NaN
        for name, codes in self.codes.items():
            for value in of[name]:
                codes.setdefault(value, len(codes))
            columns[name][where] = list(map(codes.__getitem__, of[name]))
        for row, entry in zip(rows, entries, strict=True):
            self.ids[row], self.seqs[row] = entry.id, entry.seq
            self.people[row] = tuple(map(normalize_name, entry.people)) if entry.people else ()
            self.files[row] = entry.files
            self._name_count += len(entry.people) + len(entry.files)

    def _write_texts(self, entries: Mapping[int, IndexEntry]) -> None:
        """Index the texts that are new, of a huge one the beginning."""
        digests = self.columns["text_digest"]
        own = {row: text_digest(entry.text) for row, entry in entries.items()}
        changed = {row: entry for row, entry in entries.items() if digests[row] != own[row]}
        if known := [row for row in changed if digests[row]]:
            self.lexical.remove(known)
        self.lexical.add(list(changed), [next(pieces(entry.text, PIECE_CHARACTERS), "") for entry in changed.values()])
        for row, entry in changed.items():
            digests[row] = own[row]
            if len(entry.text) > PIECE_CHARACTERS:
                self.unfinished[entry.seq] = None

    def language_of(self, seq: int) -> int:
        """The language of a record's text, as its beginning tells; English if the record is gone."""
        row = self.row_of.get(seq)
        return ENGLISH if row is None else int(self.lexical.rows["language"][row])

    def finish_text(self, seq: int, text: str, counts: Mapping[str, int]) -> None:
        """Index the whole text of a record by its terms, if it is still the one that was begun."""
        self.unfinished.pop(seq, None)
        row = self.row_of.get(seq)
        if row is not None and int(self.columns["text_digest"][row]) == text_digest(text):
            self.lexical.replace(row, counts)
            self._layout = None


@dataclass(frozen=True, slots=True)
class ConversationLayout:
    """The order of talk: the turns around each turn of a session, and what is usual for a turn.

    -1 stands for no turn.
    """

    message: Bools
    before: Ints
    two_before: Ints
    after: Ints
    order: Ints
    """The turns, session by session."""
    starts: Ints
    """Where each session starts in this order."""
    session: Ints
    """The number of each turn's session in this order."""
    in_named_session: Bools | None
    """Which turns have a session that somebody named; None where none has."""
    length: Floats
    """Logarithm of the number of words, against what is usual for the same side of the talk."""
    question: Floats
    answer: Floats
    """1 for a turn that follows a question."""
    user: Floats | None
    """1 for what the user said, in talk between a user and a machine."""
    speakers_by_word: dict[str, set[str]]
    """Who speaks in the stream, by the words of their names."""
    time_span: tuple[float, float] | None
    """The first and the last time of anything in the stream."""
    item_counts: Floats
    """As how many items each row counts: 1, and more for a long text, in which anything is found more easily."""
    verbosity: float
    """0 where texts are as short as what people text each other, 1 where they are as long as a page, else between."""

    @classmethod
    def of(cls, index: StreamIndex) -> ConversationLayout:
        columns, lengths = index.columns, index.lexical.rows["length"]
        message = index.rows_with("kind", ("message",)) & np.isnan(columns["retired"])
        rows = np.flatnonzero(message)
        keys = columns["stream"][rows], columns["session"][rows]
        order = rows[np.lexsort((np.array(index.seqs, np.int64)[rows], *keys))].astype(np.int32)
        is_start = np.diff(columns["session"][order], prepend=-1) != 0
        is_start |= np.diff(columns["stream"][order], prepend=-1) != 0
        inner = np.flatnonzero(~is_start)
        before, after, session = (np.full(index.rows, -1, np.int32) for _ in range(3))
        before[order[inner]], after[order[inner - 1]] = order[inner - 1], order[inner]
        session[order] = np.cumsum(is_start) - 1
        question = (columns["asks"] & message).astype(np.float32)
        in_named_session = message & ~index.rows_with("session", ("",))
        by_user, by_machine = columns["by_user"] & message, columns["by_machine"] & message
        is_assisted = bool(by_user.any() and by_machine.any())
        speakers: defaultdict[str, set[str]] = defaultdict(set)
        names = list(index.codes["speaker"])
        for name in [names[code] for code in np.unique(columns["speaker"][message]).tolist()]:
            for word in folded_words(name):
                speakers[word].add(name)
        times = columns["time"][~np.isnan(columns["time"])]
        item_counts = np.where(lengths > LONG_TEXT_WORDS, lengths / PART_WORDS, 1).astype(np.float32)
        if index.count < index.rows:
            item_counts[index.columns["text_digest"] == 0] = 0
        mean_length = float(lengths.sum(dtype=np.float64)) / max(index.lexical.row_count, 1)
        excess = log(max(mean_length, _SHORT_TEXT_WORDS) / _SHORT_TEXT_WORDS)
        return cls(
            message=message,
            before=before,
            two_before=np.append(before, np.int32(-1))[before],
            after=after,
            order=order,
            starts=np.flatnonzero(is_start).astype(np.int32),
            session=session,
            in_named_session=in_named_session if in_named_session.any() else None,
            length=_relative_lengths(lengths, [by_user, message & ~by_user] if is_assisted else [message]),
            question=question,
            answer=np.append(question, np.float32(0))[before],
            user=by_user.astype(np.float32) if is_assisted else None,
            speakers_by_word=dict(speakers),
            time_span=(float(times.min()), float(times.max())) if len(times) else None,
            item_counts=item_counts,
            verbosity=min(excess / log(_LONG_TEXT_WORDS / _SHORT_TEXT_WORDS), 1.0),
        )


def _find_outdated(index: StreamIndex) -> Bools:
    columns = index.columns
    is_atom, digests = ~index.rows_with("kind", ("message",)), columns["text_digest"]
    closed = is_atom & ~np.isnan(columns["retired"])
    order = np.argsort(columns["retired"][closed], kind="stable")
    ends = dict(zip(digests[closed][order].tolist(), columns["retired"][closed][order].tolist(), strict=True))
    outdated = np.zeros(index.rows, np.bool_)
    for row in np.flatnonzero(is_atom & index.open & np.isin(digests, digests[closed])).tolist():
        outdated[row] = columns["recorded"][row] < ends[int(digests[row])]
    return outdated


def _unpack_names(state: Arrays) -> list[tuple[str, ...]]:
    counts, names = state["counts"].tolist(), iter(unpack_texts(state))
    return [tuple(islice(names, count)) if count else () for count in counts]


def _relative_lengths(lengths: Floats, sides: Sequence[Bools]) -> Floats:
    logarithms: Floats = np.log1p(lengths)
    relative = np.zeros(len(lengths), np.float32)
    for side in sides:
        if side.any():
            relative[side] = logarithms[side] - logarithms[side].mean()
    return np.clip(relative, -2, 2)


@lru_cache(maxsize=256)
def _is_machine_or_user(name: str, role: str) -> tuple[bool, bool]:
    """Whether a machine speaks, and whether its user does. A speaker with a name of their own is no machine."""
    speaker = name.casefold()
    is_machine = (speaker or role) in _MACHINE_NAMES
    return is_machine, not is_machine and (speaker in _USER_NAMES or role in _USER_NAMES)


class DenseIndex:
    """Unit vectors of one length. A row without one, or with one of another length, is missing.

    A row may have several, one for each part of a long text: it is as near to a question as the nearest of them.
    """

    def __init__(self) -> None:
        self.count = 0
        """How many rows have a vector."""
        self._dimensions = 0
        self.rows = Table(present=np.bool_)
        """Whether each row has a vector, and the first of its vectors."""
        self.parts = Table(row=np.int32)
        """The second and further vectors of rows."""

    def state(self) -> Arrays:
        return prefixed("rows", self.rows) | prefixed("parts", self.parts)

    @classmethod
    def of(cls, state: Arrays) -> DenseIndex:
        dense = cls()
        rows, parts = unprefixed("rows", state), unprefixed("parts", state)
        if "vector" in rows:
            dense._set_dimensions(rows["vector"].shape[1])
        dense.rows.restore(rows)
        dense.parts.restore(parts)
        dense.count = int(dense.present.sum())
        return dense

    @property
    def dimensions(self) -> int:
        """The length of the vectors; 0 where there are none."""
        return self._dimensions if self.count else 0

    @property
    def present(self) -> Bools:
        """Which rows have a vector."""
        return self.rows["present"]

    def reserve(self, rows: int) -> None:
        """Make room up to a number of rows."""
        self.rows.extend(max(rows - self.rows.size, 0))

    def remove(self, rows: Ints) -> None:
        """Leave nothing of the vectors of rows."""
        self.put(rows, [None] * len(rows))
        if "vector" in self.rows:
            self.rows["vector"][rows] = 0

    def put(self, rows: Ints, vectors: Sequence[Floats | None]) -> None:
        """Set or clear the vectors of rows within the reserve; a matrix has one for each part of a row's text."""
        self.rows["present"][rows] = False
        if self.parts.size:
            self.parts.keep(~np.isin(self.parts["row"], rows))
        given = [(row, vector) for row, vector in zip(rows.tolist(), vectors, strict=True) if vector is not None]
        if given:
            self._write(given)
        self.count = int(self.rows["present"].sum())

    def _write(self, given: Sequence[tuple[int, Floats]]) -> None:
        if not self.rows["present"].any():
            size = self.rows.size
            self._set_dimensions(max(vector.shape[-1] for _, vector in given))
            self.rows.extend(size)
        fitting = [(row, vector) for row, vector in given if vector.shape[-1] == self._dimensions]
        if not fitting:
            return
        row = np.repeat([row for row, _ in fitting], [vector.size // self._dimensions for _, vector in fitting])
        flat: Floats = np.concatenate([vector for _, vector in fitting], axis=None, dtype=np.float32)
        matrix = flat.reshape(-1, self._dimensions)
        norms = np.sqrt(np.vecdot(matrix, matrix))
        is_usable = np.isfinite(norms) & (norms > 0)
        row, matrix = row[is_usable], matrix[is_usable] / norms[is_usable, None]
        is_first = np.diff(row, prepend=-1) != 0
        self.rows["vector"][row[is_first]] = matrix[is_first]
        self.rows["present"][row] = True
        if not is_first.all():
            self.parts.append(row=row[~is_first], vector=matrix[~is_first])

    def _set_dimensions(self, dimensions: int) -> None:
        self._dimensions = dimensions
        dtype = np.dtype((np.float32, dimensions))
        self.rows, self.parts = Table(present=np.bool_, vector=dtype), Table(row=np.int32, vector=dtype)

    def nearest_part(self, row: int, vector: Floats) -> tuple[int, int]:
        """Which of the vectors of a row that has some is nearest to another, and how many it has."""
        parts = self.parts["vector"][self.parts["row"] == row]
        cosines = np.vecdot(np.concatenate((self.rows["vector"][row : row + 1], parts)), vector)
        return int(cosines.argmax()), len(cosines)

    def part_cosines(self, rows: Sequence[int], vector: Floats) -> dict[int, list[float]]:
        """For those of the rows that have several vectors the cosine of each with another, in their order."""
        if not self.parts.size or len(vector) != self._dimensions:
            return {}
        places = np.isin(self.parts["row"], rows).nonzero()[0]
        found: dict[int, list[float]] = {}
        for row, vectors in zip(self.parts["row"][places].tolist(), self.parts["vector"][places], strict=True):
            known = found.setdefault(row, [float(np.vecdot(self.rows["vector"][row], vector))])
            known.append(float(np.vecdot(vectors, vector)))
        return found

    def cosines(self, vector: Floats) -> Floats | None:
        """The cosine of each row with a vector, 0 where there is none; None when the lengths differ."""
        norm = sqrt(float(np.dot(vector, vector)))
        if len(vector) != self._dimensions or not isfinite(norm) or norm == 0:
            return None
        # Row by row: a product of the whole matrix may round a row differently depending on what stands around it.
        unit = np.asarray(vector, np.float32) / np.float32(norm)
        cosines = np.vecdot(self.rows["vector"], unit)
        if self.parts.size:
            np.maximum.at(cosines, self.parts["row"], np.vecdot(self.parts["vector"], unit))
        return cosines if self.count == self.rows.size else np.where(self.rows["present"], cosines, np.float32(0))
