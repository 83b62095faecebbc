"""Vectors of a model that another one of the package has replaced: which are made anew next, and when none is left."""

import logging
from collections.abc import Sequence
from typing import Final

from eunoe.embed.store_embedder import StoreEmbedder
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.store.contract import ItemQuery, Store, VectorModel, streams_of

_WRITE_SECONDS: Final = 1.0
"""How long the end of a model waits for others who write. It comes again with the next step."""
_BLOCK_RECORDS: Final = 256
"""The newest so many come first, the oldest of them before the others: rows that are written from the last to the first
leave the pages of the file half empty."""
_log = logging.getLogger("eunoe")


class OutdatedVectors:
    """What a store still has of replaced models. A vector stays until there is one of the store's own model."""

    def __init__(self, store: Store, embedder: StoreEmbedder) -> None:
        self._store = store
        self._embedder = embedder
        self._asked: Sequence[Scope] = ()
        self._block: Sequence[int] = ()
        """The numbers of the records that are next."""

    def prefer(self, scopes: Sequence[Scope]) -> None:
        """Have the records of these scopes come first: somebody asks them."""
        if scopes != self._asked:
            self._asked, self._block = scopes, ()

    def records(self, limit: int) -> list[Record]:
        """Records whose vectors are to be made anew: of scopes that were asked last, then of all, the newest first."""
        while self._embedder.replaced:
            name, block = self._embedder.replaced[0], self._block  # another thread may set it meanwhile
            with self._store.reading():
                model = self._store.model(name)
                records = self._select(model, block, limit) if model else []
                if model and not records:
                    self._block = block = self._next_block(model)
                    records = self._select(model, block, limit)
            if records:
                return records
            self._remove(name, block)
        return []

    def _select(self, model: VectorModel, block: Sequence[int], limit: int) -> list[Record]:
        """Those of a block that are still outdated."""
        return self._store.select(ItemQuery(seqs=block, with_vector=model.number, skip_damaged=True, limit=limit))

    def _next_block(self, model: VectorModel) -> list[int]:
        store = self._store
        query = ItemQuery(with_vector=model.number, order="newest", skip_damaged=True, limit=_BLOCK_RECORDS)
        for scope in self._asked:
            streams = [stream.id for stream in streams_of(store, scope)]
            if records := store.select(query._replace(streams=streams)):
                return [record.seq for record in records]
        return store.embedded(model.number, _BLOCK_RECORDS)

    def _remove(self, name: str, seqs: Sequence[int]) -> None:
        """Remove vectors whose records cannot be read. If none are left, there is nothing more to do."""
        with self._store.writing(_WRITE_SECONDS):
            self._delete(name, seqs)
        self._embedder.find_replaced()

    def delete(self, seqs: Sequence[int]) -> None:
        """Remove the outdated vectors of records, in the step that gives them others."""
        for name in self._embedder.replaced:
            self._delete(name, seqs)

    def _delete(self, name: str, seqs: Sequence[int]) -> None:
        """Remove vectors of a model, and with the last of them the model."""
        store, model = self._store, self._store.model(name)
        if model:
            store.delete_vectors(seqs, model.number)
            if not store.embedded(model.number, 1):
                store.drop_model(model.number)
                _log.info("%s: all vectors of %s are replaced by those of %s", store.target, name, self._embedder.name)
