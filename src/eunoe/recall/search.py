"""The way out: from a checked request to hits, in one consistent view of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from eunoe.embed.pending import PendingVectors
from eunoe.embed.store_embedder import QuestionVector, StoreEmbedder
from eunoe.errors import EunoeError, InputError
from eunoe.index.cache import IndexCache
from eunoe.index.dense import Floats
from eunoe.index.stream import StreamIndex
from eunoe.model.hit import Hit
from eunoe.model.record import Record
from eunoe.model.scope import Scope
from eunoe.model.source import SourcePlace
from eunoe.recall.query import Synonyms, without_names
from eunoe.recall.quotes import find_quoted
from eunoe.recall.ranking import Found, search
from eunoe.recall.request import RecallRequest
from eunoe.recall.reranking import Reranker, passages
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.text.tokens import token_count

_PAGE_SIZE: Final = 50
_SPARE: Final = 10
"""Found beyond what is asked for, to take the place of what is folded or too new for this snapshot."""


class SearchResult(NamedTuple):
    """Hits, best first, and what became of the second stage."""

    hits: list[Hit]
    reranked: bool = False
    """Whether the scores are those of both stages."""
    fault: EunoeError | None = None
    """Why the second stage was asked for and did not happen."""
    embedder_error: str = ""
    """Why the question has no vector, if it should have one."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the search had to do without, for the caller."""
        without_vector = (f"searched without vectors: {self.embedder_error}",) if self.embedder_error else ()
        return (*without_vector, *((f"not read by the reranker: {self.fault}",) if self.fault else ()))


class Searcher:
    """Finds memories in the indexes of a store."""

    def __init__(
        self,
        store: Store,
        indexes: IndexCache,
        embedder: StoreEmbedder,
        pending: PendingVectors,
        reranker: Reranker,
    ) -> None:
        self.store = store
        self.indexes = indexes
        self.embedder = embedder
        self.pending = pending
        self.reranker = reranker

    def search(
        self, scopes: Sequence[Scope], request: RecallRequest, fold: bool = True, rerank: bool = True
    ) -> SearchResult:
        """Find the hits for a request. What is found and what is read back come from the same moment.

        With `fold` a memory that only quotes a message which was found too gives its place to it. Without `rerank`
        there is no second stage.
        """
        recipe = request.recipe
        depth = recipe.reading.depth if rerank and recipe.method == "blend" else 0
        question = self._question_vector(scopes, request)
        needs_graph, needs_metadata = recipe.method == "associative", request.filter.where is not None
        lacking = "" if recipe.method == "lexical" else self.embedder.error
        with self.indexes.borrow(scopes, needs_graph, needs_metadata) as held:
            scopes, indexes = [scope for scope, _ in held], [index for _, index in held]
            fold = fold and _may_quote(indexes)
            model, vector = _usable_vector(indexes, request, question)
            embedder = self.embedder.embedder
            found = search(
                indexes,
                request.query,
                vector,
                recipe=recipe,
                filter=request.filter,
                now=request.now,
                limit=max(depth, request.limit + _SPARE),
                synonyms=embedder if isinstance(embedder, Synonyms) else None,
                model=model,
            )
            if not depth or not found:
                return SearchResult(_limited(self._hits(scopes, found, fold), request), embedder_error=lacking)
            records = self._records([one.seq for one in found])
            found = [one for one in found if one.seq in records]
            opened = passages(self.store, indexes, found[:depth], records, request.filter, request.now, vector)
        fault = None
        try:  # no index is held while it reads
            found = self.reranker.rerank(request.query, found, [each.text() for each in opened], recipe.reading)
        except EunoeError as error:
            fault = error
        hits = self._hits(scopes, found, fold, records)
        return SearchResult(_limited(hits, request), fault is None, fault, lacking)

    def _question_vector(self, scopes: Sequence[Scope], request: RecallRequest) -> QuestionVector | None:
        """No index is held while an embedder works: it may be a slow one."""
        if request.recipe.method == "lexical":
            return None
        self.pending.complete(scopes)
        if request.vector is not None:
            return None
        with self.indexes.borrow(scopes) as held:
            question = without_names(request.query, [index for _, index in held])
        return self.embedder.embed_question(question)

    def _records(self, seqs: Sequence[int]) -> dict[int, Record]:
        return {record.seq: record for record in self.store.select(ItemQuery(seqs=seqs))}

    def _hits(
        self,
        scopes: Sequence[Scope],
        found: Sequence[Found],
        fold: bool,
        records: Mapping[int, Record] | None = None,
    ) -> Iterator[Hit]:
        for start in range(0, len(found), _PAGE_SIZE):
            page = found[start : start + _PAGE_SIZE]
            known = self._records([one.seq for one in page]) if records is None else records
            # An index may be newer than this snapshot: what is not in it yet is left to the next recall.
            hits = [Hit(known[one.seq], scopes[one.stream], one.score, one.explain) for one in page if one.seq in known]
            yield from fold_quotes(hits) if fold else hits


def fold_quotes(hits: Sequence[Hit]) -> Iterable[Hit]:
    """Each thing once: a memory that only quotes a message which was found too gives its place to it."""
    messages: dict[SourcePlace, Hit] = {(hit.scope, hit.id): hit for hit in hits if hit.kind == "message"}
    if not messages:
        return hits
    shown: dict[int, Hit] = {}
    for hit in hits:
        quoted = find_quoted(hit.record, hit.scope, messages, _spoken_words) if hit.record.supports else None
        told = hit if quoted is None else Hit(quoted.record, quoted.scope, hit.score, hit.explain)
        shown.setdefault(told.record.seq, told)
    return shown.values()


def _spoken_words(hit: Hit) -> str:
    return f"{hit.record.speaker} {hit.record.text}"


def _may_quote(indexes: Sequence[StreamIndex]) -> bool:
    """Whether there are messages and memories that could quote them."""
    kinds = {kind for index in indexes for kind in index.kind.known}
    return "message" in kinds and len(kinds) > 1


def _usable_vector(
    indexes: Sequence[StreamIndex], request: RecallRequest, question: QuestionVector | None
) -> tuple[str, Floats | None]:
    """The model of the memories' vectors, and the question's vector if it is of that model."""
    models = {index.model for index in indexes if index.rows}
    model = models.pop() if len(models) == 1 else ""
    if request.vector is None:
        # The model may have changed since the question was read: then words alone decide, this once.
        return model, question.vector if question and question.model == model else None
    for size in (index.dense.size for index in indexes):
        if size and size != len(request.vector):
            raise InputError(f"the vector has {len(request.vector)} dimensions; those of the memories have {size}")
    return model, request.vector


def _limited(hits: Iterator[Hit], request: RecallRequest) -> list[Hit]:
    """The best hits that fit; one that is too long makes room for the next."""
    first = islice(hits, request.limit)
    if request.tokens is None:
        return list(first)
    kept, room = [], request.tokens
    for hit in first:
        cost = token_count(hit.text)
        if cost <= room:
            room -= cost
            kept.append(hit)
        if room < 1:
            break
    return kept
