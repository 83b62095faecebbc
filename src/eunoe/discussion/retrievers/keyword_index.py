"""An index in memory by which keywords find texts: the places of each term, ranked by BM25 with a weight per field."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import log1p
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.discussion.retrievers.keyword_terms import Forms, Phrase, parse_keyword, placed_terms
from eunoe.text.languages import ENGLISH, detect_language

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Fields = Sequence[Sequence[str]]
"""The texts of each field of a row."""

_SATURATION: Final = 1.2
"""k1 of BM25: how soon a word that is repeated counts no more."""
_LENGTH_SHARE: Final = 0.75
"""b of BM25: how much a long row counts less."""
_MAX_CACHED_ROWS: Final = 1 << 20
"""What the cache of an index may hold: about 16 MB."""
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


class KeywordIndex:
    """The places of all terms of some rows. A place that ends a text is left empty, so that no phrase goes past it."""

    def __init__(self, rows: Iterable[Fields]) -> None:
        builder = _Builder()
        for fields in rows:
            builder.add(fields)
        self.languages = frozenset(builder.languages)
        self.size = builder.rows
        self._row_of = np.array(builder.row_of, np.int32)
        self._field_of = np.array(builder.field_of, np.uint8)
        self._places = {term: np.array(places, np.int64) for term, places in builder.places.items()}
        self._lengths = np.bincount(self._row_of, minlength=self.size)
        self.length = len(self._row_of)
        self._impacts: dict[tuple[Phrase, tuple[float, ...], float], Impact] = {}
        self._cached_rows = 0

    def impact(self, phrase: Phrase, weights: tuple[float, ...], mean_length: float) -> Impact:
        """What a phrase counts in each row that has it."""
        key = phrase, weights, mean_length
        impact = self._impacts.get(key)
        if impact is None:
            impact = self._make_impact(*key)
            if self._cached_rows > _MAX_CACHED_ROWS:
                self._impacts.clear()
                self._cached_rows = 0
            self._impacts[key] = impact
            self._cached_rows += len(impact.rows) + 1
        return impact

    def _make_impact(self, phrase: Phrase, weights: tuple[float, ...], mean_length: float) -> Impact:
        places = self._phrase_places(phrase)
        counts = np.bincount(self._row_of[places], np.array(weights)[self._field_of[places]], minlength=self.size)
        rows = np.flatnonzero(counts)
        norms = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE / mean_length * self._lengths[rows])
        return Impact(*_best_first(rows, counts[rows] / (counts[rows] + norms)))

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
        known = [places for form in forms if (places := self._places.get(form)) is not None]
        if len(known) < 2:
            return known[0] if known else _NO_PLACES
        return np.unique(np.concatenate(known))


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
    languages = frozenset[int]().union(*(index.languages for index in indexes))
    starts = list(accumulate((index.size for index in indexes), initial=0))
    mean_length = max(1.0, sum(index.length for index in indexes) / max(1, starts[-1]))
    weighed = tuple(weights)
    rows: list[Ints] = []
    values: list[Floats] = []
    for part in (part for text in keywords for part in parse_keyword(text, languages)):
        impacts = [index.impact(part.phrase, weighed, mean_length) for index in indexes]
        factor = part.share * _rarity(sum(len(impact.rows) for impact in impacts), starts[-1])
        for start, impact in zip(starts, impacts, strict=False):
            rows.append(impact.rows + start if start else impact.rows)
            values.append(impact.values * factor)
    if len(rows) == 1 and factors is None:
        found, scores = rows[0], values[0]
    else:
        found, scores = _best_first(*_sum(rows, values, factors, starts[-1]))
    pairs = zip(found[:most].tolist(), scores[:most].tolist(), strict=True)
    return [_match(row, score, starts) for row, score in pairs]


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
