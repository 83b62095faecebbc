"""The search: from a checked request to hits, in one consistent view of the store, each thing once."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import exp, log
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from eunoe.embed.pending_vectors import PendingVectors
from eunoe.embed.store_embedder import QuestionVector, StoreEmbedder
from eunoe.errors import EunoeError, InputError
from eunoe.index.cache import HeldIndex, IndexCache
from eunoe.index.stream import StreamIndex
from eunoe.index.tables import Floats
from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.atom import Record, SourcePlace, source_place
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.recall.query import Synonyms, can_read, language_notes, plan_query, read_question, without_names
from eunoe.recall.ranking import Candidate, find_candidates
from eunoe.recall.recipes import RECIPES
from eunoe.recall.request import Filter, RecallRequest
from eunoe.recall.reranking import Reranker, read_passages
from eunoe.records.streams import damage_notes
from eunoe.store.contract import ItemQuery, Reading, Store
from eunoe.text.sentences import token_count

_PAGE_SIZE: Final = 50
_SPARE: Final = 10
"""Found beyond what is asked for, to take the place of what is folded or too new for this snapshot."""
_LOST_VECTORS: Final = "some vectors are damaged: they are made anew, and until then words alone find their memories"
_WORD: Final = re.compile(r"\w+")


class SearchResult(NamedTuple):
    """Hits, best first, and what became of the second stage."""

    hits: list[Hit]
    reranked: bool = False
    """Whether the scores are those of both stages."""
    fault: EunoeError | None = None
    """Why the second stage was asked for and did not happen."""
    notes: tuple[str, ...] = ()
    """What the search had to do without, for the caller."""
    part_cosines: Mapping[int, Sequence[float]] = MappingProxyType({})
    """By the numbers of records that are long texts, how near each of their parts is to the question."""
    floor_shift: float = 0.0
    """What the size of the memory adds to the log-odds that a best hit has to have."""


@dataclass(slots=True)
class Searcher:
    """Finds memories in the indexes of a store."""

    store: Store
    indexes: IndexCache
    embedder: StoreEmbedder
    pending: PendingVectors
    reranker: Reranker

    def search(
        self, scopes: Sequence[Scope], request: RecallRequest, fold: bool = True, judge: bool = False
    ) -> SearchResult:
        """Find the hits for a request. What is found and what is read back come from the same moment.

        With `fold`, a message that was found takes the place of a memory that only quotes it. With `judge`, the result
        says what a best hit has to score.
        """
        recipe = request.recipe
        depth = recipe.rerank.depth if recipe.method == "blend" else 0
        question = self._prepare_vectors(scopes, request)

        def find(store: Reading, held: Sequence[HeldIndex]) -> SearchResult | _Candidates:
            indexes = [each.index for each in held]
            owners = {stream: scope for each in held for stream, scope in each.owners.items()}
            asked = [each.scope for each in held]
            notes = self._missing_notes(request, indexes)
            model, vector = _usable_vector(indexes, request, question)
            embedder = self.embedder.embedder
            synonyms = embedder if isinstance(embedder, Synonyms) else None
            candidates = find_candidates(
                indexes,
                request.query,
                vector,
                recipe=recipe,
                filter=request.filter,
                now=request.now,
                limit=max(depth, request.limit * (2 if len(owners) > len(asked) else 1) + _SPARE),
                synonyms=synonyms,
                model=model,
            )
            cosines = _part_cosines(indexes, candidates, vector) if judge else {}
            rise = floor_shift(indexes, request.query, request.now, synonyms) if judge else 0.0
            if not depth or not candidates:
                hits = _limited(_hits(partial(_records, store), asked, owners, candidates, fold), request)
                notes += self._damage_notes(store, owners)
                return SearchResult(hits, notes=notes, part_cosines=cosines, floor_shift=rise)
            records = _records(store, candidates)
            notes += self._damage_notes(store, owners)
            candidates = [candidate for candidate in candidates if candidate.seq in records]
            passages = read_passages(store, indexes, candidates[:depth], records, request.filter, request.now, vector)
            return _Candidates(asked, owners, candidates, records, passages, notes, cosines, rise)

        graph, metadata = recipe.method in ("associative", "documents"), request.filter.where is not None
        found = self.indexes.read(scopes, find, graph=graph, metadata=metadata)
        if isinstance(found, SearchResult):
            return found
        candidates, passages, notes = found.candidates, found.passages, found.notes
        fault, read = None, 0
        try:  # no index is held while it reads
            candidates, read = self.reranker.rerank(request.query, candidates, passages, recipe.rerank)
            if recipe.rerank.budget_ms is not None and read < len(passages):
                within = f"within {recipe.rerank.budget_ms:,.0f} ms"
                notes += (f"read by the reranker {within}: {read} of the {len(passages)} best",)
        except EunoeError as error:
            fault = error
            notes += (f"not read by the reranker: {error}",)
        hits = _limited(_hits(lambda _: found.records, found.asked, found.owners, candidates, fold), request)
        return SearchResult(hits, read > 0, fault, notes, found.part_cosines, found.floor_shift)

    def _missing_notes(self, request: RecallRequest, indexes: Sequence[StreamIndex]) -> tuple[str, ...]:
        """What the search has to do without."""
        notes, rows, embedder = list[str](), sum(index.count for index in indexes), self.embedder
        if request.recipe.method != "lexical":
            if embedder.error:
                notes.append(f"searched without vectors: {embedder.error}")
            elif rows and request.vector is None:
                notes += language_notes(embedder.name, embedder.languages, request.query)
        if unfinished := sum(len(index.unfinished) for index in indexes):
            notes.append(f"huge texts still being indexed, of which only the beginnings were searched: {unfinished}")
        return tuple(notes)

    def _damage_notes(self, store: Reading, streams: Iterable[int]) -> tuple[str, ...]:
        """What was found damaged, when the index was built or when the hits were read."""
        notes = tuple(damage_notes(damage for stream in streams for damage in store.noticed(stream)))
        return (*notes, _LOST_VECTORS) if self.store.lost_vectors else notes

    def _prepare_vectors(self, scopes: Sequence[Scope], request: RecallRequest) -> QuestionVector | None:
        """Make the missing vectors of these scopes, and the question's. No index is held: embedders may be slow."""
        if request.recipe.method == "lexical":
            return None
        self.pending.complete(scopes)
        if request.vector is not None:
            return None
        if request.recipe.method == "documents" and not can_read(self.embedder.languages, request.query):
            return None  # its vector would speak for every document alike
        text = self.indexes.read(scopes, lambda _, held: without_names(request.query, [each.index for each in held]))
        return self.embedder.embed_question(text)


class _Candidates(NamedTuple):
    """What was found, before the reranker reads it."""

    asked: Sequence[Scope]
    owners: Mapping[int, Scope]
    candidates: Sequence[Candidate]
    records: Mapping[int, Record]
    passages: Sequence[str]
    notes: tuple[str, ...]
    part_cosines: Mapping[int, Sequence[float]]
    floor_shift: float


def _records(store: Reading, candidates: Sequence[Candidate]) -> dict[int, Record]:
    # A kept index was built without a look at what was damaged since.
    query = ItemQuery(seqs=[candidate.seq for candidate in candidates], skip_damaged=True)
    return {record.seq: record for record in store.select(query)}


def _hits(
    read: Callable[[Sequence[Candidate]], Mapping[int, Record]],
    asked: Sequence[Scope],
    owners: Mapping[int, Scope],
    candidates: Sequence[Candidate],
    fold: bool,
) -> Iterator[Hit]:
    """The hits, each thing once; with `fold`, a message in the place of the first memory that quotes it."""
    shown: dict[Hashable, Scope] = {}
    for start in range(0, len(candidates), _PAGE_SIZE):
        page = candidates[start : start + _PAGE_SIZE]
        known = read(page)
        # An index may be newer than this snapshot: what is not in it yet is left to the next recall.
        found = [
            (asked[place], Hit(known[seq], owners[known[seq].stream], score, why))
            for place, seq, _, score, why in page
            if seq in known
        ]
        hits = [hit for scope, hit in found if len(owners) == 1 or _is_first(hit, scope, shown)]
        if fold and len({hit.record.kind for hit in hits}) > 1:
            messages = messages_by_place(hits)
            folded: dict[int, Hit] = {}
            for hit in hits:
                quoted = find_quoted(hit, messages)
                best = hit if quoted is None else Hit(quoted.record, quoted.scope, hit.score, hit.explain)
                folded.setdefault(best.record.seq, best)
            hits = list(folded.values())
        yield from hits


def _part_cosines(
    indexes: Sequence[StreamIndex], candidates: Sequence[Candidate], vector: Floats | None
) -> dict[int, list[float]]:
    """How near the parts of long texts are to the question, by the numbers of their records."""
    found: dict[int, list[float]] = {}
    for number, index in enumerate(indexes):
        if vector is not None and index.dense.parts.size:
            rows = [index.row_of[each.seq] for each in candidates if each.stream == number]
            found |= {index.seqs[row]: near for row, near in index.dense.part_cosines(rows, vector).items()}
    return found


def _usable_vector(
    indexes: Sequence[StreamIndex], request: RecallRequest, question: QuestionVector | None
) -> tuple[str, Floats | None]:
    """The model of the memories' vectors, and the question's vector if that model made it; a given one if it fits."""
    models = {index.model for index in indexes if index.count}
    model = models.pop() if len(models) == 1 else ""
    if request.vector is None:
        # The model may have changed since the question was embedded: then words alone decide, this once.
        return model, question.vector if question and question.model == model else None
    for dimensions in (index.dense.dimensions for index in indexes):
        if dimensions and dimensions != len(request.vector):
            raise InputError(
                f"the vector has {len(request.vector)} dimensions; those of the memories have {dimensions}"
            )
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


def _is_first(hit: Hit, asked: Scope, shown: dict[Hashable, Scope]) -> bool:
    """Whether it was not shown yet: two scopes may mean one record, and a conversation and its user keep the same."""
    if hit.record.seq in shown:
        return False
    shown[hit.record.seq] = hit.scope
    copy = (hit.scope.pairs.get("user"), hit.record.text)
    return not asked.within or hit.kind == "message" or shown.setdefault(copy, hit.scope) == hit.scope


def messages_by_place(hits: Iterable[Hit]) -> dict[SourcePlace, Hit]:
    return {(hit.scope, hit.id): hit for hit in hits if hit.kind == "message"}


def find_quoted(
    hit: Hit,
    messages: Mapping[SourcePlace, Hit],
    words_of: Callable[[Hit], str] = lambda message: f"{message.record.speaker} {message.record.text}",
) -> Hit | None:
    """The one of these messages whose words an atom repeats, and which it names as a source."""
    for name in hit.record.sources if messages else ():
        message = messages.get(source_place(name, hit.scope))
        if message is not None:
            said = set(_WORD.findall(words_of(message).casefold()))
            if said.issuperset(_WORD.findall(hit.record.text.casefold())):
                return message
    return None


LARGE_MEMORY_ITEMS: Final = 1000
"""Up to so many items the score of the best hit alone tells own questions from foreign ones well."""

# Fitted on 2,000 to 13,000 turns (docs/decisions/0019-scores.md): each counts once for every factor e of the size.
_UNKNOWN_WORDS: Final = 1.75
"""What words that the memory does not know raise it by, as a share of the question's words."""
_NAMED_SPEAKER: Final = 1.1
"""What it is lowered by where the question names somebody who speaks in the memory."""
_KNOWN_QUESTION: Final = 0.15


def floor_shift(indexes: Sequence[StreamIndex], query: str, now: float, synonyms: Synonyms | None) -> float:
    """What is added to the log-odds that the best hit has to have.

    The more there is to choose from, the less the best score tells whether the memory has an answer. But a large
    memory knows nearly every common word, so that a word it does not know tells much; and so does a name it knows.
    """
    items = sum(float(index.layout.item_counts.sum()) for index in indexes)
    if items <= LARGE_MEMORY_ITEMS:
        return 0.0
    languages = {language for index in indexes for language in index.lexical.languages}
    question = read_question(query, languages, now)
    plans = [plan_query(question, index, synonyms) for index in indexes]
    is_named = any(plan.speakers for plan in plans)
    weights: dict[str, float] = {}
    known: dict[str, float] = {}
    for index, plan in zip(indexes, plans, strict=True):
        best = index.lexical.matches(plan.groups).max(axis=1, initial=0.0).tolist()
        for group, match in zip(plan.groups, best, strict=True):
            weights[group.label] = max(weights.get(group.label, 0.0), index.lexical.idf(group) * group.weight)
            known[group.label] = max(known.get(group.label, 0.0), match)
    total = sum(weights.values())
    # The share of the question's words that no item has, rare ones counting for more.
    unknown = 1 - sum(weights[label] * known[label] for label in weights) / total if total else 0.0
    return log(items / LARGE_MEMORY_ITEMS) * (_UNKNOWN_WORDS * unknown - _KNOWN_QUESTION - _NAMED_SPEAKER * is_named)


def shift(probability: float, log_odds: float) -> float:
    """A probability whose log-odds are so much higher."""
    odds = probability / (1 - probability) * exp(log_odds)
    return odds / (1 + odds)


_MAX_SIMILAR: Final = 5

SimilarAtoms = Mapping[str, float]
"""The cosine of each atom with a text, by its id; 0 where the vectors cannot be compared."""


def find_similar_atoms(
    searcher: Searcher, scope: Scope, vectors: Mapping[str, Floats | None]
) -> dict[str, SimilarAtoms]:
    """Find the open atoms of a scope that are nearest to each text. `vectors` are those of the texts."""

    def find(_: Reading, held: Sequence[HeldIndex]) -> dict[str, SimilarAtoms | None]:
        index = held[0].index if held else None
        return {text: _nearest(index, vector) for text, vector in vectors.items()}

    found = searcher.indexes.read([scope], find)
    only_atoms, recipe, now = Filter(kinds=frozenset(ATOM_KINDS)), RECIPES["lexical"], utc_now().timestamp()
    for text, near in found.items():
        if near is None:
            request = RecallRequest(text, only_atoms, recipe, now, _MAX_SIMILAR)
            found[text] = {hit.id: 0.0 for hit in searcher.search([scope], request).hits}
    return {text: near or {} for text, near in found.items()}


def _nearest(index: StreamIndex | None, vector: Floats | None) -> SimilarAtoms | None:
    """The nearest atoms; None where they cannot be told by vectors."""
    codes = [index.codes["kind"][kind] for kind in ATOM_KINDS if kind in index.codes["kind"]] if index else []
    if index is None or not codes:
        return {}
    cosines = index.dense.cosines(vector) if vector is not None and index.dense.count else None
    if cosines is None:
        return None
    rows = np.flatnonzero(index.open & np.isin(index.columns["kind"], codes))
    best = rows[np.argsort(-cosines[rows], kind="stable")[:_MAX_SIMILAR]]
    return {index.ids[row]: float(cosines[row]) for row in best.tolist()}
