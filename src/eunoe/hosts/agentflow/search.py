"""Searching as Agentflow asks for it: strategies, thresholds, budgets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.form.statements import is_question
from eunoe.hosts.agentflow.framework import DistanceMetric, MemorySearchResult, RetrievalStrategy
from eunoe.hosts.agentflow.memories import result_of
from eunoe.memory import Memory
from eunoe.model.arguments import AtomKind, RecipeName
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.text.sentences import token_count

KINDS: Final[tuple[AtomKind, ...]] = ("fact", "observation")
_RECIPES: Final[Mapping[RetrievalStrategy, RecipeName]] = {RetrievalStrategy.GRAPH_TRAVERSAL: "associative"}
_NEWEST_OF: Final = 100
"""Newest first is among so many that fit the query."""
_POOL: Final = 10
"""At least so many are looked at, so that the one with the same words is among them."""
_MOST_UNLESS_SAME: Final = 0.94
"""Agentflow takes a memory with a score of 0.95 for the same one, and does not store the new one. Only what has the
same words may get there: a memory that fits a question well can say something else."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search."""

    query: str
    where: dict[str, Any] | None
    limit: int
    score_threshold: float | None
    strategy: RetrievalStrategy
    max_tokens: int | None

    def run(self, memory: Memory, scopes: Sequence[Scope]) -> list[MemorySearchResult]:
        if not self.limit:
            return []
        if not self.query.strip():
            return self._fit(self._newest(memory, scopes))
        is_temporal = self.strategy == RetrievalStrategy.TEMPORAL
        hits = memory.recall(
            list(scopes),
            self.query,
            limit=max(self.limit, _NEWEST_OF if is_temporal else _POOL),
            kinds=KINDS,
            where=self.where,
            recipe=_RECIPES.get(self.strategy, "default"),
            exact=True,
        )
        results = [result_of(hit.item, self._score(hit)) for hit in hits]
        return self._fit(sorted(results, key=_moment if is_temporal else _score_of, reverse=True))

    def _newest(self, memory: Memory, scopes: Sequence[Scope]) -> list[MemorySearchResult]:
        """All that the filters let through, newest first: a blank query asks for nothing else."""
        how: Any = {"kinds": KINDS, "where": self.where, "limit": self.limit, "newest": True, "exact": True}
        pages = [memory.list(scope, **how) for scope in scopes]
        return sorted((result_of(item) for page in pages for item in page.items), key=_moment, reverse=True)

    def _score(self, hit: Hit) -> float:
        if _words(hit.text) == _words(self.query) and not is_question(self.query):
            return 1.0
        above = max(hit.score - _MOST_UNLESS_SAME, 0.0)
        return hit.score - above * 0.9

    def _fit(self, results: Sequence[MemorySearchResult]) -> list[MemorySearchResult]:
        """Those above the threshold that fit, whole; one that is too long makes room for the next."""
        least = self.score_threshold or 0.0
        best = [result for result in results if result.score >= least][: self.limit]
        if self.max_tokens is None:
            return best
        kept, room = [], self.max_tokens
        for result in best:
            cost = token_count(result.content)
            if cost <= room:
                kept.append(result)
                room -= cost
        return kept


def check_metric(metric: DistanceMetric | str) -> None:
    """Vectors have length one, so that these metrics rank alike. The fourth would not."""
    if metric not in (DistanceMetric.COSINE, DistanceMetric.DOT_PRODUCT, DistanceMetric.EUCLIDEAN):
        raise InputError(f"distance_metric {metric!r:.40} is not supported: use cosine")


def parse_strategy(strategy: RetrievalStrategy | str) -> RetrievalStrategy:
    try:
        return RetrievalStrategy(strategy)
    except ValueError:
        raise InputError(f"retrieval_strategy {strategy!r:.40} is not one of {', '.join(RetrievalStrategy)}") from None


def _words(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _score_of(result: MemorySearchResult) -> float:
    return result.score


def _moment(result: MemorySearchResult) -> float:
    return result.timestamp.timestamp() if result.timestamp else 0.0
