"""Vectors at rest: half-precision rows, several for a long text, kept per model, written in the same step as the items
they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from eunoe.model.scope import Scope
from eunoe.records.rows import passage, source_place, sources
from eunoe.store.contract import Row, Store, StreamRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors made ahead of a write, by the text they stand for."""

    model: str = ""
    """Empty if the store keeps no vectors."""
    dimensions: int = 0
    data: Mapping[str, bytes] = field(default_factory=dict)

    def of(self, row: Row) -> bytes | None:
        return self.data.get(passage(row))

    def whole(self, text: str) -> NDArray[np.float32] | None:
        """One vector for a text, which may be long: the mean of its parts. None where there is none at hand."""
        packed = self.data.get(text)
        if packed is None:
            return None
        import numpy as np

        parts = np.frombuffer(packed, "<f2").astype(np.float32).reshape(-1, self.dimensions)
        mean: NDArray[np.float32] = parts.mean(axis=0)
        return mean / np.float32(float(np.linalg.norm(mean)) or 1.0)


def write(store: Store, stream: StreamRow, rows: Sequence[Row], vectors: Vectors, messages: int = 0) -> list[Row]:
    """Inserts rows under the stream's next version, with those of their vectors that are there."""
    if not rows:
        return []
    if vectors.model and vectors.model != store.get_meta("model"):
        # Another process changed the store's model in the meantime: the vectors at hand would not fit the others.
        vectors = Vectors(store.get_meta("model") or "")
    known = store.find_model(vectors.model) if vectors.data else None
    if known and known[1] != vectors.dimensions:
        vectors = Vectors(vectors.model)
    version = store.advance(stream.id, messages).version
    first = store.reserve(len(rows))
    found = [vectors.of(row) for row in rows]
    lacks = [int(bool(vectors.model) and vector is None) for vector in found]
    placed = [Row._make((first + step, stream.id, version, lacks[step], *row[4:])) for step, row in enumerate(rows)]
    store.insert(placed)
    _link(store, stream, placed)
    if vectors.data:
        model = store.model(vectors.model, vectors.dimensions)
        made = zip(placed, found, strict=True)
        store.put_vectors(model, [(row.seq, vector) for row, vector in made if vector is not None])
    return placed


def _link(store: Store, stream: StreamRow, rows: Sequence[Row]) -> None:
    """Notes which other streams the rows rest on, so that forgetting there finds them."""
    owner = Scope.parse(stream.scope)
    named = {source_place(name, owner)[0] for row in rows if '"@' in row.source for name in sources(row)}
    for scope in named - {owner}:
        store.books.link(store.make_stream(str(scope)).id, stream.id)


def pack(matrix: NDArray[np.float32], sizes: Iterable[int]) -> list[bytes]:
    """Rows as they rest in the store: so many for each text, one after the other."""
    flat = matrix.astype("<f2")
    ends = list(accumulate(sizes))
    return [flat[start:end].tobytes() for start, end in zip([0, *ends], ends, strict=False)]
