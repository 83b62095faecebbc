"""Conditions on metadata: read once, then asked of each memory before anything is ranked.

    {"team": "red"}                          equal
    {"team": {"in": ["red", "blue"]}}        one of several
    {"size": {"gte": 3, "lt": 10}}           a range
    {"team": {"contains": "re"}}             a part of a text, or of a list; `icontains` in any case
    {"team": {"exists": True}}               any value at all
    {"address.city": "Rome"}                 a field of a field
    {"OR": [{"team": "red"}, {"NOT": {"size": 3}}]}

Conditions beside each other all have to hold. A memory without a field fulfils no condition on it but `ne`, `NOT` and
`{"exists": False}`.
"""

import json
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.model.arguments import check_flag, show

Where = Mapping[str, Any]
Condition = Callable[[Mapping[str, Any]], bool]

MAX_DEPTH: Final = 20
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
    return tuple(each for each in parts if all(map(_is_text, each)))


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
        return lambda metadata: any(_is_equal(_value(metadata, name), choice) for choice in choices)
    wanted = _as_json(name, operand)
    if word == "eq":
        if isinstance(wanted, str):  # most are, and nothing but a text equals one
            return lambda metadata: _value(metadata, name) == wanted
        return lambda metadata: _is_equal(_value(metadata, name), wanted)
    if word == "ne":
        return lambda metadata: not _is_equal(_value(metadata, name), wanted)
    if word == "exists":
        is_due = check_flag(operand, f"`exists` of {name}")
        return lambda metadata: (_value(metadata, name) is not _MISSING) == is_due
    if word in _CONTENTS:
        return lambda metadata: _contains(_value(metadata, name), wanted, ignore_case=word == "icontains")
    if isinstance(wanted, bool) or not isinstance(wanted, int | float | str):
        raise InputError(f"`{word}` compares numbers or texts; {name} cannot be compared with {operand!r:.40}")
    compare = _COMPARISONS[word]
    types = str if isinstance(wanted, str) else (int, float)

    def condition(metadata: Mapping[str, Any]) -> bool:
        value = _value(metadata, name)
        return isinstance(value, types) and not isinstance(value, bool) and compare(value, wanted)

    return condition


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
