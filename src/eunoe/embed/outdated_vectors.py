"""Vectors of a model that another one of the package has replaced: which are made anew next, and when none is left."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from eunoe.embed.store_embedder import StoreEmbedder
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.store.contract import ItemQuery, Reading, Store, VectorModel, Writing, streams_of

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
            records, self._block = self._store.read((), partial(self._read, name, block, limit))
            if records:
                return records
            block = self._block
            self._remove(name, block)
        return []

    def _read(self, name: str, block: Sequence[int], limit: int, store: Reading) -> tuple[list[Record], Sequence[int]]:
        """Those of a block that are still outdated, or of the next one."""
        model = store.model(name)
        if model is None:
            return [], block
        query = ItemQuery(seqs=block, with_vector=model.number, skip_damaged=True, limit=limit)
        if records := store.select(query):
            return records, block
        block = self._next_block(store, model)
        return store.select(query._replace(seqs=block)), block

    def _next_block(self, store: Reading, model: VectorModel) -> list[int]:
        query = ItemQuery(with_vector=model.number, order="newest", skip_damaged=True, limit=_BLOCK_RECORDS)
        for scope in self._asked:
            streams = [stream.id for stream in streams_of(store, scope)]
            if records := store.select(query._replace(streams=streams)):
                return [record.seq for record in records]
        return store.embedded(model.number, _BLOCK_RECORDS)

    def _remove(self, name: str, seqs: Sequence[int]) -> None:
        """Remove vectors whose records cannot be read. If none are left, there is nothing more to do."""
        self._store.write((), lambda store: self._delete(store, name, seqs), timeout=_WRITE_SECONDS)
        self._embedder.find_replaced()

    def delete(self, store: Writing, seqs: Sequence[int]) -> None:
        """Remove the outdated vectors of records, in the step that gives them others."""
        for name in self._embedder.replaced:
            self._delete(store, name, seqs)

    def _delete(self, store: Writing, name: str, seqs: Sequence[int]) -> None:
        """Remove vectors of a model, and with the last of them the model."""
        model = store.model(name)
        if model:
            store.delete_vectors(seqs, model.number)
            if not store.embedded(model.number, 1):
                store.drop_model(model.number)
                _log.info(
                    "%s: all vectors of %s are replaced by those of %s", self._store.target, name, self._embedder.name
                )
