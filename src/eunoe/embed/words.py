"""Words near a word, by the vectors of single words: what lets "illness" find "shingles"."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors
from eunoe.text import analyzer

Near = tuple[tuple[str, float], ...]

DIMENSIONS: Final = 128
FLOOR: Final = 0.3
MOST: Final = 64
_REMEMBERED: Final = 20_000


class WordVectors:
    """Finds words of like meaning in a table of vectors, where each known word has a row.

    `vector` gives a word that has none a vector of its own.
    """

    def __init__(self, rows: Mapping[str, int], table: NDArray[Any], vector: Callable[[str], Vectors]) -> None:
        self._words = sorted(word for word in rows if _useful(word))
        self._vector = vector
        self._place = {word: place for place, word in enumerate(self._words)}
        self._table = _unit(table[:, :DIMENSIONS].take([rows[word] for word in self._words], axis=0))
        self._known: dict[str, Near] = {}
        self._lock = threading.Lock()

    def near(self, words: Sequence[str]) -> list[Near]:
        """For each folded word, others with how alike they are, above 0 and below 1, the best first."""
        found = {word: self._known.get(word) for word in words}
        missing = {word: self._best(word) for word, near in found.items() if near is None}
        if missing:
            self._remember(missing)
        return [found[word] or missing.get(word, ()) for word in words]

    def _best(self, word: str) -> Near:
        own = self._place.get(word)
        vector = _unit(self._vector(word)[:DIMENSIONS]) if own is None else self._table[own]
        # Not a matrix product: that may round differently from one shape to another, and starts threads.
        cosines = np.vecdot(self._table, vector)
        places = np.flatnonzero(cosines > FLOOR)
        places = places[np.argsort(-cosines[places], kind="stable")][:MOST]
        scaled = np.minimum((cosines[places] - FLOOR) / (1 - FLOOR), 0.99)
        pairs = zip(places.tolist(), scaled.tolist(), strict=True)
        return tuple((self._words[place], fit) for place, fit in pairs if place != own)

    def _remember(self, found: dict[str, Near]) -> None:
        with self._lock:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known.update(found)


def _useful(word: str) -> bool:
    return (
        len(word) > 2
        and word.isalpha()
        and word == analyzer.fold(word)
        and not analyzer.is_stop(word, analyzer.ENGLISH)
    )


def _unit(rows: NDArray[Any]) -> Vectors:
    wide: Vectors = rows.astype(np.float32)
    wide /= np.maximum(np.sqrt(np.vecdot(wide, wide)), 1e-9)[..., None]
    return wide
