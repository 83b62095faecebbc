"""Vectors of a model that another one of the package has replaced: which are made anew next, and when none is left."""

import logging
from collections.abc import Sequence
from typing import Final

from eunoe.embed.store_embedder import StoreEmbedder
from eunoe.model.record import Record
from eunoe.model.scope import Scope
from eunoe.store.contract import Store, VectorModel
from eunoe.store.query import ItemQuery

_WRITE_SECONDS: Final = 1.0
"""How long the end of a model waits for others who write. It comes again with the next step."""
_QUERY: Final = ItemQuery(order="newest", skip_damaged=True)
_log = logging.getLogger("eunoe")


class OutdatedVectors:
    """What a store still has of replaced models. A vector stays until there is one of the store's own model."""

    def __init__(self, store: Store, embedder: StoreEmbedder) -> None:
        self._store = store
        self._embedder = embedder
        self._scopes: Sequence[Scope] = ()

    def prefer(self, scopes: Sequence[Scope]) -> None:
        """Have the records of these scopes come first: somebody asks them."""
        self._scopes = scopes

    def records(self, limit: int) -> list[Record]:
        """Records whose vectors are to be made anew, the newest first: of scopes that were asked last, then of all."""
        while self._embedder.replaced:
            name = self._embedder.replaced[0]
            with self._store.reading():
                model = self._store.model(name)
                seqs = self._store.embedded(model.number, limit) if model else []
                records = self._preferred(model, limit) if model and seqs else []
                records = records or self._store.select(_QUERY._replace(seqs=seqs))
            if records:
                return records
            self._remove(name, seqs)
        return []

    def _preferred(self, model: VectorModel, limit: int) -> list[Record]:
        store, query = self._store, _QUERY._replace(with_vector=model.number, limit=limit)
        for scope in self._scopes:
            stream = store.stream(scope)
            if stream and (records := store.select(query._replace(stream=stream.id))):
                return records
        self._scopes = ()
        return []

    def _remove(self, name: str, seqs: Sequence[int]) -> None:
        """Remove vectors whose records cannot be read, and the model with the last of them."""
        store = self._store
        with store.writing(_WRITE_SECONDS):
            model = store.model(name)
            if model:
                store.delete_vectors(seqs, model.number)
                if store.embedded(model.number, 1):
                    return
                store.drop_model(model.number)
        if model:
            _log.info("%s: no vectors of %s are left, all are by %s now", store.target, name, self._embedder.name)
        self._embedder.find_replaced()

    def delete(self, seqs: Sequence[int]) -> None:
        """Remove the outdated vectors of records, in the step that gives them others."""
        for name in self._embedder.replaced:
            if model := self._store.model(name):
                self._store.delete_vectors(seqs, model.number)
