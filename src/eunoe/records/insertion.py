"""Inserting records with their vectors: half-precision rows, several for a long text, kept per model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.model.atom import Record, source_place
from eunoe.store.contract import Reading, Writing
from eunoe.store.schema import StreamLink, StreamState

NO_MODEL: Final = "none"
"""The name of the model of a store that keeps no vectors."""

Floats = NDArray[np.float32]


VectorKey = str | tuple[bytes, str]
"""A text, or the identity and the text of one record: the same words may have vectors of their own."""


@dataclass(frozen=True, slots=True)
class VectorBatch:
    """Vectors made ahead of a write, by the text or the record they stand for."""

    model: str = ""
    """Empty if the store keeps no vectors."""
    dimensions: int = 0
    data: Mapping[VectorKey, bytes] = field(default_factory=dict)
    number: int = 0
    """The number of the model in the store, once it is known in the step at hand that the vectors fit it."""

    def has_own(self, record: Record) -> bool:
        """Whether a record has a vector of its own, not just that of its words."""
        return (record.identity, record.text) in self.data

    def of(self, record: Record) -> bytes | None:
        return self.data.get((record.identity, record.text)) or self.data.get(record.content)

    def mean(self, text: str) -> Floats | None:
        """One vector for a text, which may be long: the mean of its parts. None where there is none."""
        packed = self.data.get(text)
        if packed is None:
            return None
        parts = np.frombuffer(packed, "<f2").astype(np.float32).reshape(-1, self.dimensions)
        mean: Floats = parts.mean(axis=0)
        return mean / np.float32(float(np.linalg.norm(mean)) or 1.0)


def pack_vectors(matrix: Floats, sizes: Iterable[int]) -> list[bytes]:
    """Rows as the store keeps them: so many for each text, one after the other."""
    flat = matrix.astype("<f2")
    ends = list(accumulate(sizes))
    return [flat[start:end].tobytes() for start, end in zip([0, *ends], ends, strict=False)]


def insert_records(
    store: Writing, stream: StreamState, records: Sequence[Record], vectors: VectorBatch, positions: int = 0
) -> list[Record]:
    """Insert records under the stream's next version, with those of their vectors that are there."""
    if not records:
        return []
    vectors = vectors if vectors.number else fit_to_store(store, vectors)
    data = list(map(vectors.of, records)) if vectors.data else [None] * len(records)
    if vectors.model and None in data:
        pairs = zip(records, data, strict=True)
        records = [record if vector else record._replace(pending=True) for record, vector in pairs]
    inserted = store.insert(store.advance(stream.id, positions), records)
    if vectors.data:
        _put_vectors(store, vectors, zip(inserted, data, strict=True))
    return inserted


def rewrite_record(store: Writing, record: Record, vectors: VectorBatch) -> Record:
    """Write a record with other words under its number; its vectors are those of the words, if they are there."""
    vectors = vectors if vectors.number else fit_to_store(store, vectors)
    vector = vectors.of(record)
    record = record._replace(pending=bool(vectors.model) and vector is None)
    store.delete_vectors([record.seq])
    store.update([record])
    if vector is not None:
        _put_vectors(store, vectors, [(record, vector)])
    return record


def _put_vectors(store: Writing, vectors: VectorBatch, pairs: Iterable[tuple[Record, bytes | None]]) -> None:
    number = vectors.number or store.create_model(vectors.model, vectors.dimensions).number
    store.put_vectors(number, [(record.seq, vector) for record, vector in pairs if vector is not None])


def fit_to_store(store: Reading, vectors: VectorBatch) -> VectorBatch:
    """Take the vectors, in the step that writes them, if they are of the store's model; otherwise none, so that they
    are made later. Another process may have changed the model in the meantime, or have given the store its first."""
    name = store.get_value("model") or NO_MODEL
    if name == NO_MODEL:
        return VectorBatch()
    if name != vectors.model:
        return VectorBatch(name)
    known = store.model(name) if vectors.data else None
    if known is None:
        return vectors
    return replace(vectors, number=known.number) if known.dimensions == vectors.dimensions else VectorBatch(name)


def link_sources(store: Writing, stream: StreamState, records: Sequence[Record]) -> None:
    """Note which other streams the records rest on, so that forgetting there finds them."""
    names = {name for record in records for group in record.supports for name in group if name.startswith("@")}
    scopes = {source_place(name, stream.scope)[0] for name in names} - {stream.scope}
    if scopes:
        store.save([StreamLink(store.create_stream(scope).id, stream.id) for scope in scopes])
