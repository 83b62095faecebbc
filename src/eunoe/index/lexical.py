"""Which rows hold which terms: flat arrays in row order, so that adding is appending."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from itertools import chain, islice
from math import log1p
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eunoe.text import analyzer
from eunoe.text.dates import NUMBER_WORDS, TIME_WORDS
from eunoe.text.languages import ENGLISH, LANGUAGES, language_votes
from eunoe.text.normalize import fold

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Scalar = TypeVar("Scalar", bound=np.generic)

TIME: Final = 1
NUMBER: Final = 2
_GONE: Final = 0
_START: Final = np.zeros(1, np.int64)
_TAIL: Final = 4
_FEW: Final = 24
_PRIOR_ROWS: Final = 20
_TIME_TERMS: Final = frozenset(analyzer.stem(fold(word)) for word in TIME_WORDS)
_NUMBER_TERMS: Final = frozenset(analyzer.stem(fold(word)) for word in NUMBER_WORDS)


def grown(array: NDArray[Scalar], used: int, more: int) -> NDArray[Scalar]:
    """The array, or a copy with room for `more` items after `used`."""
    need = used + more
    if need <= len(array):
        return array
    size = need if used == 0 else max(need, used * 3 // 2)
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


class Group(NamedTuple):
    """One thing looked for: the terms that count as it, how well each does (1 is exact), and its weight."""

    label: str
    terms: tuple[int, ...]
    fits: tuple[float, ...]
    exact: int
    weight: float = 1.0
    whole: str = ""
    """The piece of the question that it was taken from."""


class Sorted(NamedTuple):
    """The rows of the first postings by term, and where each term starts."""

    postings: int
    rows: Ints
    starts: NDArray[np.int64]


class Lexical:
    """Terms per row. Term 0 stands for nothing: postings of removed rows point to it."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {"": _GONE}
        self.rows = 0
        self.postings = 0
        self.dead = 0
        self.alive = 0
        self._term: Ints = np.zeros(0, np.int32)
        self._row: Ints = np.zeros(0, np.int32)
        self._count: NDArray[np.uint16] = np.zeros(0, np.uint16)
        self._holders: Ints = np.zeros(1, np.int32)
        self._marks: NDArray[np.uint8] = np.zeros(1, np.uint8)
        self._start: Ints = np.zeros(0, np.int32)
        self._end: Ints = np.zeros(0, np.int32)
        self._length: Floats = np.zeros(0, np.float32)
        self._flags: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._spoken: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._speaking = np.zeros(len(LANGUAGES), np.int64)
        self._languages: frozenset[int] | None = None
        self._sorted = _UNSORTED

    @property
    def languages(self) -> frozenset[int]:
        """The languages of the rows, and English."""
        if self._languages is None:
            self._languages = frozenset((ENGLISH, *np.flatnonzero(self._speaking).tolist()))
        return self._languages

    @property
    def nbytes(self) -> int:
        """Bytes held, with a guess for the vocabulary's strings; as if the postings were sorted."""
        arrays = (self._term, self._row, self._count, self._holders, self._marks, self._start, self._end)
        return (
            sum(array.nbytes for array in arrays)
            + self._length.nbytes
            + self._flags.nbytes
            + 4 * self.postings
            + 128 * len(self.vocabulary)
        )

    @property
    def lengths(self) -> Floats:
        """Number of words per row."""
        return self._length[: self.rows]

    @property
    def flags(self) -> NDArray[np.uint8]:
        """TIME and NUMBER per row."""
        return self._flags[: self.rows]

    def add(self, rows: Sequence[int], texts: Sequence[str]) -> None:
        """Takes in the texts of rows, each once: a row that is there already has to be removed first."""
        if not rows:
            return
        counts, chunks = _chunked(texts)
        occurrences, owner, spoken = self._terms(counts, chunks)
        term, place, count = _counted(occurrences, owner)
        numbers = np.asarray(rows, np.int32)
        self._reserve(int(numbers.max()) + 1, len(term))
        window = slice(self.postings, self.postings + len(term))
        self._term[window], self._row[window], self._count[window] = term, numbers[place], count
        bounds = np.searchsorted(place, np.arange(len(rows) + 1)).astype(np.int32)
        self._start[numbers], self._end[numbers] = bounds[:-1] + self.postings, bounds[1:] + self.postings
        self._length[numbers] = np.bincount(owner, minlength=len(rows))
        self._spoken[numbers] = spoken
        self._languages = None
        self._speaking += np.bincount(spoken, minlength=len(LANGUAGES))
        self._flags[numbers] = _merged(self._marks[term], bounds)
        np.add.at(self._holders, term, 1)
        self.postings += len(term)
        self.alive += len(rows)

    def remove(self, rows: Iterable[int]) -> None:
        """Takes rows out."""
        self._languages = None
        for row in rows:
            self._sorted = _UNSORTED
            window = slice(int(self._start[row]), int(self._end[row]))
            self._holders[self._term[window]] -= 1
            self._term[window] = _GONE
            self.dead += window.stop - window.start
            self._start[row] = self._end[row] = 0
            self._length[row] = self._flags[row] = 0
            self._speaking[self._spoken[row]] -= 1
            self.alive -= 1
        if self.dead > max(1024, self.postings // 2):
            self._compact()

    def idf(self, group: Group) -> float:
        """How telling it is that a row holds one of the group's exact terms.

        A few rows that hold nothing are imagined, so that the scale is sane in a stream of three.
        """
        held = min(sum(map(self._holders.item, group.terms[: group.exact])), self.alive)
        return log1p((self.alive + _PRIOR_ROWS - held + 0.5) / (held + 0.5))

    def matches(self, groups: Sequence[Group]) -> Floats:
        """How well each row fits each group, 0 to 1: an array of groups by rows."""
        found = np.zeros((len(groups), self.rows), np.float32)
        if self.postings - self._sorted.postings > self.postings // _TAIL:
            self._sort()
        self._look_up(groups, found)
        if self._sorted.postings < self.postings:
            self._scan(groups, found)
        return found

    def told(
        self, rows: Sequence[int], worth: Sequence[float], besides: Set[int], most: int, often: float
    ) -> dict[int, float]:
        """The terms that rows have besides some, the most telling first, each with its share in what they tell.

        A term that more than a share `often` of all rows have tells nothing.
        """
        texts = [self._term[self._start.item(row) : self._end.item(row)] for row in rows]
        terms, which = np.unique(np.concatenate((self._term[:0], *texts)), return_inverse=True)
        told = np.bincount(which, np.repeat(worth, [len(each) for each in texts]), len(terms))
        held = self._holders.take(terms)
        rarity = np.log1p((self.alive + _PRIOR_ROWS - held + 0.5) / (held + 0.5))
        order = np.argsort(-told * rarity, kind="stable")  # ties go by number
        order = order[(held <= often * self.alive).take(order)]
        ranked = zip(order.tolist(), terms.take(order).tolist(), strict=True)
        chosen = [(place, term) for place, term in ranked if term != _GONE and term not in besides][:most]
        if not chosen:
            return {}
        best, names = zip(*chosen, strict=True)
        shares = told.take(best) * rarity.take(best) ** 2
        return dict(zip(names, (shares / shares.sum()).tolist(), strict=True))

    def shares(self, worth: dict[int, float]) -> Floats:
        """For each row the sum of what its terms are worth."""
        known = {term: value for term, value in worth.items() if term < len(self._sorted.starts) - 1}
        rows, widths = self._holding(list(known))
        found = np.bincount(rows, np.repeat(list(known.values()), widths), self.rows)
        tail = slice(self._sorted.postings, self.postings)
        if tail.start < tail.stop:
            values = np.zeros(len(self.vocabulary))
            values[list(worth)] = list(worth.values())
            found = found + np.bincount(self._row[tail], values.take(self._term[tail]), self.rows)
        return found.astype(np.float32)

    def _look_up(self, groups: Sequence[Group], found: Floats) -> None:
        """Matches among the sorted postings."""
        rows, starts = self._sorted.rows, self._sorted.starts
        # From the worst fit to the best: where a row is met twice, the last assignment stays.
        known = len(starts) - 1
        pairs = [
            (fit, number, term)
            for number, group in enumerate(groups)
            for term, fit in zip(group.terms, group.fits, strict=True)
            if term < known
        ]
        pairs.sort()
        if len(pairs) <= _FEW:
            for fit, number, term in pairs:
                found[number].put(rows[starts.item(term) : starts.item(term + 1)], fit)
            return
        fits, numbers, terms = zip(*pairs, strict=True)
        row, widths = self._holding(terms)
        found[np.repeat(numbers, widths), row] = np.repeat(np.array(fits, np.float32), widths)

    def _holding(self, terms: Sequence[int]) -> tuple[Ints, NDArray[np.int64]]:
        """The rows of terms among the sorted postings, term after term, and how many each has."""
        rows, starts = self._sorted.rows, self._sorted.starts
        where = np.array(terms, np.int64)
        first, last = starts.take(where), starts.take(where + 1)
        spans = [rows[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]
        return np.concatenate((rows[:0], *spans)), last - first

    def _scan(self, groups: Sequence[Group], found: Floats) -> None:
        """Matches among the postings that came later."""
        start = self._sorted.postings
        terms = sorted({term for group in groups for term in group.terms})
        numbers = {term: number for number, term in enumerate(terms, 1)}
        fits = np.zeros((len(groups), len(terms) + 1), np.float32)
        for number, group in enumerate(groups):
            fits[number, [numbers[term] for term in group.terms]] = group.fits
        wanted = np.zeros(len(self.vocabulary), np.int32)
        wanted[terms] = range(1, len(terms) + 1)
        which = wanted.take(self._term[start : self.postings])
        place = which.nonzero()[0]
        if len(place):
            row = self._row[start : self.postings].take(place)
            first = np.concatenate((_START, (row[1:] != row[:-1]).nonzero()[0] + 1))
            found[:, row[first]] = np.maximum.reduceat(fits.take(which[place], axis=1), first, axis=1)

    def _sort(self) -> None:
        order = np.argsort(self._term[: self.postings], kind="stable")
        counts = np.bincount(self._term[: self.postings], minlength=len(self.vocabulary))
        self._sorted = Sorted(self.postings, self._row[order], np.concatenate((_START, np.cumsum(counts))))

    def bm25(self, groups: Sequence[Group], k1: float = 1.2, b: float = 0.75) -> Floats:
        """BM25 of each row over the groups' exact terms, as a share of the most there can be."""
        weights = np.zeros(len(self.vocabulary), np.float64)
        total = 0.0
        for group in groups:
            worth = self.idf(group) * group.weight
            weights[list(group.terms[: group.exact])] += worth
            total += worth
        weights[_GONE] = 0
        place = np.flatnonzero(weights[self._term[: self.postings]])
        if not len(place) or total <= 0:
            return np.zeros(self.rows, np.float32)
        row, count = self._row[place], self._count[place].astype(np.float64)
        mean = max(float(self.lengths.sum()) / max(self.alive, 1), 1.0)
        scaled = k1 * (1 - b + b * self._length[row] / mean)
        gains = weights[self._term[place]] * count * (k1 + 1) / (count + scaled)
        return (np.bincount(row, gains, self.rows) / (total * (k1 + 1))).astype(np.float32)

    def _terms(self, counts: Ints, chunks: Sequence[str]) -> tuple[Ints, Ints, NDArray[np.int64]]:
        """Term numbers of all texts in order, the text each belongs to, and the language of each text."""
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        which = np.fromiter(map(numbers.__getitem__, chunks), np.int64, len(chunks))
        owner = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        spoken = _spoken(which, list(numbers), owner, len(counts))
        surfaces = list(numbers)
        expanded, inverse = _expanded(surfaces, which, spoken[owner])
        flat = self._numbered(list(chain.from_iterable(expanded)))
        sizes = np.fromiter(map(len, expanded), np.int64, len(expanded))
        ends = np.cumsum(sizes)
        width = sizes[inverse]
        offsets = np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width, width)
        occurrences = flat[np.repeat((ends - sizes)[inverse], width) + offsets]
        return occurrences, np.repeat(owner, width), spoken

    def _numbered(self, terms: list[str]) -> Ints:
        vocabulary, before = self.vocabulary, len(self.vocabulary)
        flat = np.fromiter((vocabulary.setdefault(term, len(vocabulary)) for term in terms), np.int32, len(terms))
        more = len(vocabulary) - before
        if more:
            fresh = [*islice(reversed(vocabulary), more)][::-1]
            self._holders = grown(self._holders, before, more)
            self._marks = grown(self._marks, before, more)
            self._marks[before : len(vocabulary)] = [_mark(term) for term in fresh]
        return flat

    def _reserve(self, rows: int, postings: int) -> None:
        self._term = grown(self._term, self.postings, postings)
        self._row = grown(self._row, self.postings, postings)
        self._count = grown(self._count, self.postings, postings)
        more = max(rows - self.rows, 0)
        for name in ("_start", "_end", "_length", "_flags", "_spoken"):
            setattr(self, name, grown(getattr(self, name), self.rows, more))
        self.rows = max(self.rows, rows)

    def _compact(self) -> None:
        kept = np.flatnonzero(self._term[: self.postings])
        self._term, self._row, self._count = self._term[kept], self._row[kept], self._count[kept]
        self._start[: self.rows] = self._end[: self.rows] = 0
        edges = np.flatnonzero(np.diff(self._row, prepend=-1, append=-1))
        owners = self._row[edges[:-1]]
        self._start[owners], self._end[owners] = edges[:-1], edges[1:]
        self.postings, self.dead = len(kept), 0


_UNSORTED: Final = Sorted(0, np.zeros(0, np.int32), np.zeros(1, np.int64))


def _expanded(
    surfaces: list[str], which: NDArray[np.int64], spoken: NDArray[np.int64]
) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
    """The terms of each surface in each language it is spoken in, and which of these each chunk is."""
    if not spoken.any():
        return analyzer.terms_of_each(surfaces), which
    keys = spoken * len(surfaces) + which
    present = np.zeros(len(LANGUAGES) * len(surfaces), np.bool_)
    present[keys] = True
    expanded: list[tuple[str, ...]] = []
    for language in range(len(LANGUAGES)):
        places = np.flatnonzero(present[language * len(surfaces) : (language + 1) * len(surfaces)])
        expanded += (
            analyzer.terms_of_each([surfaces[place] for place in places.tolist()], language) if len(places) else []
        )
    return expanded, (np.cumsum(present) - 1)[keys]


def _chunked(texts: Sequence[str]) -> tuple[Ints, list[str]]:
    split = [each.split() for each in texts]
    counts = np.fromiter(map(len, split), np.int32, len(split))
    return counts, list(chain.from_iterable(split))


def _spoken(which: NDArray[np.int64], surfaces: list[str], owner: Ints, size: int) -> NDArray[np.int64]:
    """The language of each text, by the votes of its chunks."""
    votes = np.zeros((len(surfaces), len(LANGUAGES)), np.int16)
    voting = np.zeros(len(surfaces), np.bool_)
    for number, languages in language_votes(surfaces):
        votes[number, list(languages)] = 1
        voting[number] = True
    counts = np.zeros((size, len(LANGUAGES)), np.int32)
    voters = np.flatnonzero(voting[which])
    voices = owner[voters]
    first = np.flatnonzero(np.diff(voices, prepend=-1))
    if len(first):
        counts[voices[first]] = np.add.reduceat(votes.take(which[voters], axis=0), first, axis=0, dtype=np.int32)
    most: NDArray[np.int64] = counts.argmax(axis=1)
    return most


def _counted(terms: Ints, owner: Ints) -> tuple[Ints, Ints, NDArray[np.uint16]]:
    """Each text's distinct terms with their counts, in the order of the texts."""
    width = int(terms.max()) + 1 if len(terms) else 1
    keys, counts = np.unique(owner.astype(np.int64) * width + terms, return_counts=True)
    return (
        (keys % width).astype(np.int32),
        (keys // width).astype(np.int32),
        np.minimum(counts, 65_535).astype(np.uint16),
    )


def _merged(marks: NDArray[np.uint8], bounds: Ints) -> NDArray[np.uint8]:
    merged = np.zeros(len(bounds) - 1, np.uint8)
    filled = np.flatnonzero(np.diff(bounds))
    if len(filled):
        merged[filled] = np.bitwise_or.reduceat(marks, bounds[filled])
    return merged


def _mark(term: str) -> int:
    if term[0].isdecimal():
        year = len(term) == 4 and term[:2] in {"19", "20"}
        timed = year or term[-2:] in {"am", "pm", "st", "nd", "rd", "th"} or ":" in term
        return NUMBER | (TIME if timed else 0)
    return (TIME if term in _TIME_TERMS else 0) | (NUMBER if term in _NUMBER_TERMS else 0)
