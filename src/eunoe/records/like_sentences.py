"""Which corrected sentence another one is like: by where a model puts both, or by the words that they share."""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.model.scope import Scope
from eunoe.records.corrections import CorrectedSentence, find_sentences, find_state
from eunoe.store.contract import Store

MIN_LIKENESS: Final = 0.75
"""From here on sentences are alike: of labelled turns that are so close, 94 in 100 are both kept or both dropped."""
_READ_CHARACTERS: Final = 2000
"""More of a sentence is not compared."""
_MAX_STREAMS: Final = 256
"""Whose corrections are held in memory: those that were used last."""
_WORD: Final = re.compile(r"\w+")


class Place(NamedTuple):
    """Where a model puts a sentence: numbers whose squares add up to 1."""

    model: str
    row: NDArray[Any]


class Match(NamedTuple):
    """How like a corrected sentence another one is, from 0 to 1."""

    likeness: float
    sentence: CorrectedSentence


class LikeSentences:
    """Corrected sentences of one stream, the latest first, ready to be compared with others."""

    def __init__(self, sentences: Sequence[CorrectedSentence]) -> None:
        self._sentences = sentences
        self._words = [_read_words(each.text) for each in sentences]
        self._model = sentences[0].model
        size = len(sentences[0].place)
        is_placed = [size > 0 and (each.model, len(each.place)) == (self._model, size) for each in sentences]
        rows = b"".join(each.place for each, is_own in zip(sentences, is_placed, strict=True) if is_own)
        self._places = np.frombuffer(rows, "<f2").reshape(sum(is_placed), -1 if rows else 0).astype(np.float32)
        self._placed, self._others = np.flatnonzero(is_placed), np.flatnonzero(np.logical_not(is_placed))

    def find(self, text: str, place: Place | None) -> Match:
        """The nearest; of two that are equally near the later one."""
        words, scores, others = _read_words(text), np.zeros(len(self._words)), self._others
        if place and place.model == self._model and len(place.row) == self._places.shape[1]:
            scores[self._placed] = self._places @ place.row
        else:
            others = np.arange(len(scores))
        for number in others:
            own = self._words[number]
            scores[number] = len(words & own) / (len(words | own) or 1)
        best = self._words.index(words) if words in self._words else int(scores.argmax())
        return Match(1.0 if words == self._words[best] else float(scores[best]), self._sentences[best])


def find_match(known: Iterable[LikeSentences], text: str, place: Place | None) -> Match | None:
    """The nearest corrected sentence of several streams, if it is near enough."""
    best = max((each.find(text, place) for each in known), key=lambda match: match.likeness)
    return best if best.likeness >= MIN_LIKENESS else None


class CorrectionReader:
    """Reads what was corrected in streams, and holds it as long as it stays the same. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: OrderedDict[Scope, tuple[object, LikeSentences]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, scopes: Iterable[Scope]) -> Mapping[Scope, LikeSentences]:
        """What was corrected in these streams; those without corrections are left out."""
        with self._store.reading():
            found = {scope: self._read_one(scope) for scope in dict.fromkeys(scopes)}
        return {scope: sentences for scope, sentences in found.items() if sentences}

    def clear(self) -> None:
        """Drop what is held: it may have been forgotten."""
        with self._lock:
            self._held = OrderedDict()

    def _read_one(self, scope: Scope) -> LikeSentences | None:
        state, held = find_state(self._store, scope), self._held
        if state is None:
            return None
        known = held.get(scope)
        if known and known[0] == state:
            return known[1]
        sentences = LikeSentences(find_sentences(self._store, scope))
        with self._lock:
            held[scope] = state, sentences
            if len(held) > _MAX_STREAMS:
                held.popitem(last=False)
        return sentences


def _read_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text[:_READ_CHARACTERS].lower().replace("’", "'")))
