"""Keyword search: keyword memories that have any of some keywords, best first."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, isfinite
from numbers import Real
from typing import Final, Literal, NamedTuple

from eunoe.discussion.model import KEYWORD_MEMORY, KeywordMemory
from eunoe.discussion.retrievers.keyword_index import Match, find_matches
from eunoe.discussion.retrievers.keyword_terms import MAX_KEYWORDS, split_keywords
from eunoe.discussion.retrievers.views import KeywordRows, keyword_rows
from eunoe.errors import EmbedderError, InputError
from eunoe.memory import Memory
from eunoe.model.scope import Scope
from eunoe.model.time import utc_now
from eunoe.model.validation import check_choices, check_count, check_flag, show
from eunoe.text.normalize import fold

SearchMode = Literal["keyword", "semantic", "hybrid"]
SEARCH_MODES: Final[tuple[SearchMode, ...]] = ("keyword", "semantic", "hybrid")
FIELDS: Final = ("title", "summary", "entities", "key_phrases", "text")
EQUAL_WEIGHTS: Final = (1.0,) * len(FIELDS)
_SUMMARY: Final = FIELDS.index("summary")
_TEXT: Final = FIELDS.index("text")
_CANDIDATES: Final = 50
"""So many of each list are fused, or weighed by how recent they are, at the least."""
_RRF_K: Final = 60
_SEED_MEMORIES: Final = 10
"""The entities of so many of the best are followed."""
_RECENT_FACTOR: Final = 2.5
"""What a memory of today counts beside one that is years old."""
_DECAY_PER_DAY: Final = 0.01
_SECONDS_PER_DAY: Final = 86_400
_LOGGER: Final = logging.getLogger("eunoe")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordQuery:
    """What is searched for, and how."""

    keywords: str
    limit: int = 5
    weights: Sequence[float] = EQUAL_WEIGHTS
    use_recency: bool = False
    mode: SearchMode = "keyword"
    semantic_query: str = ""
    """What is compared by meaning; the keywords if it is empty."""
    use_entity_expansion: bool = False

    def __post_init__(self) -> None:
        check_count(self.limit, "limit")
        check_choices([self.mode], "search_mode", SEARCH_MODES)
        check_flag(self.use_recency, "use_recency")
        check_flag(self.use_entity_expansion, "use_entity_expansion")
        check_weights(self.weights)

    @property
    def candidates(self) -> int:
        """How many of each list are looked at."""
        return max(_CANDIDATES, 2 * self.limit)

    @property
    def question(self) -> str:
        """What is compared by meaning."""
        return self.semantic_query.strip() or " ".join(split_keywords(self.keywords))


class KeywordHit(NamedTuple):
    """A keyword memory that was found."""

    scope: Scope
    memory: KeywordMemory
    text: str
    """Its summary, escaped."""
    score: float


def check_weights(weights: Sequence[float]) -> None:
    """Raise InputError if these are not five weights, none below zero and one above."""
    is_list = isinstance(weights, Sequence) and not isinstance(weights, str | bytes)
    if is_list and len(weights) == len(FIELDS) and all(map(_is_weight, weights)) and any(weights):
        return
    raise InputError(
        f"weights: {show(weights)} must be {len(FIELDS)} numbers, one each for {', '.join(FIELDS)}: "
        "zero or more, and not all of them zero"
    )


def _is_weight(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value) and value >= 0


def search_keyword_memories(memory: Memory, scopes: Sequence[Scope], query: KeywordQuery) -> list[KeywordHit]:
    """Find keyword memories of some discussions, best first. Nothing is written."""
    search = _Search(memory, scopes, query)
    keywords = split_keywords(query.keywords)
    hits = search.rank(keywords)
    if query.use_entity_expansion:
        hits = search.expand(hits, keywords)
    return hits[: query.limit]


class _Search:
    """One search, in the keyword memories as they are now."""

    def __init__(self, memory: Memory, scopes: Sequence[Scope], query: KeywordQuery) -> None:
        self._memory = memory
        self._scopes = scopes
        self._query = query
        self._rows = [keyword_rows(memory, scope) for scope in scopes]

    def rank(self, keywords: Sequence[str]) -> list[KeywordHit]:
        """By the mode of the query, and by how recent they are if it asks for that."""
        mode = self._query.mode
        matches = [] if mode == "semantic" else self._find(keywords)
        if mode != "keyword":
            matches = self._with_meaning(matches)
        hits = list(map(self._hit, matches))
        return self._by_recency(hits) if self._query.use_recency else hits

    def expand(self, hits: Sequence[KeywordHit], keywords: Iterable[str]) -> list[KeywordHit]:
        """Give some places to memories with entities of the best ones."""
        limit = self._query.limit
        best = hits[:limit]
        shown = {id(hit.memory) for hit in best}
        others = [hit for hit in map(self._hit, self._find(_seeds(hits, keywords))) if id(hit.memory) not in shown]
        reserved = min(max(1, limit // 3), len(others), limit - 1)
        return [*best[: limit - reserved], *others[:reserved]]

    def _find(self, keywords: Iterable[str]) -> list[Match]:
        # The summary is a part of the whole text too.
        weights = list(self._query.weights)
        weights[_SUMMARY] += weights[_TEXT]
        most = sum(rows.index.size for rows in self._rows) if self._query.use_recency else self._query.candidates
        return find_matches([rows.index for rows in self._rows], keywords, weights, most)

    def _with_meaning(self, matches: Sequence[Match]) -> list[Match]:
        """Matches together with what is close in meaning; keywords alone do where there are no vectors."""
        if (near := self._near()) is None:
            return list(matches) or self._find([self._query.question])
        return near if self._query.mode == "semantic" else _fuse(matches, near)

    def _near(self) -> list[Match] | None:
        """What is close in meaning, best first; None if that cannot be said."""
        question, most = self._query.question, self._query.candidates
        if not question:
            return []
        if self._memory.embedder is None:
            return None
        try:
            found = self._memory.recall(
                self._scopes, question, kinds=["fact"], labels=[KEYWORD_MEMORY], recipe="dense", limit=most
            )
        except EmbedderError as error:
            _LOGGER.warning("keyword search: no vectors (%s), so that only words count", type(error).__name__)
            return None
        numbers = {scope: number for number, scope in enumerate(self._scopes)}
        near = ((numbers[hit.scope], hit.id, hit.score) for hit in found if hit.scope in numbers)
        return [Match(index, row, score) for index, id, score in near if (row := self._row(index, id)) is not None]

    def _row(self, index: int, id: str) -> int | None:
        return self._rows[index].rows.get(id)

    def _hit(self, match: Match) -> KeywordHit:
        rows: KeywordRows = self._rows[match.number]
        return KeywordHit(self._scopes[match.number], rows.memories[match.row], rows.texts[match.row], match.score)

    def _by_recency(self, hits: Sequence[KeywordHit]) -> list[KeywordHit]:
        weighed = [hit._replace(score=hit.score * recency_factor(hit.memory)) for hit in hits]
        return sorted(weighed, key=lambda hit: -hit.score)


def recency_factor(memory: KeywordMemory) -> float:
    """What a memory counts for its age: 2.5 today, 1.55 after a hundred days, in the end 1."""
    moment = memory.time or memory.recorded
    if moment is None:
        return 1.0
    days = max(0.0, (utc_now() - moment).total_seconds() / _SECONDS_PER_DAY)
    return 1 + (_RECENT_FACTOR - 1) * exp(-_DECAY_PER_DAY * days)


def _fuse(first: Sequence[Match], second: Sequence[Match]) -> list[Match]:
    """Reciprocal rank fusion."""
    scores: dict[tuple[int, int], float] = {}
    for matches in (first, second):
        for rank, match in enumerate(matches, 1):
            place = match.number, match.row
            scores[place] = scores.get(place, 0.0) + 1 / (_RRF_K + rank)
    fused = (Match(index, row, score) for (index, row), score in scores.items())
    return sorted(fused, key=lambda match: -match.score)


def _seeds(hits: Sequence[KeywordHit], keywords: Iterable[str]) -> list[str]:
    """The entities of the best that were not searched for."""
    known = set(map(fold, keywords))
    entities = (" ".join(entity.split()) for hit in hits[:_SEED_MEMORIES] for entity in hit.memory.entities)
    seeds = {folded: entity for entity in entities if (folded := fold(entity)) and folded not in known}
    return list(seeds.values())[:MAX_KEYWORDS]
