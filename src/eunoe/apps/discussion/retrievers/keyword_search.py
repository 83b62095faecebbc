"""Keyword search: keyword memories that have any of some keywords, best first."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from eunoe.apps.discussion.model import KEYWORD_MEMORY, KeywordMemory
from eunoe.apps.discussion.retrievers.keyword_index import Floats, Match, find_matches
from eunoe.apps.discussion.retrievers.keyword_terms import MAX_KEYWORDS, split_keywords
from eunoe.apps.discussion.retrievers.views import keyword_rows
from eunoe.apps.discussion.scope import discussion_key
from eunoe.errors import EmbedderError, InputError
from eunoe.memory import Memory
from eunoe.model.arguments import check_count, check_flag, show, utc_now
from eunoe.model.scope import Scope
from eunoe.text.normalize import fold

SearchMode = Literal["keyword", "semantic", "hybrid"]
SEARCH_MODES: Final[tuple[SearchMode, ...]] = ("keyword", "semantic", "hybrid")
FIELDS: Final = ("title", "summary", "entities", "key_phrases", "text")
EQUAL_WEIGHTS: Final = (1.0,) * len(FIELDS)
DEFAULT_LIMIT: Final = 5
_SUMMARY: Final = FIELDS.index("summary")
_TEXT: Final = FIELDS.index("text")
_MAX_WEIGHT: Final = 1e6
_CANDIDATES: Final = 50
"""So many of each list are fused or expanded, at the least."""
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
    limit: int = 0
    """At most so many; 0 for the default."""
    weights: Sequence[float] = EQUAL_WEIGHTS
    use_recency: bool = False
    mode: SearchMode = "keyword"
    semantic_query: str = ""
    """What is compared by meaning; the keywords if it is empty."""
    use_entity_expansion: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", check_limit(self.limit))
        if self.mode not in SEARCH_MODES:
            raise InputError(f"search_mode {show(self.mode)} must be one of {', '.join(SEARCH_MODES)}")
        check_flag(self.use_recency, "use_recency")
        check_flag(self.use_entity_expansion, "use_entity_expansion")
        if self.weights is not EQUAL_WEIGHTS:
            check_weights(self.weights)

    @property
    def candidates(self) -> int:
        """How many of each list are looked at."""
        if self.mode == "keyword" and not self.use_entity_expansion:
            return self.limit
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


def check_limit(limit: object) -> int:
    """How many are wanted at most; 0 means the default."""
    return check_count(limit, "limit", least=0) or DEFAULT_LIMIT


def check_weights(weights: Sequence[float]) -> None:
    """Raise InputError if these are not five weights, none below zero, none beyond a million, and one above zero."""
    is_list = isinstance(weights, Sequence) and not isinstance(weights, str | bytes)
    if is_list and len(weights) == len(FIELDS) and all(map(_is_weight, weights)) and any(weights):
        return
    raise InputError(
        f"weights: {show(weights)} must be {len(FIELDS)} numbers, one each for {', '.join(FIELDS)}: "
        f"from 0 to {_MAX_WEIGHT:,.0f}, and not all of them 0"
    )


def _is_weight(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX_WEIGHT


def search_keyword_memories(memory: Memory, scopes: Sequence[Scope], query: KeywordQuery) -> list[KeywordHit]:
    """Find keyword memories of some discussions, best first. Nothing is written."""
    return _Search(memory, scopes, query).hits()


class _Search:
    """One search, in the keyword memories as they are now."""

    def __init__(self, memory: Memory, scopes: Sequence[Scope], query: KeywordQuery) -> None:
        self._memory = memory
        self._scopes = scopes
        self._query = query
        self._rows = [keyword_rows(memory, scope) for scope in scopes]
        # The summary is a part of the whole text too.
        self._weights = [*query.weights]
        self._weights[_SUMMARY] += query.weights[_TEXT]

    def hits(self) -> list[KeywordHit]:
        keywords = split_keywords(self._query.keywords)
        matches = self._rank(keywords)
        if self._query.use_entity_expansion:
            matches = self._expand(matches, keywords)
        return list(map(self._hit, matches[: self._query.limit]))

    def _rank(self, keywords: Sequence[str]) -> list[Match]:
        """By the mode of the query."""
        if self._query.mode == "keyword":
            return self._find(keywords)
        if (near := self._near()) is None:
            return self._find(keywords or [self._query.question])
        if self._query.mode == "hybrid":
            near = _fuse(self._find(keywords, is_weighed=False), near)
        return self._by_recency(near) if self._query.use_recency else near

    def _find(self, keywords: Iterable[str], is_weighed: bool = True) -> list[Match]:
        factors = self._factors() if self._query.use_recency and is_weighed else None
        indexes = [rows.index for rows in self._rows]
        return find_matches(indexes, keywords, self._weights, self._query.candidates, factors)

    def _near(self) -> list[Match] | None:
        """What is close in meaning, best first; None if that cannot be said."""
        question, most = self._query.question, self._query.candidates
        if not question:
            return []
        if self._memory.embedder is None:
            return None
        try:
            found = self._memory.recall(
                list(self._scopes),
                question,
                kinds=["fact"],
                labels=[KEYWORD_MEMORY],
                recipe="dense",
                limit=most,
                exact=True,
            )
        except EmbedderError as error:
            _LOGGER.warning("keyword search: no vectors (%s), so that only words count", type(error).__name__)
            return None
        numbers = {discussion_key(scope): number for number, scope in enumerate(self._scopes)}
        near = ((number, hit) for hit in found if (number := numbers.get(discussion_key(hit.scope))) is not None)
        places = ((number, self._rows[number].rows.get(hit.id), hit.score) for number, hit in near)
        return [Match(number, row, score) for number, row, score in places if row is not None]

    def _expand(self, matches: Sequence[Match], keywords: Iterable[str]) -> list[Match]:
        """Give some places to memories with entities of the best ones, and all that are left."""
        limit = self._query.limit
        best = matches[:limit]
        known = {(match.number, match.row) for match in best}
        seeds = _seeds(map(self._memory_of, matches[:_SEED_MEMORIES]), keywords)
        others = [match for match in self._find(seeds) if (match.number, match.row) not in known]
        reserved = min(max(1, limit // 3), len(others), limit - 1)
        return [*best[: limit - reserved], *others]

    def _by_recency(self, matches: Sequence[Match]) -> list[Match]:
        factors = [recency_factors(rows.times) for rows in self._rows]
        weighed = [match._replace(score=match.score * factors[match.number][match.row]) for match in matches]
        return sorted(weighed, key=lambda match: -match.score)

    def _factors(self) -> Floats:
        return recency_factors(np.concatenate([rows.times for rows in self._rows]))

    def _memory_of(self, match: Match) -> KeywordMemory:
        return self._rows[match.number].memories[match.row]

    def _hit(self, match: Match) -> KeywordHit:
        number, row, score = match
        rows = self._rows[number]
        return KeywordHit(self._scopes[number], rows.memories[row], rows.texts[row], score)


def recency_factors(times: Floats) -> Floats:
    """What memories count for their age: 2.5 today, 1.55 after a hundred days, in the end 1."""
    days = np.maximum(0.0, utc_now().timestamp() - times) / _SECONDS_PER_DAY
    return 1 + (_RECENT_FACTOR - 1) * np.exp(-_DECAY_PER_DAY * days)


def _fuse(first: Sequence[Match], second: Sequence[Match]) -> list[Match]:
    """Reciprocal rank fusion."""
    scores: dict[tuple[int, int], float] = {}
    for matches in (first, second):
        for rank, match in enumerate(matches, 1):
            place = match.number, match.row
            scores[place] = scores.get(place, 0.0) + 1 / (_RRF_K + rank)
    fused = (Match(number, row, score) for (number, row), score in scores.items())
    return sorted(fused, key=lambda match: -match.score)


def _seeds(memories: Iterable[KeywordMemory], keywords: Iterable[str]) -> list[str]:
    """The entities of the best that were not searched for."""
    known = set(map(fold, keywords))
    entities = (" ".join(entity.split()) for memory in memories for entity in memory.entities)
    seeds = {folded: entity for entity in entities if (folded := fold(entity)) and folded not in known}
    return list(seeds.values())[:MAX_KEYWORDS]
