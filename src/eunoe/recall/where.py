"""Conditions on metadata: read once, then asked of each memory before anything is ranked.

    {"team": "red"}                          equal
    {"team": {"in": ["red", "blue"]}}        one of several
    {"size": {"gte": 3, "lt": 10}}           a range
    {"OR": [{"team": "red"}, {"NOT": {"size": 3}}]}

Conditions beside each other all have to hold. A memory without a field fulfils no condition on it but `ne` and `NOT`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from eunoe.errors import InputError

Where = Mapping[str, Any]
Condition = Callable[[Mapping[str, Any]], bool]

MAX_DEPTH: Final = 20
"""Far deeper than anybody writes; a deeper one would be a mistake or an attack."""

_MISSING: Final = object()
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_OPERATORS: Final = ("eq", "ne", "in", *_COMPARISONS)


def parse_where(where: Where, depth: int = 0) -> Condition:
    """Read conditions; raise InputError if they are not understood.

    >>> condition = parse_where({"team": "red", "size": {"gte": 3}})
    >>> condition({"team": "red", "size": 4}), condition({"team": "red", "size": 2}), condition({"team": "red"})
    (True, False, False)
    """
    if not isinstance(where, Mapping) or not where:
        raise InputError(f"where must be a mapping such as {{'team': 'red'}}, not {where!r:.60}")
    if depth > MAX_DEPTH:
        raise InputError(f"where is nested more than {MAX_DEPTH} levels deep")
    return _all([_parse_entry(name, value, depth) for name, value in where.items()])


def _parse_entry(name: str, value: Any, depth: int) -> Condition:
    if not isinstance(name, str):
        raise InputError(f"where has the key {name!r:.40}: name a field of metadata")
    if name in ("AND", "OR"):
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise InputError(f"{name} takes a list of conditions")
        parts = [parse_where(part, depth + 1) for part in value]
        return _all(parts) if name == "AND" else _any(parts)
    if name == "NOT":
        inner = parse_where(value, depth + 1)
        return lambda metadata: not inner(metadata)
    if isinstance(value, Mapping):
        if not value or not value.keys() <= set(_OPERATORS):
            raise InputError(f"the condition on {name} takes {', '.join(_OPERATORS)}, not {list(value)!r:.60}")
        return _all([_parse_operator(name, word, operand) for word, operand in value.items()])
    return _parse_operator(name, "eq", value)


def _parse_operator(name: str, word: str, operand: Any) -> Condition:
    if word == "eq":
        return lambda metadata: _is_equal(metadata.get(name, _MISSING), operand)
    if word == "ne":
        return lambda metadata: not _is_equal(metadata.get(name, _MISSING), operand)
    if word == "in":
        if not isinstance(operand, Sequence) or isinstance(operand, str):
            raise InputError(f"`in` takes a list of values for {name}")
        return lambda metadata: any(_is_equal(metadata.get(name, _MISSING), each) for each in operand)
    if isinstance(operand, bool) or not isinstance(operand, int | float | str):
        raise InputError(f"`{word}` compares numbers or texts; {name} cannot be compared with {operand!r:.40}")
    compare = _COMPARISONS[word]
    kinds = str if isinstance(operand, str) else (int, float)

    def condition(metadata: Mapping[str, Any]) -> bool:
        value = metadata.get(name, _MISSING)
        return isinstance(value, kinds) and not isinstance(value, bool) and compare(value, operand)

    return condition


def _is_equal(value: Any, operand: Any) -> bool:
    """1 and True are different in JSON."""
    return isinstance(value, bool) == isinstance(operand, bool) and bool(value == operand)


def _all(conditions: Sequence[Condition]) -> Condition:
    return lambda metadata: all(condition(metadata) for condition in conditions)


def _any(conditions: Sequence[Condition]) -> Condition:
    return lambda metadata: any(condition(metadata) for condition in conditions)
