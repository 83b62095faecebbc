"""mem0's filters: what they say about whose memory is meant picks scopes, the rest becomes conditions on metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.model.scope import Scope
from eunoe.model.validation import show

OWNERS: Final[Mapping[str, str]] = {"user_id": "user", "agent_id": "agent", "run_id": "session"}
"""How mem0 calls the keys of scopes."""
_ANY: Final = "*"
_OPERATORS: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in")
_MAX_DEPTH: Final = 16

Rest = dict[str, Any] | bool
"""Conditions on metadata that are left, or whether all are met."""


def names_owner(filters: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether filters say whose memory is meant at all."""
    if depth > _MAX_DEPTH:
        raise InputError("filters: nested too deeply")
    inner = (each for name in ("AND", "OR") for each in _parts(filters.get(name, [])))
    return bool(OWNERS.keys() & filters.keys()) or any(names_owner(each, depth + 1) for each in inner)


def rest_of(filters: Mapping[str, Any], scope: Scope) -> Rest:
    """What is left of filters for memories of a scope: conditions on their metadata, or true or false."""
    return _all(_rest(name, value, scope) for name, value in filters.items())


def _rest(name: str, value: Any, scope: Scope) -> Rest:
    if name in OWNERS:
        return _fits(scope.pairs.get(OWNERS[name]), value)
    if name == "AND":
        return _all(rest_of(each, scope) for each in _parts(value))
    if name == "OR":
        return _any(rest_of(each, scope) for each in _parts(value))
    if name == "NOT":
        return _all(_none(rest_of(each, scope)) for each in _parts(value))
    return _condition(name, value)


def _parts(value: Any) -> list[Mapping[str, Any]]:
    parts = [value] if isinstance(value, Mapping) else value
    if not isinstance(parts, list) or not all(isinstance(each, Mapping) for each in parts):
        raise InputError("filters: AND, OR and NOT take a list of filters")
    return parts


def _fits(own: str | None, value: Any) -> bool:
    wanted = value if isinstance(value, Mapping) else {"eq": value}
    if wanted.keys() - {"eq", "ne", "in", "nin"}:
        raise InputError(f"filters: an id takes eq, ne, in and nin, not {show(sorted(wanted))}")
    return all(_is_met(own, word, operand) for word, operand in wanted.items())


def _is_met(own: str | None, word: str, operand: Any) -> bool:
    if word in ("eq", "ne"):
        return (own is not None and operand in (_ANY, own)) == (word == "eq")
    if not isinstance(operand, list):
        raise InputError(f"filters: `{word}` takes a list")
    return (own in operand) == (word == "in")


def _condition(name: str, value: Any) -> Rest:
    if value == _ANY:
        return {"NOT": {name: {"eq": None}}}
    wanted = value if isinstance(value, Mapping) else {"eq": value}
    if unknown := sorted(wanted.keys() - {*_OPERATORS, "nin"}):
        raise InputError(f"filters: {show(name)} takes {', '.join(_OPERATORS)} and nin, not {show(unknown[0])}")
    kept = {word: operand for word, operand in wanted.items() if word != "nin"}
    parts: list[Rest] = [{name: kept}] if kept else []
    return _all([*parts, {"NOT": {name: {"in": wanted["nin"]}}}] if "nin" in wanted else parts)


def _all(parts: Iterable[Rest]) -> Rest:
    found = list(parts)
    left = [each for each in found if not isinstance(each, bool)]
    if any(each is False for each in found) or not left:
        return all(each is not False for each in found)
    return left[0] if len(left) == 1 else {"AND": left}


def _any(parts: Iterable[Rest]) -> Rest:
    found = list(parts)
    left = [each for each in found if not isinstance(each, bool)]
    if any(each is True for each in found) or not left:
        return any(each is True for each in found)
    return left[0] if len(left) == 1 else {"OR": left}


def _none(part: Rest) -> Rest:
    return not part if isinstance(part, bool) else {"NOT": part}
