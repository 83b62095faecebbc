"""Corrections at rest: each is an archived atom of the stream it counts in, and so is forgotten, exported and checked
like any other. It rests on what was corrected."""

import binascii
import re
import threading
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import NotFoundError
from eunoe.model.arguments import VERDICTS, Verdict, show
from eunoe.model.atom import CORRECTION, Correction, Record, Support
from eunoe.model.scope import Scope
from eunoe.records.identity import atom_identity, new_ids
from eunoe.records.insertion import VectorBatch, insert_records, link_sources
from eunoe.records.scrubbing import mark_scrub_due
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import StreamState
from eunoe.text.normalize import normalize

_MAX_READ: Final = 500
"""Corrections of one stream that are compared with what is said, the latest."""


class CorrectedSentence(NamedTuple):
    """A sentence that a correction is about."""

    text: str
    verdict: Verdict
    model: str = ""
    """The model that made its place; empty without one."""
    place: bytes = b""
    """Where the kind model puts it, as half floats."""


def save_correction(
    store: Writing,
    stream: StreamState,
    sentences: Sequence[CorrectedSentence],
    supports: Sequence[Support],
    moment: datetime,
) -> Record:
    """Keep a correction, in the place of an earlier one of the same words."""
    text = "\n".join(sentence.text for sentence in sentences)
    earlier = [each for each in _find_records(store, stream) if normalize(each.text) == normalize(text)]
    if earlier:
        _delete(store, stream, earlier)
    kept: dict[str, Any] = {
        "verdict": sentences[0].verdict,
        "model": sentences[0].model,
        "places": [b64encode(sentence.place).decode() for sentence in sentences],
    }
    record = Record(
        kind="fact",
        id=new_ids(1)[0],
        identity=atom_identity("fact", text),
        text=text,
        recorded=moment,
        retired=moment,
        label=CORRECTION,
        supports=tuple(supports),
        metadata={CORRECTION: kept},
    )
    link_sources(store, stream, [record])
    return insert_records(store, stream, [record], VectorBatch())[0]


def list_corrections(store: Store, scope: Scope) -> list[Correction]:
    """The corrections that are kept in a scope, latest first."""

    def find(store: Reading) -> list[Correction]:
        stream = store.stream(scope)
        records = _find_records(store, stream) if stream else []
        return [as_correction(record, scope) for record in records]

    return store.read([scope], find)


def remove_correction(store: Store, scope: Scope, id: str) -> None:
    """Let a correction count no more. What it changed at once stays."""

    def remove(store: Writing) -> None:
        stream = store.stream(scope)
        found = [record for record in (_find_records(store, stream) if stream else ()) if record.id == id]
        if not stream or not found:
            raise NotFoundError(f"there is no correction {show(id)} in this scope")
        _delete(store, stream, found)

    store.write([scope], remove)


def as_correction(record: Record, scope: Scope, changed: Iterable[str] = ()) -> Correction:
    return Correction(
        id=record.id,
        verdict=record.metadata[CORRECTION]["verdict"],
        sentences=tuple(record.text.splitlines()),
        source=record.sources,
        scope=scope,
        recorded=record.recorded,
        changed=tuple(changed),
    )


def find_state(store: Reading, scope: Scope) -> tuple[int, int, int] | None:
    """What changes whenever a correction of a scope comes or goes; None if there are none."""
    stream = store.stream(scope)
    query = ItemQuery(stream.id if stream else 0, labels=(CORRECTION,), archived=True, order="newest", limit=1)
    newest = [record for record in store.select(query) if _is_correction(record)] if stream else []
    return (newest[0].stream, newest[0].seq, store.count(query)) if newest else None


def find_sentences(store: Reading, scope: Scope) -> list[CorrectedSentence]:
    """The sentences that corrections of a scope are about, the latest first."""
    stream = store.stream(scope)
    records = _find_records(store, stream) if stream else []
    return [sentence for record in records for sentence in _read_record(record)]


def _read_record(record: Record) -> Iterable[CorrectedSentence]:
    kept, texts = record.metadata[CORRECTION], record.text.splitlines()
    places = kept.get("places")
    places = places if isinstance(places, list) and len(places) == len(texts) else [""] * len(texts)
    for text, place in zip(texts, places, strict=True):
        yield CorrectedSentence(text, kept["verdict"], str(kept.get("model", "")), _decode(place))


def _decode(place: object) -> bytes:
    try:
        return b64decode(str(place), validate=True)
    except (binascii.Error, ValueError):  # an import may bring anything
        return b""


def _find_records(store: Reading, stream: StreamState) -> list[Record]:
    query = ItemQuery(stream.id, labels=(CORRECTION,), archived=True, order="newest", limit=_MAX_READ)
    return [record for record in store.select(query) if _is_correction(record)]


def _is_correction(record: Record) -> bool:
    kept = record.metadata.get(CORRECTION)
    return isinstance(kept, dict) and kept.get("verdict") in VERDICTS


def _delete(store: Writing, stream: StreamState, records: Sequence[Record]) -> None:
    version = store.advance(stream.id).version
    mark_scrub_due(store, stream, version)
    store.delete(stream.id, [record.seq for record in records], version)


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

    def __init__(self) -> None:
        self._held: OrderedDict[Scope, tuple[object, LikeSentences]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, store: Reading, scopes: Iterable[Scope]) -> Mapping[Scope, LikeSentences]:
        """What was corrected in these streams; those without corrections are left out."""
        found = {scope: self._read_one(store, scope) for scope in dict.fromkeys(scopes)}
        return {scope: sentences for scope, sentences in found.items() if sentences}

    def clear(self) -> None:
        """Drop what is held: it may have been forgotten."""
        with self._lock:
            self._held = OrderedDict()

    def _read_one(self, store: Reading, scope: Scope) -> LikeSentences | None:
        state, held = find_state(store, scope), self._held
        if state is None:
            return None
        known = held.get(scope)
        if known and known[0] == state:
            return known[1]
        sentences = LikeSentences(find_sentences(store, scope))
        with self._lock:
            held[scope] = state, sentences
            if len(held) > _MAX_STREAMS:
                held.popitem(last=False)
        return sentences


def _read_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text[:_READ_CHARACTERS].lower().replace("’", "'")))
