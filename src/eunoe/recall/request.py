"""Requests to recall, checked: the question, what may be found at all, and how much of it."""

import json
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import to_unit_vectors
from eunoe.errors import InputError
from eunoe.index.stream import StreamIndex
from eunoe.index.tables import Bools, Floats
from eunoe.model.arguments import (
    CONTEXT_FORMATS,
    KINDS,
    LOOKUP_MODES,
    ContextFormat,
    LookupMode,
    TimeLike,
    as_list,
    check_choice,
    check_choices,
    check_count,
    check_flag,
    check_text,
    normalize_path,
    parse_time,
    show,
    utc_now,
)
from eunoe.model.atom import NO_BOUNDS, Bounds
from eunoe.model.scope import Scope
from eunoe.recall.recipes import MAX_BUDGET_MS, RECIPES, Recipe, within_budget
from eunoe.text.normalize import replace_surrogates
from eunoe.text.sentences import CHARACTERS_PER_TOKEN

Where = Mapping[str, Any]
Condition = Callable[[Mapping[str, Any]], bool]

_MAX_DEPTH: Final = 20
"""Far deeper than anybody writes; a deeper one would be a mistake or an attack."""

_MISSING: Final = object()
_MAX_EXACT: Final = 10**15
"""A larger number may be written in several ways, and 0 as -0.0."""
_dump: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_CONTENTS: Final = ("contains", "icontains")
_OPERATORS: Final = ("eq", "ne", "in", *_COMPARISONS, *_CONTENTS, "exists")
_JUNCTIONS: Final = ("AND", "OR", "NOT")


def parse_where(where: Where, depth: int = 0) -> Condition:
    """Read conditions on metadata; raise InputError if they are not understood.

        {"team": "red"}                          equal
        {"team": {"in": ["red", "blue"]}}        one of several
        {"size": {"gte": 3, "lt": 10}}           a range
        {"team": {"contains": "re"}}             a part of a text, or of a list; `icontains` in any case
        {"team": {"exists": True}}               any value at all
        {"address.city": "Rome"}                 a field of a field
        {"OR": [{"team": "red"}, {"NOT": {"size": 3}}]}

    Conditions beside each other all have to hold. A memory without a field fulfils no condition on it but `ne`, `NOT`
    and `{"exists": False}`.

    >>> condition = parse_where({"team": "red", "size": {"gte": 3}})
    >>> condition({"team": "red", "size": 4}), condition({"team": "red", "size": 2}), condition({"team": "red"})
    (True, False, False)
    """
    if not isinstance(where, Mapping) or not where:
        raise InputError(f"where must be a mapping such as {{'team': 'red'}}, not {where!r:.60}")
    if depth > _MAX_DEPTH:
        raise InputError(f"where is nested more than {_MAX_DEPTH} levels deep")
    return _all([_parse_entry(name, value, depth) for name, value in where.items()])


Parts = tuple[str, ...]
"""Texts of which one has to stand in the JSON of metadata."""


def needed_parts(where: Where) -> tuple[Parts, ...]:
    """Texts in the JSON, without spaces, of all metadata that fulfils conditions: a store looks for them first.

    >>> needed_parts({"team": "red", "size": {"gte": 3}, "NOT": {"age": 7}})
    (('"team":"red"',), ('"size":',))
    """
    parts: list[Parts] = []
    for name, value in where.items():
        if name == "AND":
            parts += [part for each in value for part in needed_parts(each)]
        elif name not in _JUNCTIONS:
            operands = value if isinstance(value, Mapping) else {"eq": value}
            for word, operand in operands.items():
                parts += _operand_parts(name, word, operand) if word not in ("ne", "exists") else ()
    # What holds half a sign is found by nobody who looks for whole ones.
    is_text = re.compile("[^\ud800-\udfff]*").fullmatch
    return tuple(each for each in parts if all(map(is_text, each)))


def _operand_parts(name: str, word: str, operand: Any) -> list[Parts]:
    """The name, and the value where it is known how all that equals it is written."""
    *path, last = name.split(".")
    key = f"{_dump(last)[1:] if path else _dump(name)}:"  # at the end of a path, or of a name that has dots
    if word == "eq" and isinstance(operand, str | bool | None):
        return [(key + _dump(operand),)]
    if word != "eq" or not isinstance(operand, int | float) or not 0 < abs(operand) < _MAX_EXACT:
        return [(key,)]
    start = key + _dump(int(operand) if operand == int(operand) else operand)
    ends = (",", "}", ".0,", ".0}") if operand == int(operand) else (",", "}")
    return [(start,), tuple(start + end for end in ends)]


def _parse_entry(name: str, value: Any, depth: int) -> Condition:
    if not isinstance(name, str):
        raise InputError(f"where has the key {name!r:.40}: name a field of metadata")
    if name == "NOT":
        if not isinstance(value, Mapping):
            raise InputError("NOT takes one condition, such as {'team': 'red'}")
        inner = parse_where(value, depth + 1)
        return lambda metadata: not inner(metadata)
    if name in _JUNCTIONS:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise InputError(f"{name} takes a list of conditions")
        parts = [parse_where(part, depth + 1) for part in value]
        return _all(parts) if name == "AND" else lambda metadata: any(part(metadata) for part in parts)
    if name.startswith("$"):
        raise InputError(f"where has the key {show(name)}: write AND, OR or NOT")
    if name.upper() in _JUNCTIONS and isinstance(value, Mapping | list):
        raise InputError(f"where has the key {name}: write {name.upper()} in capitals")
    operands = value if isinstance(value, Mapping) else {"eq": value}
    if not operands or not operands.keys() <= set(_OPERATORS):
        raise InputError(f"the condition on {name} takes {', '.join(_OPERATORS)}, not {list(operands)!r:.60}")
    return _all([_condition_on(name, _parse_operator(name, word, operand)) for word, operand in operands.items()])


def _condition_on(name: str, test: Callable[[Any], bool]) -> Condition:
    return lambda metadata: test(_value(metadata, name))


def _parse_operator(name: str, word: str, operand: Any) -> Callable[[Any], bool]:
    """The test that one operator makes of a value."""
    if word == "in":
        if not isinstance(operand, Collection) or isinstance(operand, str | bytes | Mapping):
            raise InputError(f"`in` takes a list of values for {name}")
        choices = [_as_json(name, choice) for choice in operand]
        return lambda value: any(_is_equal(value, choice) for choice in choices)
    wanted = _as_json(name, operand)
    if word == "eq":  # most are texts, and nothing but a text equals one
        return (lambda value: bool(value == wanted)) if isinstance(wanted, str) else partial(_is_equal, wanted)
    if word == "ne":
        return lambda value: not _is_equal(value, wanted)
    if word == "exists":
        is_due = check_flag(operand, f"`exists` of {name}")
        return lambda value: (value is not _MISSING) == is_due
    if word in _CONTENTS:
        return partial(_is_contained, wanted, word == "icontains")
    if isinstance(wanted, bool) or not isinstance(wanted, int | float | str):
        raise InputError(f"`{word}` compares numbers or texts; {name} cannot be compared with {operand!r:.40}")
    compare, types = _COMPARISONS[word], str if isinstance(wanted, str) else (int, float)
    return lambda value: isinstance(value, types) and not isinstance(value, bool) and compare(value, wanted)


def _value(metadata: Mapping[str, Any], name: str) -> Any:
    """The value of a field. A dot leads into another mapping, unless the name as a whole is there."""
    if name in metadata or "." not in name:
        return metadata.get(name, _MISSING)
    value: Any = metadata
    for part in name.split("."):
        value = value.get(part, _MISSING) if isinstance(value, Mapping) else _MISSING
    return value


def _as_json(name: str, operand: Any) -> Any:
    """The operand as metadata would hold it: what JSON cannot say, no metadata can equal."""
    try:
        return json.loads(json.dumps(operand, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        compared = f"where: {show(name)} cannot be compared with {show(operand)}"
        raise InputError(f"{compared}, which is no JSON value") from None


def _is_equal(value: Any, operand: Any) -> bool:
    """1 and True are different in JSON."""
    return isinstance(value, bool) == isinstance(operand, bool) and bool(value == operand)


def _is_contained(part: Any, ignore_case: bool, value: Any) -> bool:
    """Whether a text holds another one, or a list an element."""

    def folded(each: Any) -> Any:
        return each.casefold() if ignore_case and isinstance(each, str) else each

    if isinstance(value, list):
        return any(_is_equal(folded(each), folded(part)) for each in value)
    return isinstance(value, str) and isinstance(part, str) and folded(part) in folded(value)


def _all(conditions: Sequence[Condition]) -> Condition:
    if len(conditions) == 1:
        return conditions[0]
    if len(conditions) == 2:  # half the time of a loop, and thousands of memories are asked
        first, second = conditions
        return lambda metadata: first(metadata) and second(metadata)
    return lambda metadata: all(each(metadata) for each in conditions)


RecipeLike = str | int | Recipe
VectorLike = Sequence[float] | NDArray[Any]
VectorsLike = VectorLike | Sequence[VectorLike]
"""One vector, or a matrix."""

DEFAULT_LIMIT: Final = 10
_MAX_HITS_IN_TOKENS: Final = 1000
"""Where a budget of tokens is the limit."""
MAX_LIMIT: Final = 2**31
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
            fulfilled = np.full(index.rows, self.where({}))
            for seq, metadata in (index.metadata or {}).items():
                if seq in index.row_of:
                    fulfilled[index.row_of[seq]] = self.where(metadata)
            mask = mask & fulfilled
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
    tokens: int | None = None
    vector: Floats | None = None


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
        limit=min(check_count(limit, "limit"), MAX_LIMIT),
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


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A checked request for a context."""

    scope: Scope
    message: str
    users: tuple[str, ...]
    tokens: int | None
    limit: int | None
    lookup: LookupMode
    recipe: Recipe
    format: ContextFormat
    sources: bool
    now: datetime
    bounds: Bounds = NO_BOUNDS
    """What may be looked at beside the conversation's own scope."""

    @property
    def looks_up(self) -> bool:
        """Whether something is to be recalled for the message."""
        return self.lookup == "auto" and bool(self.message.strip())

    @property
    def budget(self) -> float | None:
        """How wide the text may be (`text_width`)."""
        return None if self.tokens is None else self.tokens * CHARACTERS_PER_TOKEN

    def static_budget(self, looks_up: bool) -> float | None:
        """The part of it that the static context may take: all, or two fifths, the same for every message looked up."""
        if self.budget is None or not looks_up:
            return self.budget
        return self.budget * 4 // 5 / 2


def parse_context_request(
    scope: Scope,
    message: str,
    *,
    users: tuple[str, ...],
    tokens: int | None,
    limit: int | None,
    lookup: str,
    recipe: RecipeLike,
    format: str,
    sources: bool,
    now: TimeLike | None,
    bounds: Bounds = NO_BOUNDS,
) -> ContextRequest:
    if not isinstance(message, str):
        raise InputError(f"the message must be text, not {type(message).__name__}")
    return ContextRequest(
        scope=scope,
        message=replace_surrogates(message),  # it is not stored, so that half a sign in it is no reason to refuse it
        users=users,
        tokens=None if tokens is None else check_count(tokens, "tokens"),
        limit=None if limit is None else check_count(limit, "limit"),
        lookup=check_choice(lookup, "recall", LOOKUP_MODES),
        recipe=find_recipe(recipe),
        format=check_choice(format, "format", CONTEXT_FORMATS),
        sources=sources,
        now=utc_now() if now is None else parse_time(now, "now"),
        bounds=bounds,
    )
