"""Terms that begin or end alike: forms, derived words and compounds that no stemmer brings together."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from eunoe.text.languages import LANGUAGES

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
        for each in _with_participle(stem) if language in _WITH_PARTICIPLE else (stem,):
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


def _with_participle(stem: str) -> Iterable[str]:
    bare = stem.removeprefix(_PARTICIPLE)
    return (stem, bare if bare != stem else _PARTICIPLE + stem)


def _starting_with(beginning: str, terms: tuple[str, ...]) -> Iterator[str]:
    start = bisect_left(terms, beginning)
    for term in islice(terms, start, start + _MAX_LONGER):
        if not term.startswith(beginning):
            return
        yield term
