"""An index in memory by which keywords find texts: the places of each term, ranked by BM25 with a weight per field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.discussion.retrievers.keyword_terms import Forms, Keyword, PlacedForms, parse_keyword, placed_terms
from eunoe.text.languages import ENGLISH, detect_language

Places = NDArray[np.int64]
Floats = NDArray[np.float64]
Fields = Sequence[Sequence[str]]
"""The texts of each field of a row."""

_SATURATION: Final = 1.2
"""k1 of BM25: how soon a word that is repeated counts no more."""
_LENGTH_SHARE: Final = 0.75
"""b of BM25: how much a long row counts less."""
_WORDS_SHARE: Final = 0.5
"""What all words of a keyword count together beside the keyword as a phrase."""
_MAX_CELLS: Final = 1 << 22
"""So many counts, of words by rows, are made at a time."""
_USUAL_WORDS: Final = 4
_NO_PLACES: Final = np.zeros(0, np.int64)


class Match(NamedTuple):
    """A row that was found."""

    number: int
    """Of its index."""
    row: int
    score: float


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
        self._terms = {term: np.array(places, np.int64) for term, places in builder.places.items()}
        self.lengths: Floats = np.bincount(self._row_of, minlength=self.size).astype(np.float64)
        self.length = float(self.lengths.sum())

    def places(self, forms: Forms) -> Places:
        """Where a word stands."""
        known = [places for form in forms if (places := self._terms.get(form)) is not None]
        if len(known) < 2:
            return known[0] if known else _NO_PLACES
        return np.unique(np.concatenate(known))

    def phrase_places(self, phrase: Sequence[PlacedForms]) -> Places:
        """Where all words of a phrase stand in order: the places of its beginning."""
        starts = _NO_PLACES
        for number, (offset, forms) in enumerate(phrase):
            places = self.places(forms)
            starts = _common(starts, places - offset) if number else places
            if not len(starts):
                break
        return starts

    def frequencies(self, places: Sequence[Places], weights: Floats) -> Floats:
        """How often each row has something at places, by the weights of their fields: an array of places by rows."""
        joined = np.concatenate(places)
        cells = np.repeat(np.arange(len(places)) * self.size, list(map(len, places))) + self._row_of[joined]
        counts = np.bincount(cells, weights[self._field_of[joined]], minlength=len(places) * self.size)
        return counts.reshape(len(places), self.size)


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
    indexes: Sequence[KeywordIndex], keywords: Iterable[str], weights: Sequence[float], most: int
) -> list[Match]:
    """The rows of several indexes, ranked as one, that have most of the keywords; best first, of equals the later one.

    >>> index = KeywordIndex([[["Rome in May"]], [["May in Rome"]], [["Oslo"]]])
    >>> [match.row for match in find_matches([index], ["May in Rome"], [1.0], most=5)]
    [1, 0]
    """
    languages = frozenset[int]().union(*(index.languages for index in indexes))
    parsed = [parse_keyword(text, languages) for text in keywords]
    size = max(1, sum(index.size for index in indexes))
    batch = max(1, _MAX_CELLS // (_USUAL_WORDS * size))
    scores = [np.zeros(index.size) for index in indexes]
    for start in range(0, len(parsed), batch):
        part = parsed[start : start + batch]
        counts = [_count(index, part, np.asarray(weights, np.float64)) for index in indexes]
        shares = [share for keyword in part for share in _shares(keyword)]
        for total, score in zip(scores, _scores(indexes, counts, np.array(shares)), strict=True):
            total += score
    return _best(scores, most) if scores else []


def _shares(keyword: Keyword) -> list[float]:
    """What the phrase and each word of a keyword count."""
    return [1.0, *(_WORDS_SHARE / len(keyword.words) for _ in keyword.words)]


def _count(index: KeywordIndex, keywords: Iterable[Keyword], weights: Floats) -> Floats:
    places: list[Places] = []
    for keyword in keywords:
        places += [index.phrase_places(keyword.phrase), *map(index.places, keyword.words)]
    return index.frequencies(places, weights)


def _scores(indexes: Sequence[KeywordIndex], counts: Sequence[Floats], shares: Floats) -> list[Floats]:
    """BM25 of each row. A word is as rare as it is in all indexes together."""
    size = sum(index.size for index in indexes)
    holding = sum(np.count_nonzero(count, axis=1) for count in counts)
    rarity = np.log1p((size - holding + 0.5) / (holding + 0.5))
    mean_length = max(1.0, sum(index.length for index in indexes) / max(1, size))
    factors = shares * rarity * (_SATURATION + 1)
    scores = []
    for index, count in zip(indexes, counts, strict=True):
        norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE / mean_length * index.lengths)
        scores.append(factors @ (count / (count + norm)))
    return scores


def _best(scores: Sequence[Floats], most: int) -> list[Match]:
    joined = np.concatenate(scores)
    rows = np.flatnonzero(joined)
    best = rows[np.lexsort((-rows, -joined[rows]))[:most]]
    starts = np.cumsum([0, *map(len, scores)])
    numbers = starts.searchsorted(best, side="right") - 1
    return list(map(Match, numbers.tolist(), (best - starts[numbers]).tolist(), joined[best].tolist()))


def _common(first: Places, second: Places) -> Places:
    """What two sorted arrays share."""
    if not len(second):
        return _NO_PLACES
    where = np.minimum(second.searchsorted(first), len(second) - 1)
    common: Places = first[second[where] == first]
    return common
