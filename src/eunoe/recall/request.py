"""A request to recall, checked: the question, what may be found at all, and how much of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import to_unit_vectors
from eunoe.errors import InputError
from eunoe.index.dense import Bools, Floats
from eunoe.index.stream import StreamIndex
from eunoe.model.arguments import (
    KINDS,
    TimeLike,
    as_list,
    check_choices,
    check_count,
    check_text,
    normalize_path,
    parse_time,
    show,
    utc_now,
)
from eunoe.recall.metadata_filter import Condition, Where, parse_where
from eunoe.recall.ranking_recipes import MAX_BUDGET_MS, RECIPES, Recipe, within_budget

RecipeLike = str | int | Recipe
VectorLike = Sequence[float] | NDArray[Any]
VectorsLike = VectorLike | Sequence[VectorLike]
"""One vector, or a matrix."""

DEFAULT_LIMIT: Final = 10
_MAX_HITS_IN_TOKENS: Final = 1000
"""Where a budget of tokens is the limit."""
_MAX_LIMIT: Final = 2**31
"""A higher limit means the same, and NumPy could not hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conditions that all have to hold; None is no condition, an empty set lets nothing through.

    `since` (inclusive) and `until` (exclusive) are about when a thing was said or happened. `as_of` asks for what
    was true at a moment, `known_at` for what had been recorded and not yet retired by then. `files` may name folders.
    `people` and `speakers` count however they are written. `where` is asked of each item's metadata. `expired` lets
    through what has ended. `excluded` are numbers of records to be left out.
    """

    kinds: frozenset[str] | None = None
    labels: frozenset[str] | None = None
    since: float | None = None
    until: float | None = None
    files: frozenset[str] | None = None
    people: frozenset[str] | None = None
    sessions: frozenset[str] | None = None
    speakers: frozenset[str] | None = None
    as_of: float | None = None
    known_at: float | None = None
    where: Condition | None = None
    expired: bool = False
    excluded: frozenset[int] = frozenset()

    def mask(self, index: StreamIndex, now: float) -> Bools:
        """Which rows of an index pass; not to be written to."""
        mask = self._valid_rows(index, now)
        if index.outdated is not None and self.as_of is None and self.known_at is None:
            mask = mask & ~index.outdated
        for column, values in (("kind", self.kinds), ("label", self.labels), ("session", self.sessions)):
            if values is not None:
                mask = mask & index.rows_with(column, values)
        if self.speakers is not None:
            mask = mask & index.rows_said_by(self.speakers)
        if self.people is not None:
            mask = mask & (index.rows_naming_people(self.people) | index.rows_said_by(self.people))
        if self.since is not None:
            mask = mask & (index.columns["time"] >= self.since)
        if self.until is not None:
            mask = mask & (index.columns["time"] < self.until)
        if self.files is not None:
            mask = mask & index.rows_naming_files(self.files)
        if self.where is not None:
            mask = mask & _fulfilling(index, self.where)
        if self.excluded:
            mask = mask.copy()
            mask[[index.row_of[seq] for seq in self.excluded if seq in index.row_of]] = False
        return mask

    def _valid_rows(self, index: StreamIndex, now: float) -> Bools:
        """What was true at the moment asked about, and known: from `valid_from` on, up to and without `valid_to`."""
        if self.as_of is None and self.known_at is None and not index.has_ends:
            return index.open
        columns = index.columns
        retired, valid_to = columns["retired"], columns["valid_to"]
        asked = self.as_of if self.as_of is not None else self.known_at
        moment = now if asked is None else asked
        has_ended = (valid_to <= moment) & (not self.expired)
        if self.known_at is None:
            # What was superseded may still be true at the moment asked about. Without one that is the present, which
            # what was closed since the recall began has left, too.
            present = moment if self.as_of is not None else np.fmax(moment, retired)
            is_known = np.isnan(retired) | (valid_to > present)
        else:
            has_ended &= ~(retired > self.known_at)  # an end that was recorded later was not known then
            is_known = ~(retired <= self.known_at)
            if self.as_of is not None:
                is_known |= valid_to > self.as_of
            is_known &= columns["recorded"] <= self.known_at
        has_begun = True if asked is None else ~(columns["valid_from"] > moment)
        mask: Bools = ~has_ended & has_begun & is_known & ~columns["in_review"]
        return mask


def _fulfilling(index: StreamIndex, where: Condition) -> Bools:
    mask = np.full(index.rows, where({}))
    rows = index.row_of
    described = [(rows[seq], where(metadata)) for seq, metadata in (index.metadata or {}).items() if seq in rows]
    mask[[row for row, _ in described]] = [is_fulfilled for _, is_fulfilled in described]
    return mask


NO_FILTER: Final = Filter()
"""Everything that is true now."""


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """What to look for, among what, and how much of it."""

    query: str
    filter: Filter
    recipe: Recipe
    now: float
    limit: int
    tokens: int | None
    vector: Floats | None


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
    recipe: RecipeLike,
    vector: VectorLike | None,
    expired: bool,
) -> RecallRequest:
    if not check_text(query, "query").strip():
        raise InputError("the query is empty: ask something, or use list to read everything")
    chosen_kinds = KINDS if kinds == KINDS else check_choices(kinds, "kinds", KINDS)
    paths = _name_set(files, "files")
    if limit is None:
        limit = DEFAULT_LIMIT if tokens is None else _MAX_HITS_IN_TOKENS
    return RecallRequest(
        query=query,
        filter=Filter(
            kinds=None if len(set(chosen_kinds)) == len(KINDS) else frozenset(chosen_kinds),
            labels=_name_set(labels, "labels"),
            since=_seconds(since, "since"),
            until=_seconds(until, "until"),
            files=frozenset(map(normalize_path, paths)) if paths else None,
            people=_name_set(people, "people"),
            sessions=_name_set(sessions, "sessions"),
            speakers=_name_set(speakers, "speakers"),
            where=None if where is None else parse_where(where),
            as_of=_seconds(as_of, "as_of"),
            known_at=_seconds(known_at, "known_at"),
            expired=expired,
        ),
        recipe=find_recipe(recipe),
        now=(utc_now() if now is None else parse_time(now, "now")).timestamp(),
        limit=min(check_count(limit, "limit"), _MAX_LIMIT),
        tokens=None if tokens is None else check_count(tokens, "tokens"),
        vector=None if vector is None else to_unit_vectors([vector], "the caller")[0],
    )


def find_recipe(recipe: RecipeLike) -> Recipe:
    """The recipe of a name, one of your own as it is, or `thorough` within a number of milliseconds."""
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, int) and not isinstance(recipe, bool) and 1 <= recipe <= MAX_BUDGET_MS:
        return within_budget(recipe)
    if not isinstance(recipe, str) or recipe not in RECIPES:
        raise InputError(
            f"there is no recipe {show(recipe)}: choose one of {', '.join(RECIPES)}, "
            f"or give a whole number of milliseconds for reading, from 1 to {MAX_BUDGET_MS:,}"
        )
    return RECIPES[recipe]


def _name_set(values: str | Iterable[str], name: str) -> frozenset[str] | None:
    """No names at all is no condition."""
    names = tuple(as_list(values, name))
    if any(not isinstance(value, str) for value in names):
        raise InputError(f"{name} must be texts: {show(names)}")
    return frozenset(names) or None


def _seconds(value: TimeLike | None, name: str) -> float | None:
    return None if value is None else parse_time(value, name).timestamp()
