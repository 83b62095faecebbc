"""mem0's filters: what they say about whose memory is meant picks scopes, the rest becomes conditions on metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.hosts.mem0.arguments import ANY, OWNERS, OwnerMissingError, parse_owner_id
from eunoe.hosts.mem0.results import TIMES, to_field, to_utc
from eunoe.model.arguments import show
from eunoe.model.scope import Scope

_OPERATORS: Final = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains"})
_LOGICAL: Final = {"$and": "AND", "$or": "OR", "$not": "NOT"}
_MAX_DEPTH: Final = 16
_NOBODY: Final = (
    "filters must contain at least one of: user_id, agent_id, run_id. Example: filters={'user_id': 'u1'}; "
    "each part of an OR must name at least one of them"
)
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
        raise OwnerMissingError(_NOBODY)
    return {"AND": [beside, own]} if beside and own else beside or own


def own_keys(filters: Mapping[str, Any]) -> dict[str, str]:
    """The keys and values that every scope that filters mean must have, as far as that is plain to see."""
    keys = {OWNERS[name]: value for name, value in filters.items() if name in OWNERS and isinstance(value, str)}
    for part in filters.get("AND", ()):
        keys = own_keys(part) | keys
    return keys


def rest_of(filters: Mapping[str, Any], scope: Scope) -> Rest:
    """What is left of filters for memories of a scope: conditions on their metadata, or true or false."""
    return _join("AND", (_rest(name, value, scope) for name, value in filters.items()))


def _parse(filters: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise InputError("filters: nested too deeply")
    parsed: dict[str, Any] = {}
    for given, value in filters.items():
        name = _LOGICAL.get(given, given)
        if name in parsed:
            raise InputError(f"filters: {name} is there twice: join both with AND")
        if name in _LOGICAL.values():
            parts = [value] if isinstance(value, Mapping) else value
            if not isinstance(parts, list) or not all(isinstance(each, Mapping) for each in parts):
                raise InputError(f"{name} operator requires a list of conditions")
            if not parts and name != "AND":
                raise InputError(f"{name} operator requires a non-empty list of conditions")
            parsed[name] = [_parse(part, depth + 1) for part in parts]
        elif name in OWNERS:
            parsed[name] = _parse_owner_condition(name, value)
        else:
            parsed[name] = {"in": value} if isinstance(value, list) else value
    return parsed


def _parse_owner_condition(name: str, value: Any) -> Any:
    """An id, conditions on it, or None, which no id fits."""
    if value == ANY:
        return _ANYBODY
    if not isinstance(value, Mapping | list):
        return parse_owner_id(value, name)
    if value == {}:
        raise OwnerMissingError(f"filters: {name} is an empty dict: name an id, or conditions on it")
    parsed: dict[str, Any] = {}
    for word, operand in ({"in": value} if isinstance(value, list) else value).items():
        if word not in ("eq", "ne", "in", "nin"):
            raise InputError(f"Unsupported metadata filter operator: {show(word)}; an id takes eq, ne, in and nin")
        if isinstance(operand, list) != (word in ("in", "nin")):
            raise InputError(f"filters: `{word}` of {name} takes {'an id' if word in ('eq', 'ne') else 'a list'}")
        ids = [parse_owner_id(each, name) for each in (operand if isinstance(operand, list) else [operand])]
        if None in ids:
            raise InputError(f"Invalid {name}: None is no identifier.")
        parsed[word] = ids if isinstance(operand, list) else ids[0]
    return parsed


def _names_owner(filters: Mapping[str, Any]) -> bool:
    """Whether filters say whose memory is meant, rather than whose is not: an OR does if each of its parts does."""
    for name in OWNERS:
        condition = filters.get(name)
        if isinstance(condition, Mapping):
            if condition is _ANYBODY or "eq" in condition or "in" in condition:
                return True
        elif condition is not None:
            return True
    parts = filters.get("OR") or ()
    return any(map(_names_owner, filters.get("AND", ()))) or (bool(parts) and all(map(_names_owner, parts)))


def _rest(name: str, value: Any, scope: Scope) -> Rest:
    if name in OWNERS:
        own = scope.pairs.get(OWNERS[name])
        if not isinstance(value, Mapping):
            return own is not None and own == value
        met = {word: own == operand if word in ("eq", "ne") else own in operand for word, operand in value.items()}
        return all(is_so == (word in ("eq", "in")) for word, is_so in met.items())
    if name in ("AND", "OR"):
        return _join(name, (rest_of(each, scope) for each in value))
    if name == "NOT":
        rests = (rest_of(each, scope) for each in value)
        return _join("AND", (not rest if isinstance(rest, bool) else {"NOT": rest} for rest in rests))
    return _condition(name, value)


def _condition(name: str, value: Any) -> Rest:
    field = to_field(name)
    if value == ANY:
        return {field: {"exists": True, "ne": None}}
    wanted = dict(value) if isinstance(value, Mapping) else {"eq": value}
    if unknown := sorted(map(str, wanted.keys() - _OPERATORS)):
        raise InputError(f"Unsupported metadata filter operator: {show(unknown[0])}")
    parts: list[Rest] = [{"NOT": {field: {"in": wanted.pop("nin")}}}] if "nin" in wanted else []
    if wanted:
        times = {word: to_utc(operand, name) for word, operand in wanted.items()}
        parts.insert(0, {field: times if name in TIMES else wanted})
    return _join("AND", parts)


def _join(word: str, parts: Iterable[Rest]) -> Rest:
    """AND or OR of parts, of which some are decided already."""
    every, decisive = list(parts), word == "OR"
    left = [each for each in every if not isinstance(each, bool)]
    if not left or any(each is decisive for each in every):
        return decisive if any(each is decisive for each in every) else not decisive
    return left[0] if len(left) == 1 else {word: left}
