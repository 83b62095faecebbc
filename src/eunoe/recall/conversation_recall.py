"""Recall as a conversation may do it: in all the memory that its context shows, and in nothing else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from eunoe.errors import InputError
from eunoe.model.arguments import MEMORY_TYPES, MemoryType, check_choices, check_count, check_flag, check_names, utc_now
from eunoe.model.atom import NO_BOUNDS, Bounds
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.recall.audience import find_audience
from eunoe.recall.lookup_query import cut_middle, is_reaction
from eunoe.recall.ranking_recipes import Recipe, divide_budget
from eunoe.recall.recalled_context import lookup_request, shown_threshold
from eunoe.recall.request import RecipeLike, find_recipe
from eunoe.recall.search import Searcher
from eunoe.records.counters import AccessLog

_SPARE: Final = 20
_MAX_LIMIT: Final = 2**31
"""A higher limit means the same, and NumPy could not hold it."""


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """A checked search in what a conversation may see."""

    scope: Scope
    queries: tuple[str, ...]
    users: tuple[str, ...]
    memory_types: tuple[MemoryType, ...]
    limit: int
    recipe: Recipe
    bounds: Bounds = NO_BOUNDS
    """What may be looked at beside the conversation's own scope."""
    exact: bool = False


def parse_lookup_request(
    scope: Scope,
    queries: Iterable[str],
    users: Iterable[str],
    memory_types: Sequence[str],
    limit: int,
    recipe: RecipeLike = "default",
    bounds: Bounds = NO_BOUNDS,
    exact: bool = False,
) -> LookupRequest:
    questions = check_names(queries, "query")
    if not questions:
        raise InputError("there is no query: ask something")
    return LookupRequest(
        scope=scope,
        queries=tuple(map(cut_middle, questions)),
        users=check_names(users, "users"),
        memory_types=check_choices(memory_types, "memory_types", MEMORY_TYPES) if memory_types else MEMORY_TYPES,
        limit=min(check_count(limit, "limit"), _MAX_LIMIT),
        recipe=find_recipe(recipe),
        bounds=bounds,
        exact=check_flag(exact, "exact"),
    )


def look_up(searcher: Searcher, access: AccessLog, request: LookupRequest) -> list[Hit]:
    """What bears on one of several questions, best first, among what the audience may see."""
    audience = find_audience(searcher.store, request.scope, request.users, request.bounds)
    scopes = (audience.searched_in if request.exact else audience.asked_in)(request.memory_types)
    recipe = divide_budget(request.recipe, len(request.queries))
    found: list[Hit] = []
    for query in request.queries if scopes else ():
        lookup = lookup_request(query, request.limit + _SPARE, utc_now(), recipe)
        result = searcher.search(scopes, lookup, judge=True)
        hits = [hit for hit in result.hits if hit.kind != "message" or not is_reaction(hit.record.content)]
        threshold = shown_threshold(recipe, result.reranked, result.floor_shift)
        found += hits[: threshold.count_passing([hit.score for hit in hits])]
    best: dict[int, Hit] = {}
    for hit in sorted(found, key=lambda hit: (-hit.score, hit.id)):
        best.setdefault(hit.record.seq, hit)
    shown = list(best.values())[: request.limit]
    if not audience.incognito:
        access.note(shown)
    return shown
