"""A question as recall takes it: checked, with its filters and limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import to_unit_vectors
from eunoe.errors import InputError
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.time import TimeLike, parse_time
from eunoe.model.time import utc_now as current
from eunoe.model.validation import check_text, normalize_path
from eunoe.recall.filters import Filter
from eunoe.recall.recipes import RECIPES, Recipe
from eunoe.recall.where import Where, parse_where

VectorLike = Sequence[float] | NDArray[Any]

DEFAULT_LIMIT = 10
_MOST = 1000
_HIGHEST = 2**31
_TINY, _HUGE = 1e-12, 1e12
_ALL = ("message", *ATOM_KINDS)


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """What to look for, among what, and how much of it."""

    query: str
    filter: Filter
    recipe: Recipe
    now: float
    limit: int
    tokens: int | None
    vector: NDArray[np.float32] | None


def parse_request(
    query: str,
    *,
    limit: int | None,
    tokens: int | None,
    kinds: Iterable[str],
    labels: Iterable[str],
    since: TimeLike | None,
    until: TimeLike | None,
    files: Iterable[str],
    people: Iterable[str],
    sessions: Iterable[str],
    speakers: Iterable[str],
    where: Where | None,
    as_of: TimeLike | None,
    known_at: TimeLike | None,
    now: TimeLike | None,
    recipe: str | Recipe,
    vector: VectorLike | None,
) -> RecallRequest:
    if not check_text(query, "the question").strip():
        raise InputError("the question is empty: ask something, or use list to read everything")
    asked = current() if now is None else parse_time(now, "now")
    filter = Filter(
        kinds=_kinds(kinds),
        labels=_some(labels, "labels"),
        since=_seconds(since, "since"),
        until=_seconds(until, "until"),
        files=frozenset(normalize_path(path) for path in _names(files, "files")) or None if files else None,
        people=_some(people, "people"),
        sessions=_some(sessions, "sessions"),
        speakers=_some(speakers, "speakers"),
        where=None if where is None else parse_where(where),
        as_of=_seconds(as_of, "as_of"),
        known_at=_seconds(known_at, "known_at"),
    )
    return RecallRequest(
        query=query,
        filter=filter,
        recipe=find_recipe(recipe),
        now=asked.timestamp(),
        limit=_limit(limit, tokens),
        tokens=_count(tokens, "tokens") if tokens is not None else None,
        vector=None if vector is None else _unit(vector),
    )


def _kinds(kinds: Iterable[str]) -> frozenset[str] | None:
    if kinds == _ALL:
        return None
    chosen = _names(kinds, "kinds")
    if not chosen or set(chosen) - set(_ALL):
        raise InputError(f"kinds {chosen!r} must be some of {', '.join(_ALL)}")
    return None if set(chosen) == set(_ALL) else frozenset(chosen)


def _unit(vector: Any) -> NDArray[np.float32]:
    if isinstance(vector, np.ndarray) and vector.dtype == np.float32 and vector.ndim == 1:
        square = float(np.dot(vector, vector))
        if _TINY < square < _HUGE:
            return np.divide(vector, sqrt(square), dtype=np.float32)
    row: NDArray[np.float32] = to_unit_vectors([vector], "the caller")[0]
    return row


def _limit(limit: int | None, tokens: int | None) -> int:
    if limit is None:
        return DEFAULT_LIMIT if tokens is None else _MOST
    return min(_count(limit, "limit"), _HIGHEST)


def _count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} is {value!r}: it must be a whole number of at least 1")
    return value


def find_recipe(recipe: str | Recipe) -> Recipe:
    """The recipe of a name, or one of your own as it is."""
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str) or recipe not in RECIPES:
        raise InputError(f"there is no recipe {recipe!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[recipe]


def _names(values: str | Iterable[str], name: str) -> tuple[str, ...]:
    if not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of texts, not {type(values).__name__}")
    found = (values,) if isinstance(values, str) else tuple(values)
    if any(not isinstance(value, str) for value in found):
        raise InputError(f"{name} must be texts: {found!r}")
    return found


def _some(values: str | Iterable[str], name: str) -> frozenset[str] | None:
    """No names at all is no condition."""
    return frozenset(_names(values, name)) or None if values else None


def _seconds(value: TimeLike | None, name: str) -> float | None:
    return None if value is None else parse_time(value, name).timestamp()
