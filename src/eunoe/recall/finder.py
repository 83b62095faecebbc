"""The way out: from a checked request to hits, in one consistent view of the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import InputError
from eunoe.index.shelf import Shelf
from eunoe.index.stream import StreamIndex
from eunoe.ledger.embedding import Embedding
from eunoe.ledger.rows import item_of
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.model.text import tokens
from eunoe.recall.query import Synonyms, without_names
from eunoe.recall.request import Request
from eunoe.recall.search import Found, search
from eunoe.store.contract import Store

_PAGE = 50


def find(store: Store, shelf: Shelf, embedding: Embedding, scopes: Sequence[Scope], request: Request) -> list[Hit]:
    """The hits for a request, best first. What is found and what is read back come from the same moment."""
    vector = _vector(shelf, embedding, scopes, request)
    with shelf.borrow(scopes) as held:
        indexes = [index for _, index in held]
        _check(request.vector, indexes)
        found = search(
            indexes,
            request.query,
            vector,
            recipe=request.recipe,
            filter=request.filter,
            now=request.now,
            limit=request.limit,
            synonyms=_synonyms(embedding),
        )
        hits = _hits(store, [scope for scope, _ in held], found)
        return list(hits) if request.tokens is None else list(_within(hits, request.tokens))


def _vector(
    shelf: Shelf, embedding: Embedding, scopes: Sequence[Scope], request: Request
) -> NDArray[np.float32] | None:
    """No index is held while an embedder thinks: it may be a slow one."""
    if request.vector is not None or request.recipe.method == "lexical":
        return request.vector
    with shelf.borrow(scopes) as held:
        asked = without_names(request.query, [index for _, index in held])
    return embedding.query(asked)


def _check(vector: NDArray[np.float32] | None, indexes: Sequence[StreamIndex]) -> None:
    """A vector that the caller made has to be of the length that the memories' have."""
    if vector is None:
        return
    for size in (index.dense.size for index in indexes):
        if size and size != len(vector):
            raise InputError(f"the vector has {len(vector)} dimensions; those of the memories have {size}")


def _synonyms(embedding: Embedding) -> Synonyms | None:
    embedder: Any = embedding.embedder
    return embedder if hasattr(embedder, "near") else None


def _hits(store: Store, scopes: Sequence[Scope], found: Sequence[Found]) -> Iterator[Hit]:
    for start in range(0, len(found), _PAGE):
        part = found[start : start + _PAGE]
        rows = {row.seq: row for row in store.by_seq([one.seq for one in part])}
        # An index may be newer than this snapshot: what is not in it yet is left to the next recall.
        for one in (one for one in part if one.seq in rows):
            row = rows[one.seq]
            yield Hit.late(row, one.score, partial(item_of, row, scopes[one.stream]), one.explain)


def _within(hits: Iterator[Hit], budget: int) -> Iterator[Hit]:
    """The best hits that fit; one that is too long makes room for the next."""
    for hit in hits:
        cost = tokens(hit.text)
        if cost <= budget:
            budget -= cost
            yield hit
        if budget < 1:
            return
