"""Which items and namespaces are asked for, decided as LangGraph's `InMemoryStore` does."""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from langgraph.store.base import MatchCondition

from eunoe.errors import InputError
from eunoe.hosts.langgraph.names import Namespace

_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS: Final = frozenset({"$eq", "$ne", *_COMPARISONS})


def fulfils(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether an item's value has all that a filter asks for."""
    return all(_equals(_field(value, name), each) for name, each in wanted.items())


def check_filter(wanted: Any) -> None:
    """Refuse a filter that is none, or that names an operator that there is not."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InputError(f"filter must be a mapping, not {type(wanted).__name__}")
    for name, each in wanted.items():
        if isinstance(name, str) and name.startswith("$") and name not in _OPERATORS:
            raise InputError(f"Unsupported operator: {name}; use {', '.join(sorted(_OPERATORS))}")
        if isinstance(each, Mapping):
            check_filter(each)


def _field(value: Mapping[str, Any], name: str) -> Any:
    """A field by its name; one that no field has leads through dicts, with dots between."""
    if name in value or "." not in name:
        return value.get(name)
    found: Any = value
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_is_true(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, dict) and all(_equals(value.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list) or len(value) != len(wanted):
            return False
        return all(map(_equals, value, wanted))
    return bool(value == wanted)


def _is_true(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    try:
        return _COMPARISONS[name](float(value), float(operand))
    except (TypeError, ValueError):  # what is no number is neither more nor less, as in a database
        return False


def fits(namespace: Namespace, conditions: Iterable[MatchCondition] | None) -> bool:
    """Whether a namespace fulfils all conditions."""
    return all(_fits_one(namespace, condition) for condition in conditions or ())


def _fits_one(namespace: Namespace, condition: MatchCondition) -> bool:
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    count = len(condition.path)
    if count > len(namespace):
        return False
    part = namespace[:count] if condition.match_type == "prefix" else namespace[len(namespace) - count :]
    return all(wanted in ("*", label) for wanted, label in zip(condition.path, part, strict=True))
