"""The way out: from a checked request to hits, in one consistent view of the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from eunoe.embed.store_embedder import Asked, Embedding
from eunoe.errors import InputError
from eunoe.index.cache import Shelf
from eunoe.index.dense import Floats
from eunoe.index.stream import StreamIndex
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.recall.query import Synonyms, without_names
from eunoe.recall.ranking import Found, search
from eunoe.recall.request import Request
from eunoe.recall.reranking import Passage, Reread, passages
from eunoe.records.rows import item_of, source_place, sources
from eunoe.store.contract import Row, Store
from eunoe.text.normalize import tokens

_PAGE = 50
_SPARE = 10
"""Found beyond what is asked for, to take the place of what is folded or too new for this snapshot."""
_WORD = re.compile(r"\w+")


def find(
    store: Store,
    shelf: Shelf,
    embedding: Embedding,
    scopes: Sequence[Scope],
    request: Request,
    fold: bool = True,
    reread: Reread | None = None,
) -> list[Hit]:
    """The hits for a request, best first. What is found and what is read back come from the same moment.

    With `fold` a memory that only quotes a message which was found too gives its place to it. Without `reread` there is
    no second stage.
    """
    depth = request.recipe.reading.depth if reread and request.recipe.method == "blend" else 0
    asked = _asked(shelf, embedding, scopes, request)
    with shelf.borrow(scopes, graph=request.recipe.method == "associative") as held:
        scopes, indexes = [scope for scope, _ in held], [index for _, index in held]
        fold = fold and _may_quote(indexes)
        limit = max(depth, request.limit + _SPARE)
        model, vector = _vector(indexes, request, asked)
        found = search(
            indexes,
            request.query,
            vector,
            recipe=request.recipe,
            filter=request.filter,
            now=request.now,
            limit=limit,
            synonyms=_synonyms(embedding),
            model=model,
        )
        if not reread or not depth or not found:
            return _chosen(_hits(partial(_rows, store), scopes, found, fold), request)
        rows, found, opened = _opened(store, indexes, found, request, vector)
    # No index is held while it reads.
    found = reread(request.query, found, [each.text() for each in opened], request.recipe.reading)
    return _chosen(_hits(lambda _: rows, scopes, found, fold), request)


def _vector(indexes: Sequence[StreamIndex], request: Request, asked: Asked | None) -> tuple[str, Floats | None]:
    """The model of the memories' vectors, and what the question is by it."""
    _check(request.vector, indexes)
    models = {index.model for index in indexes if index.rows}
    model = models.pop() if len(models) == 1 else ""
    if request.vector is not None:
        return model, request.vector
    # The model may have changed since the question was read: then words alone decide, this once.
    return model, asked.vector if asked and asked.model == model else None


def _opened(
    store: Store, indexes: Sequence[StreamIndex], found: Sequence[Found], request: Request, vector: Floats | None
) -> tuple[dict[int, Row], list[Found], list[Passage]]:
    """The rows of what was found, what of it is there, and what is to be read of the first ones."""
    rows = _rows(store, [one.seq for one in found])
    there = [one for one in found if one.seq in rows]
    first = there[: request.recipe.reading.depth]
    return rows, there, passages(store, indexes, first, rows, request.filter, request.now, vector)


def _rows(store: Store, seqs: Sequence[int]) -> dict[int, Row]:
    return {row.seq: row for row in store.by_seq(seqs)}


def _chosen(hits: Iterator[Hit], request: Request) -> list[Hit]:
    hits = islice(hits, request.limit)
    return list(hits) if request.tokens is None else list(_within(hits, request.tokens))


def _may_quote(indexes: Sequence[StreamIndex]) -> bool:
    """Whether there are messages and memories that could quote them."""
    kinds = {kind for index in indexes for kind in index.kind.known}
    return "message" in kinds and len(kinds) > 1


def _asked(shelf: Shelf, embedding: Embedding, scopes: Sequence[Scope], request: Request) -> Asked | None:
    """No index is held while an embedder thinks: it may be a slow one."""
    if request.recipe.method == "lexical":
        return None
    embedding.complete(scopes)
    if request.vector is not None:
        return None
    with shelf.borrow(scopes) as held:
        question = without_names(request.query, [index for _, index in held])
    return embedding.query(question)


def _check(vector: Floats | None, indexes: Sequence[StreamIndex]) -> None:
    """A vector that the caller made has to be of the length that the memories' have."""
    if vector is None:
        return
    for size in (index.dense.size for index in indexes):
        if size and size != len(vector):
            raise InputError(f"the vector has {len(vector)} dimensions; those of the memories have {size}")


def _synonyms(embedding: Embedding) -> Synonyms | None:
    embedder: Any = embedding.embedder
    return embedder if hasattr(embedder, "near") else None


def _hits(
    read: Callable[[list[int]], Mapping[int, Row]], scopes: Sequence[Scope], found: Sequence[Found], fold: bool
) -> Iterator[Hit]:
    for start in range(0, len(found), _PAGE):
        part = found[start : start + _PAGE]
        rows = read([one.seq for one in part])
        # An index may be newer than this snapshot: what is not in it yet is left to the next recall.
        there = [(one, rows[one.seq], scopes[one.stream]) for one in part if one.seq in rows]
        for one, row, owner in _folded(there) if fold else there:
            yield Hit.late(row, one.score, partial(item_of, row, owner), one.explain)


def _folded(found: Sequence[tuple[Found, Row, Scope]]) -> Iterable[tuple[Found, Row, Scope]]:
    """What each thing found is told by, once."""
    said = {(owner, row.id): row for _, row, owner in found if row.kind == "message"}
    if not said:
        return found
    told: dict[int, tuple[Found, Row, Scope]] = {}
    for one, row, owner in found:
        shown, place = _quoted(row, owner, said) if row.source else (row, owner)
        told.setdefault(shown.seq, (one, shown, place))
    return told.values()


def _quoted(row: Row, owner: Scope, said: Mapping[tuple[Scope, str], Row]) -> tuple[Row, Scope]:
    """The message whose words a memory repeats and whose it is, or else the memory."""
    for place in (source_place(name, owner) for name in sources(row)):
        message = said.get(place)
        if message and _words(row.text) <= _words(f"{message.speaker} {message.text}"):
            return message, place[0]
    return row, owner


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _within(hits: Iterator[Hit], budget: int) -> Iterator[Hit]:
    """The best hits that fit; one that is too long makes room for the next."""
    for hit in hits:
        cost = tokens(hit.text)
        if cost <= budget:
            budget -= cost
            yield hit
        if budget < 1:
            return
