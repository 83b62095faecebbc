"""mem0's filters: what they say about whose memory is meant picks scopes, the rest becomes conditions on metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.hosts.mem0.arguments import ANY, OWNERS, parse_owner_id
from eunoe.hosts.mem0.exceptions import OwnerMissingError
from eunoe.hosts.mem0.payload import TIMES, to_field, to_utc
from eunoe.model.arguments import show
from eunoe.model.scope import Scope

_OPERATORS: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "contains", "icontains")
_LOGICAL: Final = {"$and": "AND", "$or": "OR", "$not": "NOT"}
_MAX_DEPTH: Final = 16
_NOBODY: Final = "filters must contain at least one of: user_id, agent_id, run_id. Example: filters={'user_id': 'u1'}"
_NOBODY_IN_PART: Final = "filters: each part of an OR must name at least one of: user_id, agent_id, run_id"
_ANYBODY: Final[Mapping[str, Any]] = {"ne": None}
"""What a star in the place of an id means."""

Rest = dict[str, Any] | bool
"""Conditions on metadata that are left, or whether all are met."""


def parse_filters(filters: object, ids: Mapping[str, object]) -> dict[str, Any]:
    """Read filters and the ids that older programs give beside them; raise if they leave open whose memory is meant."""
    if filters is not None and not isinstance(filters, Mapping):
        raise InputError(f"filters must be a dict, not {type(filters).__name__}")
    own = _parse(filters or {})
    beside = {name: value for name in OWNERS if (value := parse_owner_id(ids.get(name), name))}
    if not beside and not _names_owner(own):
        raise OwnerMissingError(_NOBODY_IN_PART if _has_or(own) else _NOBODY)
    return {"AND": [beside, own]} if beside and own else beside or own


def own_keys(filters: Mapping[str, Any]) -> dict[str, str]:
    """The keys and values that every scope that filters mean must have, as far as that is plain to see."""
    keys = {OWNERS[name]: value for name, value in filters.items() if name in OWNERS and isinstance(value, str)}
    for part in filters.get("AND", ()):
        keys = own_keys(part) | keys
    return keys


def rest_of(filters: Mapping[str, Any], scope: Scope) -> Rest:
    """What is left of filters for memories of a scope: conditions on their metadata, or true or false."""
    return _all(_rest(name, value, scope) for name, value in filters.items())


def _parse(filters: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise InputError("filters: nested too deeply")
    parsed: dict[str, Any] = {}
    for given, value in filters.items():
        name = _LOGICAL.get(given, given)
        if name in parsed:
            raise InputError(f"filters: {name} is there twice: join both with AND")
        if name in _LOGICAL.values():
            parsed[name] = [_parse(part, depth + 1) for part in _parts(name, value)]
        elif name in OWNERS:
            parsed[name] = _parse_owner_condition(name, value)
        else:
            parsed[name] = {"in": value} if isinstance(value, list) else value
    return parsed


def _parse_owner_condition(name: str, value: Any) -> Any:
    """An id, conditions on it, or None, which no id fits."""
    if value == ANY:
        return _ANYBODY
    if isinstance(value, list):
        return {"in": [_require_id(each, name) for each in value]}
    if not isinstance(value, Mapping):
        return parse_owner_id(value, name)
    if not value:
        raise OwnerMissingError(f"filters: {name} is an empty dict: name an id, or conditions on it")
    return {word: _parse_operand(name, word, operand) for word, operand in value.items()}


def _parse_operand(name: str, word: str, operand: Any) -> str | list[str]:
    if word in ("eq", "ne"):
        return _require_id(operand, name)
    if word not in ("in", "nin"):
        raise InputError(f"Unsupported metadata filter operator: {show(word)}; an id takes eq, ne, in and nin")
    if not isinstance(operand, list):
        raise InputError(f"filters: `{word}` takes a list")
    return [_require_id(each, name) for each in operand]


def _require_id(value: Any, name: str) -> str:
    if (id := parse_owner_id(value, name)) is None:
        raise InputError(f"Invalid {name}: None is no identifier.")
    return id


def _names_owner(filters: Mapping[str, Any]) -> bool:
    """Whether filters say whose memory is meant: an OR does if each of its parts does."""
    return (
        any(_is_named(filters.get(name)) for name in OWNERS)
        or any(map(_names_owner, filters.get("AND", ())))
        or (bool(filters.get("OR")) and all(map(_names_owner, filters["OR"])))
    )


def _is_named(condition: Any) -> bool:
    """Whether a condition says who is meant, rather than who is not."""
    if isinstance(condition, Mapping):
        return condition is _ANYBODY or "eq" in condition or "in" in condition
    return condition is not None


def _has_or(filters: Mapping[str, Any]) -> bool:
    return "OR" in filters or any(map(_has_or, filters.get("AND", ())))


def _rest(name: str, value: Any, scope: Scope) -> Rest:
    if name in OWNERS:
        return _fits(scope.pairs.get(OWNERS[name]), value)
    if name == "AND":
        return _all(rest_of(each, scope) for each in value)
    if name == "OR":
        return _any(rest_of(each, scope) for each in value)
    if name == "NOT":
        return _all(_none(rest_of(each, scope)) for each in value)
    return _condition(name, value)


def _parts(name: str, value: Any) -> list[Mapping[str, Any]]:
    parts = [value] if isinstance(value, Mapping) else value
    if not isinstance(parts, list) or not all(isinstance(each, Mapping) for each in parts):
        raise InputError(f"{name} operator requires a list of conditions")
    if not parts and name != "AND":
        raise InputError(f"{name} operator requires a non-empty list of conditions")
    return parts


def _fits(own: str | None, condition: Any) -> bool:
    if not isinstance(condition, Mapping):
        return own is not None and own == condition
    return all(_is_met(own, word, operand) for word, operand in condition.items())


def _is_met(own: str | None, word: str, operand: Any) -> bool:
    if word in ("eq", "ne"):
        return bool(own == operand) == (word == "eq")
    return bool(own in operand) == (word == "in")


def _condition(name: str, value: Any) -> Rest:
    field = to_field(name)
    if value == ANY:
        return {field: {"exists": True, "ne": None}}
    wanted = value if isinstance(value, Mapping) else {"eq": value}
    if unknown := sorted(map(str, wanted.keys() - {*_OPERATORS, "nin"})):
        raise InputError(f"Unsupported metadata filter operator: {show(unknown[0])}")
    kept = {
        word: to_utc(operand, name) if name in TIMES else operand for word, operand in wanted.items() if word != "nin"
    }
    parts: list[Rest] = [{field: kept}] if kept else []
    return _all([*parts, {"NOT": {field: {"in": wanted["nin"]}}}] if "nin" in wanted else parts)


def _all(parts: Iterable[Rest]) -> Rest:
    every = list(parts)
    left = [each for each in every if not isinstance(each, bool)]
    if any(each is False for each in every) or not left:
        return all(each is not False for each in every)
    return left[0] if len(left) == 1 else {"AND": left}


def _any(parts: Iterable[Rest]) -> Rest:
    every = list(parts)
    left = [each for each in every if not isinstance(each, bool)]
    if any(each is True for each in every) or not left:
        return any(each is True for each in every)
    return left[0] if len(left) == 1 else {"OR": left}


def _none(part: Rest) -> Rest:
    return not part if isinstance(part, bool) else {"NOT": part}
