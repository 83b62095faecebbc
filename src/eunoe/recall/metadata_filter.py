"""Conditions on metadata: read once, then asked of each memory before anything is ranked.

    {"team": "red"}                          equal
    {"team": {"in": ["red", "blue"]}}        one of several
    {"size": {"gte": 3, "lt": 10}}           a range
    {"team": {"contains": "re"}}             a part of a text, or of a list; `icontains` in any case
    {"team": {"exists": True}}               any value at all
    {"OR": [{"team": "red"}, {"NOT": {"size": 3}}]}

Conditions beside each other all have to hold. A memory without a field fulfils no condition on it but `ne`, `NOT` and
`{"exists": False}`.
"""

import json
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.model.validation import check_flag, show

Where = Mapping[str, Any]
Condition = Callable[[Mapping[str, Any]], bool]

MAX_DEPTH: Final = 20
"""Far deeper than anybody writes; a deeper one would be a mistake or an attack."""

_MISSING: Final = object()
_MAX_EXACT: Final = 10**15
"""A larger number may be written in several ways."""
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


def needed_parts(where: Where) -> tuple[str, ...]:
    """Texts in the JSON, without spaces, of all metadata that fulfils conditions: a store looks for them first.

    >>> needed_parts({"team": "red", "size": {"gte": 3}, "NOT": {"age": 7}})
    ('"team":"red"', '"size":')
    """
    parts: list[str] = []
    for name, value in where.items():
        if name == "AND":
            parts += [part for each in value for part in needed_parts(each)]
        elif name not in _JUNCTIONS:
            operands = value if isinstance(value, Mapping) else {"eq": value}
            parts += [
                _needed_part(name, word, operand) for word, operand in operands.items() if word not in ("ne", "exists")
            ]
    return tuple(part for part in parts if _is_text(part))


def _needed_part(name: str, word: str, operand: Any) -> str:
    """The name, and the value where all that equals it is written alike: not where 3 is 3.0, or 0 is -0.0."""
    key = f"{_dump(name)}:"
    if word != "eq" or not isinstance(operand, str | int | float | None) or operand in (0, False):
        return key
    if isinstance(operand, float) and operand.is_integer():
        operand = int(operand)
    is_huge = isinstance(operand, int | float) and abs(operand) > _MAX_EXACT
    return key if is_huge else key + _dump(operand)


def _is_text(part: str) -> bool:
    return part.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in part)


def _parse_entry(name: str, value: Any, depth: int) -> Condition:
    if not isinstance(name, str):
        raise InputError(f"where has the key {name!r:.40}: name a field of metadata")
    if name in _JUNCTIONS:
        return _parse_junction(name, value, depth)
    if name.startswith("$"):
        raise InputError(f"where has the key {show(name)}: write AND, OR or NOT")
    if name.upper() in _JUNCTIONS and isinstance(value, Mapping | list):
        raise InputError(f"where has the key {name}: write {name.upper()} in capitals")
    operands = value if isinstance(value, Mapping) else {"eq": value}
    if not operands or not operands.keys() <= set(_OPERATORS):
        raise InputError(f"the condition on {name} takes {', '.join(_OPERATORS)}, not {list(operands)!r:.60}")
    return _all([_parse_operator(name, word, operand) for word, operand in operands.items()])


def _parse_junction(name: str, value: Any, depth: int) -> Condition:
    if name == "NOT":
        if not isinstance(value, Mapping):
            raise InputError("NOT takes one condition, such as {'team': 'red'}")
        inner = parse_where(value, depth + 1)
        return lambda metadata: not inner(metadata)
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise InputError(f"{name} takes a list of conditions")
    parts = [parse_where(part, depth + 1) for part in value]
    return _all(parts) if name == "AND" else lambda metadata: any(part(metadata) for part in parts)


def _parse_operator(name: str, word: str, operand: Any) -> Condition:
    if word == "in":
        if not isinstance(operand, Collection) or isinstance(operand, str | bytes | Mapping):
            raise InputError(f"`in` takes a list of values for {name}")
        choices = [_as_json(name, choice) for choice in operand]
        return lambda metadata: any(_is_equal(metadata.get(name, _MISSING), choice) for choice in choices)
    wanted = _as_json(name, operand)
    if word == "eq":
        if isinstance(wanted, str):  # most are, and nothing but a text equals one
            return lambda metadata: metadata.get(name) == wanted
        return lambda metadata: _is_equal(metadata.get(name, _MISSING), wanted)
    if word == "ne":
        return lambda metadata: not _is_equal(metadata.get(name, _MISSING), wanted)
    if word == "exists":
        is_due = check_flag(operand, f"`exists` of {name}")
        return lambda metadata: (name in metadata) == is_due
    if word in _CONTENTS:
        return lambda metadata: _contains(metadata.get(name), wanted, ignore_case=word == "icontains")
    if isinstance(wanted, bool) or not isinstance(wanted, int | float | str):
        raise InputError(f"`{word}` compares numbers or texts; {name} cannot be compared with {operand!r:.40}")
    compare = _COMPARISONS[word]
    types = str if isinstance(wanted, str) else (int, float)

    def condition(metadata: Mapping[str, Any]) -> bool:
        value = metadata.get(name, _MISSING)
        return isinstance(value, types) and not isinstance(value, bool) and compare(value, wanted)

    return condition


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


def _contains(value: Any, operand: Any, ignore_case: bool) -> bool:
    """Whether a text holds another one, or a list an element."""
    if isinstance(value, list):
        return any(_is_equal(*_folded(each, operand, ignore_case)) for each in value)
    text, part = _folded(value, operand, ignore_case)
    return isinstance(text, str) and isinstance(part, str) and part in text


def _folded(value: Any, operand: Any, ignore_case: bool) -> tuple[Any, Any]:
    is_text = isinstance(value, str) and isinstance(operand, str)
    return (value.casefold(), operand.casefold()) if ignore_case and is_text else (value, operand)


def _all(conditions: Sequence[Condition]) -> Condition:
    if len(conditions) == 1:
        return conditions[0]
    if len(conditions) == 2:  # half the time of a loop, and thousands of memories are asked
        first, second = conditions
        return lambda metadata: first(metadata) and second(metadata)
    return lambda metadata: all(each(metadata) for each in conditions)
