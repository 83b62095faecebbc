"""Corrections at rest: each is an archived atom of the stream it counts in, and so is forgotten, exported and checked
like any other. It rests on what was corrected."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from eunoe.errors import NotFoundError
from eunoe.model.arguments import VERDICTS, Verdict, show
from eunoe.model.atom import CORRECTION, Correction, Record, Support
from eunoe.model.scope import Scope
from eunoe.records.fingerprints import atom_identity
from eunoe.records.ids import new_ids
from eunoe.records.insertion import VectorBatch, insert_records, link_sources
from eunoe.records.scrubbing import mark_scrub_due
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamState
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
    store: Store,
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
    with store.reading():
        stream = store.stream(scope)
        records = _find_records(store, stream) if stream else []
    return [as_correction(record, scope) for record in records]


def remove_correction(store: Store, scope: Scope, id: str) -> None:
    """Let a correction count no more. What it changed at once stays."""
    with store.writing():
        stream = store.stream(scope)
        found = [record for record in (_find_records(store, stream) if stream else ()) if record.id == id]
        if not stream or not found:
            raise NotFoundError(f"there is no correction {show(id)} in this scope")
        _delete(store, stream, found)


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


def find_state(store: Store, scope: Scope) -> tuple[int, int, int] | None:
    """What changes whenever a correction of a scope comes or goes; None if there are none."""
    stream = store.stream(scope)
    query = ItemQuery(stream.id if stream else 0, labels=(CORRECTION,), archived=True, order="newest", limit=1)
    newest = [record for record in store.select(query) if _is_correction(record)] if stream else []
    return (newest[0].stream, newest[0].seq, store.count(query)) if newest else None


def find_sentences(store: Store, scope: Scope) -> list[CorrectedSentence]:
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


def _find_records(store: Store, stream: StreamState) -> list[Record]:
    query = ItemQuery(stream.id, labels=(CORRECTION,), archived=True, order="newest", limit=_MAX_READ)
    return [record for record in store.select(query) if _is_correction(record)]


def _is_correction(record: Record) -> bool:
    kept = record.metadata.get(CORRECTION)
    return isinstance(kept, dict) and kept.get("verdict") in VERDICTS


def _delete(store: Store, stream: StreamState, records: Sequence[Record]) -> None:
    version = store.advance(stream.id).version
    mark_scrub_due(store, stream, version)
    store.delete(stream.id, [record.seq for record in records], version)
