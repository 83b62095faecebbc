"""An index in memory by which keywords find texts: the places of each term, ranked by BM25 with a weight per field."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from math import log1p
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.apps.discussion.retrievers.keyword_terms import Forms, KeywordPart, Phrase, parse_keyword, placed_terms
from eunoe.text.languages import ENGLISH, detect_language

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Fields = Sequence[Sequence[str]]
"""The texts of each field of a row."""

_SATURATION: Final = 1.2
"""k1 of BM25: how soon a word that is repeated counts no more."""
_LENGTH_SHARE: Final = 0.75
"""b of BM25: how much a long row counts less."""
_MAX_CACHED_PHRASES: Final = 1 << 10
_MAX_CACHED_WEIGHTS: Final = 4
_NO_PLACES: Final = np.zeros(0, np.int64)


class Match(NamedTuple):
    """A row that was found."""

    number: int
    """Of its index."""
    row: int
    score: float


class Impact(NamedTuple):
    """The rows that have a phrase, the best first, and what it counts in each before its rarity is known."""

    rows: Ints
    values: Floats


_NO_IMPACT: Final = Impact(_NO_PLACES, np.zeros(0))


class _WordImpacts(NamedTuple):
    """The impacts of all terms, one after the other."""

    starts: Sequence[int]
    rows: Ints
    values: Floats

    def of(self, number: int) -> Impact:
        span = slice(self.starts[number], self.starts[number + 1])
        return Impact(self.rows[span], self.values[span])


class KeywordIndex:
    """The places of all terms of some rows. A place that ends a text is left empty, so that no phrase goes past it.

    `usual_length` is how long a row is on average; that of another index lets both be ranked as one.
    """

    def __init__(self, rows: Iterable[Fields], usual_length: float = 0.0) -> None:
        builder = _Builder()
        for fields in rows:
            builder.add(fields)
        self.languages = frozenset(builder.languages)
        self.size = builder.rows
        self._row_of = np.array(builder.row_of, np.int64)
        self._field_of = np.array(builder.field_of, np.uint8)
        self._terms = {term: number for number, term in enumerate(builder.places)}
        self._places = np.fromiter(chain.from_iterable(builder.places.values()), np.int64)
        self._starts = list(accumulate(map(len, builder.places.values()), initial=0))
        lengths = np.bincount(self._row_of, minlength=self.size)
        self.usual_length = usual_length or len(self._row_of) / max(1, self.size)
        shares = lengths / max(1.0, self.usual_length)
        self._norms = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * shares)
        self._words: dict[tuple[float, ...], _WordImpacts] = {}
        self._phrases: dict[tuple[Phrase, tuple[float, ...]], Impact] = {}

    def impact(self, phrase: Phrase, weights: tuple[float, ...]) -> Impact:
        """What a phrase, or a word, counts in each row that has it."""
        if len(phrase) == 1 and len(numbers := self._numbers(phrase[0][1])) < 2:
            return self._word_impacts(weights).of(numbers[0]) if numbers else _NO_IMPACT
        key = phrase, weights
        impact = self._phrases.get(key)
        if impact is None:
            if len(self._phrases) >= _MAX_CACHED_PHRASES:
                self._phrases.clear()
            impact = self._phrases[key] = self._phrase_impact(*key)
        return impact

    def _word_impacts(self, weights: tuple[float, ...]) -> _WordImpacts:
        words = self._words.get(weights)
        if words is None:
            if len(self._words) >= _MAX_CACHED_WEIGHTS:
                self._words.clear()
            words = self._words[weights] = self._make_word_impacts(weights)
        return words

    def _make_word_impacts(self, weights: tuple[float, ...]) -> _WordImpacts:
        """All words at once: places are in the order of terms, and those of a term in the order of rows."""
        terms = np.repeat(np.arange(len(self._terms)), np.diff(self._starts))
        cells = terms * self.size + self._row_of[self._places]
        firsts = np.flatnonzero(np.diff(cells, prepend=-1))
        counts = (
            np.add.reduceat(np.array(weights)[self._field_of[self._places]], firsts) if len(firsts) else np.zeros(0)
        )
        cells, counts = cells[firsts][counts > 0], counts[counts > 0]
        terms, rows = np.divmod(cells, max(1, self.size))
        values = counts / (counts + self._norms[rows])
        order = np.lexsort((-rows, -values, terms))
        starts = np.searchsorted(terms, np.arange(len(self._terms) + 1)).tolist()
        return _WordImpacts(starts, rows[order], values[order])

    def _phrase_impact(self, phrase: Phrase, weights: tuple[float, ...]) -> Impact:
        places = self._phrase_places(phrase)
        counts = np.bincount(self._row_of[places], np.array(weights)[self._field_of[places]], minlength=self.size)
        rows = np.flatnonzero(counts)
        return Impact(*_best_first(rows, counts[rows] / (counts[rows] + self._norms[rows])))

    def _phrase_places(self, phrase: Phrase) -> Ints:
        """Where all words of a phrase stand in order: the places of its beginning."""
        starts = _NO_PLACES
        for number, (offset, forms) in enumerate(phrase):
            places = self._word_places(forms)
            starts = _common(starts, places - offset) if number else places
            if not len(starts):
                break
        return starts

    def _word_places(self, forms: Forms) -> Ints:
        known = [self._places[self._starts[number] : self._starts[number + 1]] for number in self._numbers(forms)]
        if len(known) < 2:
            return known[0] if known else _NO_PLACES
        return np.unique(np.concatenate(known))

    def _numbers(self, forms: Forms) -> list[int]:
        """The numbers of those forms that are terms here."""
        return [number for form in forms if (number := self._terms.get(form)) is not None]


class _Builder:
    def __init__(self) -> None:
        self.rows = 0
        self.languages = {ENGLISH}
        self.row_of: list[int] = []
        self.field_of: list[int] = []
        self.places: dict[str, list[int]] = {}

    def add(self, fields: Fields) -> None:
        language = detect_language(" ".join(text for texts in fields for text in texts))
        self.languages.add(language)
        for field, texts in enumerate(fields):
            for text in texts:
                self._add_text(text, field, language)
        self.rows += 1

    def _add_text(self, text: str, field: int, language: int) -> None:
        start = place = len(self.row_of)
        for token in text.split():
            terms, width = placed_terms(token, language)
            for offset, term in terms:
                self.places.setdefault(term, []).append(place + offset)
            place += width
        width = place + 1 - start
        self.row_of += [self.rows] * width
        self.field_of += [field] * width


def find_matches(
    indexes: Sequence[KeywordIndex],
    keywords: Iterable[str],
    weights: Sequence[float],
    most: int,
    factors: Floats | None = None,
) -> list[Match]:
    """The rows of several indexes, ranked as one, that have any of the keywords; best first, of equals the later one.

    `factors` are what the scores of all rows are multiplied with.

    >>> index = KeywordIndex([[["Rome in May"]], [["May in Rome"]], [["Oslo"]]])
    >>> [match.row for match in find_matches([index], ["May in Rome"], [1.0], most=5)]
    [1, 0]
    """
    weighed = tuple(weights)
    languages = _languages(indexes)
    parts = [part for text in keywords for part in parse_keyword(text, languages)]
    if len(parts) == len(indexes) == 1 and factors is None:
        return _find_part(indexes[0], parts[0], weighed, most)
    starts = list(accumulate((index.size for index in indexes), initial=0))
    rows: list[Ints] = []
    values: list[Floats] = []
    for part in parts:
        impacts = [index.impact(part.phrase, weighed) for index in indexes]
        factor = part.share * _rarity(sum(len(impact.rows) for impact in impacts), starts[-1])
        for start, impact in zip(starts, impacts, strict=False):
            rows.append(impact.rows + start if start else impact.rows)
            values.append(impact.values * factor)
    found, scores = _best_first(*_sum(rows, values, factors, starts[-1]))
    pairs = zip(found[:most].tolist(), scores[:most].tolist(), strict=True)
    return [_match(row, score, starts) for row, score in pairs]


def _languages(indexes: Sequence[KeywordIndex]) -> frozenset[int]:
    if len(indexes) == 1:
        return indexes[0].languages
    return frozenset[int]().union(*(index.languages for index in indexes))


def _find_part(index: KeywordIndex, part: KeywordPart, weights: tuple[float, ...], most: int) -> list[Match]:
    """The rows that have one phrase or word: they are ranked already."""
    rows, values = index.impact(part.phrase, weights)
    factor = part.share * _rarity(len(rows), index.size)
    pairs = zip(rows[:most].tolist(), values[:most].tolist(), strict=True)
    return [Match(0, row, value * factor) for row, value in pairs]


def _rarity(holding: int, size: int) -> float:
    return (_SATURATION + 1) * log1p((size - holding + 0.5) / (holding + 0.5))


def _sum(rows: Sequence[Ints], values: Sequence[Floats], factors: Floats | None, size: int) -> tuple[Ints, Floats]:
    """Rows, each once, and the sums of their values, times their factors."""
    if not rows:
        return _NO_PLACES, np.zeros(0)
    sums = np.bincount(np.concatenate(rows), np.concatenate(values), minlength=size)
    if factors is not None:
        sums *= factors
    found = np.flatnonzero(sums)
    return found, sums[found]


def _best_first(rows: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Rows by their scores; of equals the later one first."""
    order = np.lexsort((rows, scores))[::-1]
    return rows[order], scores[order]


def _match(row: int, score: float, starts: Sequence[int]) -> Match:
    number = bisect_right(starts, row) - 1
    return Match(number, row - starts[number], score)


def _common(first: Ints, second: Ints) -> Ints:
    """What two sorted arrays share."""
    if not len(second):
        return _NO_PLACES
    where = np.minimum(second.searchsorted(first), len(second) - 1)
    common: Ints = first[second[where] == first]
    return common
