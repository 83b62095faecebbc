"""Words near a word, by static vectors: what lets "illness" find "shingles"."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from eunoe.index import text

Floats = NDArray[np.float32]
Near = tuple[tuple[str, float], ...]

DIMENSIONS: Final = 128
FLOOR: Final = 0.3
MOST: Final = 64
_REMEMBERED = 20_000


class Synonyms(Protocol):
    """Finds words of like meaning."""

    def near(self, words: Sequence[str]) -> list[Near]:
        """For each folded word, others with how alike they are, above 0 and below 1, the best first."""


class WordVectors:
    """Synonyms out of a table of words and a function that gives any word its vector."""

    def __init__(self, words: Iterable[str], vector: Callable[[str], Floats]) -> None:
        self._words = sorted({word for word in words if _useful(word)})
        self._vector = vector
        rows = [vector(word)[:DIMENSIONS] for word in self._words]
        self._table = _unit(np.array(rows, np.float32).reshape(len(rows), -1))
        self._known: dict[str, Near] = {}
        self._lock = threading.Lock()

    def near(self, words: Sequence[str]) -> list[Near]:
        """For each folded word, others with how alike they are."""
        missing = [word for word in dict.fromkeys(words) if word not in self._known]
        found = {word: self._known.get(word, ()) for word in words}
        if missing and len(self._words):
            vectors = _unit(np.array([self._vector(word)[:DIMENSIONS] for word in missing], np.float32))
            cosines = vectors @ self._table.T
            found |= {word: self._best(word, row) for word, row in zip(missing, cosines, strict=True)}
            self._remember({word: found[word] for word in missing})
        return [found[word] for word in words]

    def _best(self, word: str, cosines: Floats) -> Near:
        places = np.flatnonzero(cosines > FLOOR)
        places = places[np.argsort(-cosines[places], kind="stable")][:MOST]
        scaled = (cosines[places] - FLOOR) / (1 - FLOOR)
        pairs = zip(places.tolist(), scaled.tolist(), strict=True)
        return tuple((self._words[place], min(fit, 0.99)) for place, fit in pairs if self._words[place] != word)

    def _remember(self, found: dict[str, Near]) -> None:
        with self._lock:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known.update(found)


def _useful(word: str) -> bool:
    return len(word) > 2 and word.isalpha() and word == text.fold(word) and not text.is_stop(word, text.ENGLISH)


def _unit(rows: Floats) -> Floats:
    norms = np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)
    return (rows / norms).astype(np.float32)
