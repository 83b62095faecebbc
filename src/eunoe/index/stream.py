"""What a stream looks like to a searcher: derived from its rows, brought up to date by deltas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Dense
from eunoe.index.graph import Graph
from eunoe.index.lexical import Lexical, grown
from eunoe.text.analyzer import folded_words
from eunoe.text.normalize import normalize_name
from eunoe.text.parts import LONG_TEXT_WORDS, PART_WORDS

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]

MESSAGE: Final = "message"
_FEW_WORDS: Final = 8.0
_MANY_WORDS: Final = 120.0
"""How long the items of a stream are on average at either end of `Layout.wordy`."""


class Entry(NamedTuple):
    """What a searcher needs to know of a message or an atom."""

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
    vector: NDArray[np.float32] | None = None
    pinned: bool = False


class Names:
    """A column of names as small numbers."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self._codes: Ints = np.zeros(0, np.int32)
        self._used = 0

    @property
    def codes(self) -> Ints:
        return self._codes[: self._used]

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + 100 * len(self.known)

    def reserve(self, rows: int) -> None:
        self._codes = grown(self._codes, self._used, rows - self._used)
        self._used = rows

    def put(self, rows: Ints, names: Sequence[str]) -> None:
        known = self.known
        for name in dict.fromkeys(names):
            known.setdefault(name, len(known))
        self._codes[rows] = list(map(known.__getitem__, names))

    def present(self, rows: Bools) -> dict[str, int]:
        """The names that some of these rows have."""
        codes = set(np.unique(self.codes[rows]).tolist())
        return {name: code for name, code in self.known.items() if code in codes and name}

    def among(self, wanted: Iterable[str]) -> Bools:
        """Which rows have one of these names."""
        return self.coded([self.known[name] for name in wanted if name in self.known])

    def alike(self, wanted: Iterable[str]) -> Bools:
        """Which rows have one of these names, however written."""
        names = frozenset(map(normalize_name, wanted))
        return self.coded([code for name, code in self.known.items() if normalize_name(name) in names])

    def coded(self, codes: Iterable[int]) -> Bools:
        """Which rows have one of these numbers."""
        chosen = np.zeros(len(self.known), np.bool_)
        chosen[list(codes)] = True
        return chosen.take(self.codes)


_MOMENTS: Final = ("time", "valid_from", "valid_to", "recorded", "retired")
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")
_USERS: Final = frozenset({"user", "human"})
_MACHINES: Final = frozenset({"assistant", "ai", "bot", "model", "agent", "system", "tool"})


class StreamIndex:
    """The searchable form of one stream, row by row; a removed row stays as a gap.

    Not to be read while `apply` runs: whoever holds it sees to that.
    """

    def __init__(self) -> None:
        self.version = 0
        self.model = ""
        """The name of the one that made its vectors."""
        self.rows = 0
        self.lexical = Lexical()
        self.dense = Dense()
        self.graph: Graph | None = None
        """Made when a recipe first asks for it."""
        self.metadata: dict[int, Mapping[str, Any]] | None = None
        """The metadata of the items that have some, by their numbers; read when a filter first asks for it."""
        self.kind, self.label, self.session, self.speaker = Names(), Names(), Names(), Names()
        self.ids: list[str] = []
        self.seqs: list[int] = []
        self.people: list[tuple[str, ...]] = []
        """Names as they are compared."""
        self.files: list[tuple[str, ...]] = []
        self._row_of: dict[int, int] = {}
        self._digest: list[int] = []
        self._text_bytes = 0
        self._alive: Bools = np.zeros(0, np.bool_)
        self._asks: Bools = np.zeros(0, np.bool_)
        self._user: Bools = np.zeros(0, np.bool_)
        self._machine: Bools = np.zeros(0, np.bool_)
        self._moments: NDArray[np.float64] = np.zeros((0, len(_MOMENTS)), np.float64)
        self._layout: Layout | None = None
        self._standing: tuple[Bools, bool] | None = None
        self._paths: dict[str, list[int]] | None = None
        self._graphed: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def alive(self) -> Bools:
        """Which rows are there; the others were removed."""
        return self._alive[: self.rows]

    @property
    def asks(self) -> Bools:
        """Which rows end in a question mark."""
        return self._asks[: self.rows]

    @property
    def user(self) -> Bools:
        """Which rows were said by the user of an assistant."""
        return self._user[: self.rows]

    @property
    def machine(self) -> Bools:
        """Which rows were said by an assistant or a tool."""
        return self._machine[: self.rows]

    @property
    def nbytes(self) -> int:
        """Memory held, for a bound on all indexes together; strings and objects are estimated."""
        columns = (self.kind, self.label, self.session, self.speaker)
        arrays = self._alive.nbytes * 4 + self._moments.nbytes
        layout = self._layout.nbytes if self._layout else 0
        return (
            4096
            + self.lexical.nbytes
            + self.dense.nbytes
            + sum(column.nbytes for column in columns)
            + arrays
            + layout
            + (self.graph.nbytes if self.graph else 0)
            + self._text_bytes
            + 400 * len(self.metadata or ())
            + 280 * self.rows
        )

    @property
    def layout(self) -> Layout:
        """Who stands next to whom, worked out when first asked for after a change."""
        if self._layout is None:
            self._layout = Layout.of(self)
        return self._layout

    @property
    def standing(self) -> tuple[Bools, bool]:
        """Which rows are there and not retired, and whether the truth of any of them ends."""
        if self._standing is None:
            ends = bool((~np.isnan(self.moment("valid_to"))).any())
            self._standing = self.alive & np.isnan(self.moment("retired")), ends
        return self._standing

    def moment(self, name: str) -> NDArray[np.float64]:
        """A column of times: time, valid_from, valid_to, recorded or retired; NaN where there is none."""
        return self._moments[: self.rows, _MOMENTS.index(name)]

    def row(self, seq: int) -> int | None:
        """Where an entry is."""
        return self._row_of.get(seq)

    def rows_of(self, graph: Graph) -> NDArray[np.int64]:
        """Where the entries of a graph are, by its rows; -1 for those that are not here."""
        if self._graphed is None or len(self._graphed) != graph.rows:
            self._graphed = np.fromiter((self._row_of.get(seq, -1) for seq in graph.seqs), np.int64, graph.rows)
        return self._graphed

    def about(self, paths: Iterable[str]) -> list[int]:
        """Numbers of the entries that name one of these files, or a file in one of these folders."""
        return [self.seqs[row] for row in np.flatnonzero(self.naming(paths)).tolist()]

    def naming(self, paths: Iterable[str]) -> Bools:
        """Which rows name one of these files, or a file in one of these folders."""
        if self._paths is None:
            self._paths = {}
            for row, files in enumerate(self.files):
                for file in files:
                    self._paths.setdefault(file, []).append(row)
        wanted = frozenset(paths)
        folders = tuple(f"{path.rstrip('/')}/" for path in wanted)
        named = np.zeros(self.rows, np.bool_)
        for file, rows in self._paths.items():
            if file in wanted or file.startswith(folders):
                named[rows] = True
        return named

    def apply(self, entries: Iterable[Entry], removed: Iterable[int] = (), version: int = 0) -> None:
        """Takes in new and changed entries and drops removed ones."""
        self._layout = self._standing = self._paths = self._graphed = None
        self._drop([seq for seq in removed if seq in self._row_of])
        latest = {entry.seq: entry for entry in entries}
        fresh = sorted((entry for entry in latest.values() if entry.seq not in self._row_of), key=lambda e: e.seq)
        changed = [entry for entry in latest.values() if entry.seq in self._row_of]
        self._append(fresh)
        self._change(changed)
        self.version = version

    def _drop(self, seqs: Sequence[int]) -> None:
        rows = [self._row_of.pop(seq) for seq in dict.fromkeys(seqs)]
        self.lexical.remove(rows)
        self.dense.put(np.asarray(rows, np.int32), [None] * len(rows))
        for row in rows:
            self._alive[row] = False
            self.ids[row], self.people[row], self.files[row] = "", (), ()

    def _append(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        first = self.rows
        self._reserve(first + len(entries))
        rows = range(first, self.rows)
        self.lexical.add(rows, [entry.text for entry in entries])
        self._row_of.update(zip([entry.seq for entry in entries], rows, strict=True))
        self._fill(rows, entries)

    def _change(self, entries: Sequence[Entry]) -> None:
        rows = [self._row_of[entry.seq] for entry in entries]
        rewritten = [
            (row, entry.text) for row, entry in zip(rows, entries, strict=True) if self._digest[row] != hash(entry.text)
        ]
        self.lexical.remove(row for row, _ in rewritten)
        self.lexical.add([row for row, _ in rewritten], [words for _, words in rewritten])
        self._fill(rows, entries)

    def _reserve(self, rows: int) -> None:
        more = rows - self.rows
        for name in ("_alive", "_asks", "_user", "_machine", "_moments"):
            setattr(self, name, grown(getattr(self, name), self.rows, more))
        for column in (self.kind, self.label, self.session, self.speaker):
            column.reserve(rows)
        self.dense.reserve(rows)
        self.ids += [""] * more
        self.seqs += [0] * more
        self.people += [()] * more
        self.files += [()] * more
        self._digest += [0] * more
        self.rows = rows

    def _fill(self, rows: Sequence[int], entries: Sequence[Entry]) -> None:
        if not entries:
            return
        where = np.asarray(rows, np.int32)
        of: dict[str, Any] = dict(zip(Entry._fields, zip(*entries, strict=True), strict=True))
        self._alive[where] = True
        self._asks[where] = [text.rstrip().endswith(_QUESTION_MARKS) for text in of["text"]]
        sides = {pair: _sides(*pair) for pair in set(zip(of["speaker"], of["role"], strict=True))}
        said = [sides[pair] for pair in zip(of["speaker"], of["role"], strict=True)]
        self._machine[where], self._user[where] = np.array(said, np.bool_).T
        for place, name in enumerate(_MOMENTS):
            # NumPy reads None as NaN.
            self._moments[where, place] = np.array(of[name], np.float64)
        self.kind.put(where, of["kind"])
        self.label.put(where, of["label"])
        self.session.put(where, of["session"])
        self.speaker.put(where, of["speaker"])
        self.dense.put(where, of["vector"])
        digests = map(hash, of["text"])
        for kept, column in (
            (self.ids, of["id"]),
            (self.seqs, of["seq"]),
            (self.people, [tuple(map(normalize_name, names)) if names else () for names in of["people"]]),
            (self.files, of["files"]),
            (self._digest, digests),
        ):
            for row, value in zip(rows, column, strict=True):
                kept[row] = value
        self._text_bytes += 60 * (sum(map(len, of["people"])) + sum(map(len, of["files"])))


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of talk: neighbours within a session, and what is usual for a turn. -1 stands for no neighbour."""

    message: Bools
    before: Ints
    two_before: Ints
    after: Ints
    order: Ints
    starts: Ints
    group: Ints
    named: Bools | None
    """Which turns have a session that somebody named; None where none has."""
    length: Floats
    question: Floats
    answer: Floats
    user: Floats | None
    """1 for what the user said, in talk between a user and a machine."""
    names: dict[str, set[int]]
    """Who speaks in the stream, by the words of their names."""
    span: tuple[float, float] | None
    """The first and the last time of anything in the stream."""
    bulk: NDArray[np.float32]
    """What each row counts for among others: 1, and more for a long text, in which anything is met more easily."""
    wordy: float
    """0 where items are as short as what people text each other, 1 where they are as long as a page, else between."""

    @property
    def nbytes(self) -> int:
        return 50 * len(self.message)

    @classmethod
    def of(cls, index: StreamIndex) -> Layout:
        message = index.alive & index.kind.among((MESSAGE,))
        rows = np.flatnonzero(message)
        session = index.session.codes[rows]
        order = rows[np.lexsort((np.array(index.seqs, np.int64)[rows], session))].astype(np.int32)
        sorted_session = index.session.codes[order]
        edge = np.diff(sorted_session, prepend=-1) != 0
        before = np.full(index.rows, -1, np.int32)
        after = np.full(index.rows, -1, np.int32)
        inner = np.flatnonzero(~edge)
        before[order[inner]], after[order[inner - 1]] = order[inner - 1], order[inner]
        group = np.full(index.rows, -1, np.int32)
        group[order] = np.cumsum(edge) - 1
        question = (index.asks & message).astype(np.float32)
        named = message & ~index.session.among(("",))
        roles = bool((index.user & message).any() and (index.machine & message).any())
        return cls(
            message=message,
            before=before,
            two_before=np.append(before, np.int32(-1))[before],
            after=after,
            order=order,
            starts=np.flatnonzero(edge).astype(np.int32),
            group=group,
            named=named if named.any() else None,
            length=_relative_length(index, message, roles),
            question=question,
            answer=np.append(question, np.float32(0))[before],
            user=(index.user & message).astype(np.float32) if roles else None,
            names=_called(index.speaker.present(message)),
            span=_span(index.moment("time")[index.alive]),
            bulk=_bulk(index.lexical),
            wordy=_wordy(index.lexical),
        )


def _bulk(lexical: Lexical) -> NDArray[np.float32]:
    lengths = lexical.lengths[: lexical.rows]
    return np.where(lengths > LONG_TEXT_WORDS, lengths / PART_WORDS, 1).astype(np.float32)


def _wordy(lexical: Lexical) -> float:
    usual = float(lexical.lengths.sum()) / max(lexical.alive, 1)
    share = log(max(usual, _FEW_WORDS) / _FEW_WORDS) / log(_MANY_WORDS / _FEW_WORDS)
    return min(share, 1.0)


def _called(speakers: dict[str, int]) -> dict[str, set[int]]:
    called: dict[str, set[int]] = {}
    for name, code in speakers.items():
        for word in folded_words(name):
            called.setdefault(word, set()).add(code)
    return called


def _span(times: NDArray[np.float64]) -> tuple[float, float] | None:
    known = times[~np.isnan(times)]
    return (float(known.min()), float(known.max())) if len(known) else None


@lru_cache(maxsize=256)
def _sides(name: str, role: str) -> tuple[bool, bool]:
    """Whether a machine or its user speaks. A speaker with a name of their own is no machine, whatever the role."""
    speaker = name.casefold()
    machine = speaker in _MACHINES if speaker else role in _MACHINES
    return machine, not machine and (speaker in _USERS or role in _USERS)


def _relative_length(index: StreamIndex, message: Bools, roles: bool) -> Floats:
    """Log length against what is usual for the same side of the talk."""
    length: Floats = np.log1p(index.lexical.lengths)
    relative = np.zeros(index.rows, np.float32)
    for side in (index.user, ~index.user) if roles else (np.ones(index.rows, np.bool_),):
        where = message & side
        if where.any():
            relative[where] = length[where] - length[where].mean()
    return np.clip(relative, -2, 2)
