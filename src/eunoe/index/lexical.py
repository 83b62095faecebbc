"""The lexical index: which rows hold which terms. Its arrays are in row order, so that adding is appending."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from math import log1p
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.tables import Arrays, ColumnOrder, Floats, Ints, Table, pack_texts, prefixed, unpack_texts, unprefixed
from eunoe.text import analyzer
from eunoe.text.dates import NUMBER_WORDS, TIME_WORDS
from eunoe.text.languages import ENGLISH, LANGUAGES, LEAST_POINTS, language_votes
from eunoe.text.normalize import fold

Longs = NDArray[np.int64]

TIME: Final = 1
"""Flag of rows with a word for a time, such as `yesterday`."""
NUMBER: Final = 2
"""Flag of rows with a number."""

_REMOVED: Final = 0
"""The term of postings of removed rows."""
_MIN_REMOVED_POSTINGS: Final = 1024
_IMAGINED_ROWS: Final = 20
"""Rows that hold nothing, counted in with the others, so that rarity means something in a stream of three."""
_MIN_ROW_SHARE: Final = 10
"""Less than one row in so many is few."""
_MAX_COUNT: Final = 65_535
_TIME_TERMS: Final = frozenset(analyzer.stem(fold(word)) for word in TIME_WORDS)
_NUMBER_TERMS: Final = frozenset(analyzer.stem(fold(word)) for word in NUMBER_WORDS)


class TermGroup(NamedTuple):
    """One word of a question: the terms that count as it, how well each fits (1 is exact), and its weight."""

    label: str
    terms: tuple[int, ...]
    fits: tuple[float, ...]
    exact_count: int
    """How many of the terms, the first ones, fit exactly."""
    weight: float = 1.0
    chunk: str = ""
    """The piece of the question that it was taken from."""


class LexicalIndex:
    """The terms of each row."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {"": _REMOVED}
        """The numbers of terms that a row holds."""
        self.keys: list[str] = [""]
        """Terms by their numbers; empty where a number is free."""
        self.languages = frozenset({ENGLISH})
        """The languages of the rows, and English."""
        self.row_count = 0
        """How many rows hold a text; the others are gaps."""
        self.postings = Table(term=np.int32, row=np.int32, count=np.uint16)
        self.rows = Table(start=np.int32, end=np.int32, length=np.float32, flags=np.uint8, language=np.uint8)
        """Where the postings of each row are, its number of words, its flags and its language."""
        self.terms = Table(rows=np.int32, flags=np.uint8)
        """How many rows hold each term, and its flags."""
        self.terms.extend(1)
        self._order = ColumnOrder(self.postings, "term")
        self._free_terms: list[int] = []
        self._removed_postings = 0
        self.rows_by_language = np.zeros(len(LANGUAGES), np.int64)
        self.related_terms = RelatedTerms(self.vocabulary)

    @property
    def nbytes(self) -> int:
        """The memory that its arrays hold."""
        return self.postings.nbytes + self.rows.nbytes + self.terms.nbytes + self._order.nbytes

    def state(self) -> Arrays:
        return (
            prefixed("postings", self.postings)
            | prefixed("rows", self.rows)
            | prefixed("terms", self.terms)
            | prefixed("order", self._order.state())
            | prefixed("keys", pack_texts(self.keys))
            | {"rows_by_language": self.rows_by_language}
        )

    @classmethod
    def of(cls, state: Arrays) -> LexicalIndex:
        lexical = cls()
        for name, table in (("postings", lexical.postings), ("rows", lexical.rows), ("terms", lexical.terms)):
            table.restore(unprefixed(name, state))
        lexical._order.restore(unprefixed("order", state))
        lexical.keys = unpack_texts(unprefixed("keys", state))
        lexical._free_terms = [number for number, key in enumerate(lexical.keys) if number and not key]
        numbers = {key: number for number, key in enumerate(lexical.keys) if key} if lexical._free_terms else None
        lexical.vocabulary |= numbers or dict(zip(lexical.keys, range(len(lexical.keys)), strict=True))
        lexical.rows_by_language = state["rows_by_language"]
        lexical.row_count = int(lexical.rows_by_language.sum())
        lexical._removed_postings = int(np.count_nonzero(lexical.postings["term"] == _REMOVED))
        lexical._note_languages()
        return lexical

    @property
    def other_language(self) -> int:
        """The language of most rows that are not in English; English where these are few."""
        most = int(self.rows_by_language[ENGLISH + 1 :].argmax()) + 1
        return most if self.rows_by_language[most] * _MIN_ROW_SHARE >= max(self.row_count, 1) else ENGLISH

    def add(self, rows: Sequence[int], texts: Sequence[str]) -> None:
        """Index the texts of rows. A row that is there already has to be removed first."""
        if not rows:
            return
        term, text, languages = self._find_terms(texts)
        width = self.terms.size
        keys, counts = np.unique(text.astype(np.int64) * width + term, return_counts=True)
        self._put(rows, keys % width, keys // width, counts, np.bincount(text, minlength=len(rows)), languages)

    def replace(self, row: int, counts: Mapping[str, int]) -> None:
        """Give a row these terms, so often each, in place of those it has; it keeps its language."""
        language = self.rows["language"][[row]].astype(np.int64)
        self.remove([row])
        numbers, times = self._number(counts), np.fromiter(counts.values(), np.int64, len(counts))
        order = np.argsort(numbers)
        owner = np.zeros(len(order), np.int64)
        self._put([row], numbers[order], owner, times[order], times.sum(keepdims=True), language)

    def _put(
        self, rows: Sequence[int], terms: Ints | Longs, owner: Longs, counts: Longs, lengths: Longs, languages: Longs
    ) -> None:
        """Write the postings of rows; `owner` says which of them each belongs to."""
        where = np.asarray(rows, np.int32)
        self.rows.extend(max(int(where.max()) + 1 - self.rows.size, 0))
        span = self.postings.append(term=terms, row=where[owner], count=np.minimum(counts, _MAX_COUNT))
        bounds = np.searchsorted(owner, np.arange(len(rows) + 1))
        self.rows["start"][where], self.rows["end"][where] = bounds[:-1] + span.start, bounds[1:] + span.start
        self.rows["length"][where] = lengths
        self.rows["language"][where] = languages
        filled = np.flatnonzero(np.diff(bounds))
        if len(filled):
            flags = self.terms["flags"][terms]
            self.rows["flags"][where[filled]] = np.bitwise_or.reduceat(flags, bounds[filled])
        np.add.at(self.terms["rows"], terms, 1)
        self.row_count += len(rows)
        self.rows_by_language += np.bincount(languages, minlength=len(LANGUAGES))
        self._note_languages()

    def _note_languages(self) -> None:
        self.languages = frozenset((ENGLISH, *np.flatnonzero(self.rows_by_language).tolist()))

    def remove(self, rows: Sequence[int]) -> None:
        """Leave nothing of the texts of rows, nor of the terms that no other row holds."""
        for row in rows:
            span = slice(int(self.rows["start"][row]), int(self.rows["end"][row]))
            terms = self.postings["term"][span].copy()
            self._order.remove(span)
            self.terms["rows"][terms] -= 1
            free = terms[self.terms["rows"][terms] == 0].tolist()
            for term in free:  # what no row holds any more leaves the vocabulary
                del self.vocabulary[self.keys[term]]
                self.keys[term] = ""
            self._free_terms += free
            if free:
                self.related_terms.clear()
            for column in self.postings.values():
                column[span] = _REMOVED
            self._removed_postings += span.stop - span.start
            self.rows_by_language[self.rows["language"][row]] -= 1
            for name in ("start", "end", "length", "flags"):
                self.rows[name][row] = 0
            self.row_count -= 1
        self._note_languages()
        if self._removed_postings > max(_MIN_REMOVED_POSTINGS, self.postings.size // 2):
            self._compact()

    def idf(self, group: TermGroup) -> float:
        """Inverse document frequency: how much it says that a row holds one of the group's exact terms."""
        holding = min(sum(map(self.terms["rows"].item, group.terms[: group.exact_count])), self.row_count)
        return log1p((self.row_count + _IMAGINED_ROWS - holding + 0.5) / (holding + 0.5))

    def matches(self, groups: Sequence[TermGroup]) -> Floats:
        """How well each row fits each group, 0 to 1: an array of groups by rows."""
        matches = np.zeros((len(groups), self.rows.size), np.float32)
        terms = list(dict.fromkeys(term for group in groups for term in group.terms if term))
        rows = dict(zip(terms, self._order.values("row", np.array(terms, np.int32)), strict=True))
        # From the worst fit to the best: where a row has two terms of a group, the last assignment stays.
        for fit, number, term in sorted(
            (fit, number, term)
            for number, group in enumerate(groups)
            for term, fit in zip(group.terms, group.fits, strict=True)
            if term
        ):
            matches[number][rows[term]] = fit
        return matches

    def row_terms(self, rows: Sequence[int]) -> list[frozenset[int]]:
        """The terms of some rows."""
        start, end, term = self.rows["start"], self.rows["end"], self.postings["term"]
        return [frozenset(term[start.item(row) : end.item(row)].tolist()) for row in rows]

    def feedback_terms(
        self, rows: Sequence[int], weights: Sequence[float], excluded: Set[int], limit: int, max_share: float
    ) -> dict[int, float]:
        """The terms that say most of what these rows are about, the best first, with weights that add up to 1.

        A term that more than `max_share` of all rows have says nothing.
        """
        start, end, term = self.rows["start"], self.rows["end"], self.postings["term"]
        spans = [term[start.item(row) : end.item(row)] for row in rows]
        terms, which = np.unique(np.concatenate((term[:0], *spans)), return_inverse=True)
        frequency = np.bincount(which, np.repeat(weights, [len(span) for span in spans]), len(terms))
        holding = self.terms["rows"].take(terms)
        idf = np.log1p((self.row_count + _IMAGINED_ROWS - holding + 0.5) / (holding + 0.5))
        is_rare = (holding <= max_share * self.row_count).tolist()
        values, numbers = (-frequency * idf).tolist(), terms.tolist()
        usable = [place for place, term in enumerate(numbers) if is_rare[place] and term not in excluded]
        usable.sort(key=lambda place: (values[place], self.keys[numbers[place]]))
        chosen = [(place, numbers[place]) for place in usable[:limit]]
        if not chosen:
            return {}
        places, best = zip(*chosen, strict=True)
        shares = frequency.take(places) * idf.take(places) ** 2
        return dict(zip(best, (shares / shares.sum()).tolist(), strict=True))

    def sum_weights(self, weights: Mapping[int, float]) -> Floats:
        """For each row the sum of the weights of its terms."""
        rows = self._order.values("row", np.array(list(weights), np.int32))
        gains = np.repeat(np.array(list(weights.values()), np.float64), [len(own) for own in rows])
        return np.bincount(np.concatenate((self.postings["row"][:0], *rows)), gains, self.rows.size).astype(np.float32)

    def bm25(self, groups: Sequence[TermGroup], k1: float = 1.2, b: float = 0.75) -> Floats:
        """BM25 of each row over the groups' exact terms, as a share of the most there can be."""
        weights: defaultdict[int, float] = defaultdict(float)
        total = 0.0
        for group in groups:
            weight = self.idf(group) * group.weight
            for term in group.terms[: group.exact_count]:
                weights[term] += weight
            total += weight
        weights.pop(_REMOVED, None)
        length = self.rows["length"]
        mean = max(float(length.sum(dtype=np.float64)) / max(self.row_count, 1), 1.0)
        scaled = k1 * (1 - b + b * length / mean)
        gains = np.zeros(self.rows.size)
        terms = np.array(list(weights), np.int32)
        rows, counts = self._order.values("row", terms), self._order.values("count", terms)
        for row, held, weight in zip(rows, counts, weights.values(), strict=True):
            count = held.astype(np.float64)
            np.add.at(gains, row, weight * count * (k1 + 1) / (count + scaled.take(row)))
        return (gains / max(total * (k1 + 1), 1e-9)).astype(np.float32)

    def _find_terms(self, texts: Sequence[str]) -> tuple[Ints, Ints, Longs]:
        """The numbers of the terms of all texts in order, the text that each belongs to, and each text's language."""
        split = [text.split() for text in texts]
        text = np.repeat(np.arange(len(texts), dtype=np.int32), [len(chunks) for chunks in split])
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        chunk = np.fromiter(map(numbers.__getitem__, chain.from_iterable(split)), np.int64, len(text))
        chunks = list(numbers)
        languages = _detect_languages(chunks, chunk, text, len(texts))
        terms_of, which = _analyze_chunks(chunks, chunk, languages[text])
        flat = self._number(chain(*terms_of))
        sizes = np.fromiter(map(len, terms_of), np.int64, len(terms_of))
        counts = sizes[which]
        offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        terms = flat[np.repeat((np.cumsum(sizes) - sizes)[which], counts) + offsets]
        return terms, np.repeat(text, counts), languages

    def _number(self, terms: Iterable[str]) -> Ints:
        """The numbers of terms; those that are new get one."""
        all_terms, vocabulary = list(terms), self.vocabulary
        new = [term for term in dict.fromkeys(all_terms) if term not in vocabulary]
        reused = [self._free_terms.pop() for _ in new[: len(self._free_terms)]]
        for number, term in zip(reused, new, strict=False):
            vocabulary[term], self.keys[number], self.terms["flags"][number] = number, term, _term_flags(term)
        rest = new[len(reused) :]
        vocabulary.update(zip(rest, range(len(self.keys), len(self.keys) + len(rest)), strict=True))
        self.keys += rest
        self.terms.append(flags=[_term_flags(term) for term in rest])
        return np.array([vocabulary[term] for term in all_terms], np.int32)

    def _compact(self) -> None:
        """Close the gaps that removed rows left among the postings."""
        self.postings.keep(self.postings["term"] != _REMOVED)
        self._order = ColumnOrder(self.postings, "term")
        self.rows["start"][:] = self.rows["end"][:] = 0
        row = self.postings["row"]
        edges = np.flatnonzero(np.diff(row, prepend=-1, append=-1))
        self.rows["start"][row[edges[:-1]]], self.rows["end"][row[edges[:-1]]] = edges[:-1], edges[1:]
        self._removed_postings = 0


def group_fits(groups: Sequence[TermGroup], terms: Set[int]) -> list[float]:
    """How well a row with these terms fits each group, 0 to 1."""
    pairs = (zip(group.terms, group.fits, strict=True) for group in groups)
    return [max((fit for term, fit in own if term in terms), default=0.0) for own in pairs]


def pieces(text: str, size: int) -> Iterator[str]:
    """A text in pieces of about a size, cut between words where there are any."""
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):
            end = next((place for place in range(end, start + size // 2, -1) if text[place].isspace()), end)
        yield text[start:end]
        start = end


def count_terms(text: str, language: int) -> Counter[str]:
    """How often a text has each term."""
    chunks = Counter(text.split())
    counts = Counter[str]()
    for terms, times in zip(analyzer.terms_of_each(list(chunks), language), chunks.values(), strict=True):
        for term in terms:
            counts[term] += times
    return counts


def _detect_languages(chunks: list[str], chunk: Longs, text: Ints, text_count: int) -> Longs:
    """The language of each text, by the votes of its chunks."""
    votes = np.zeros((len(chunks), len(LANGUAGES)), np.int8)
    for number, vote in language_votes(chunks):
        votes[number, list(vote.languages)] = vote.weight
    voters = np.flatnonzero(np.logical_or.reduce(votes, axis=1)[chunk])
    counts = np.zeros((text_count, len(LANGUAGES)), np.int32)
    owner = text[voters]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    if len(first):
        counts[owner[first]] = np.add.reduceat(votes.take(chunk[voters], axis=0), first, axis=0, dtype=np.int32)
    languages: Longs = counts.argmax(axis=1)
    if languages.any():
        languages[counts.max(axis=1) < LEAST_POINTS] = ENGLISH
    return languages


def _analyze_chunks(chunks: list[str], chunk: Longs, language: Longs) -> tuple[list[tuple[str, ...]], Longs]:
    """The terms of each chunk in each language that it occurs in, and which of these each occurrence is."""
    if not language.any():
        return analyzer.terms_of_each(chunks), chunk
    keys = language * len(chunks) + chunk
    occurs = np.zeros((len(LANGUAGES), len(chunks)), np.bool_)
    occurs.flat[keys] = True
    terms: list[tuple[str, ...]] = []
    for number in np.flatnonzero(occurs.any(axis=1)).tolist():
        terms += analyzer.terms_of_each([chunks[place] for place in np.flatnonzero(occurs[number]).tolist()], number)
    return terms, (np.cumsum(occurs) - 1)[keys]


def _term_flags(term: str) -> int:
    if term[0].isdecimal():
        is_year = len(term) == 4 and term[:2] in {"19", "20"}
        is_time = is_year or term[-2:] in {"am", "pm", "st", "nd", "rd", "th"} or ":" in term
        return NUMBER | (TIME if is_time else 0)
    return (TIME if term in _TIME_TERMS else 0) | (NUMBER if term in _NUMBER_TERMS else 0)


_MIN_CHARACTERS: Final = 4
"""Of the shorter one: what is shorter begins too many words."""
_MAX_CHARACTERS: Final = 64
"""No word is longer."""
_MIN_SHARE: Final = 0.3
"""Of the longer one that both have in common."""
_MAX_LONGER: Final = 100
"""Terms that are looked at for one word."""
_FIT: Final = 0.7
"""Of a term that is nearly as long: less than that of the same word."""
_COMPOUNDING: Final = frozenset(
    map(LANGUAGES.index, ("german", "dutch", "swedish", "danish", "norwegian", "finnish", "hungarian"))
)
"""Languages whose compounds are written as one word: their end says what a thing is."""
_PARTICIPLE: Final = "ge"
_WITH_PARTICIPLE: Final = frozenset(map(LANGUAGES.index, ("german", "dutch")))


class _Order(NamedTuple):
    """The terms in order, from their beginning and from their end, and how many of the vocabulary they were."""

    size: int = 0
    forward: tuple[str, ...] = ()
    backward: tuple[str, ...] = ()


class RelatedTerms:
    """The terms of a vocabulary by how they begin and how they end. It may grow; who takes a term out calls `clear`."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._order = _Order()

    def clear(self) -> None:
        """Forget the order of the terms."""
        self._order = _Order()

    def find(self, stem: str, language: int) -> dict[str, float]:
        """The terms that one can take for a form or a part of this one, or the other way round, and how well each fits.

        >>> RelatedTerms({"wohnungsschlussel": 1, "schlussel": 2, "haus": 3}).find("schlussel", 1)
        {'wohnungsschlussel': 0.37}
        """
        if not _MIN_CHARACTERS <= len(stem) <= _MAX_CHARACTERS or not stem.isalpha():
            return {}
        fits: dict[str, float] = {}
        bare = stem.removeprefix(_PARTICIPLE)
        other = bare if bare != stem else _PARTICIPLE + stem
        for each in (stem, other) if language in _WITH_PARTICIPLE else (stem,):
            for term in self._terms(each, language in _COMPOUNDING):
                share = min(len(term), len(each)) / max(len(term), len(each))
                if share >= _MIN_SHARE and term != stem:
                    fits[term] = max(round(_FIT * share, 2), fits.get(term, 0.0))
        return fits

    def _terms(self, stem: str, is_compounding: bool) -> Iterator[str]:
        order = self._update()
        lengths = range(_MIN_CHARACTERS, len(stem) + 1)
        yield from filter(self._vocabulary.__contains__, (stem[:length] for length in lengths))
        yield from _starting_with(stem, order.forward)
        if is_compounding:
            yield from filter(self._vocabulary.__contains__, (stem[-length:] for length in lengths))
            yield from (term[::-1] for term in _starting_with(stem[::-1], order.backward))

    def _update(self) -> _Order:
        size = len(self._vocabulary)
        if size > self._order.size:
            new = islice(self._vocabulary, self._order.size, None)
            words = [term for term in new if len(term) >= _MIN_CHARACTERS and term.isalpha()]
            forward = sorted((*self._order.forward, *words))
            backward = sorted((*self._order.backward, *(word[::-1] for word in words)))
            self._order = _Order(size, tuple(forward), tuple(backward))
        return self._order


def _starting_with(beginning: str, terms: tuple[str, ...]) -> Iterator[str]:
    start = bisect_left(terms, beginning)
    for term in islice(terms, start, start + _MAX_LONGER):
        if not term.startswith(beginning):
            return
        yield term
