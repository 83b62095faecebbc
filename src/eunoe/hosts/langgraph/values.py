"""Values of items as JSON can carry them."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from enum import Enum
from math import isfinite
from typing import Any, cast
from uuid import UUID

from eunoe.errors import InputError
from eunoe.model.validation import check_text


def plain_value(value: Any) -> dict[str, Any]:
    """Return a copy of an item's value as it will come back.

    Dates, UUIDs, enums, dataclasses and tuples become what JSON has for them, as in LangGraph's own database stores.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"the value of an item must be a mapping, not {type(value).__name__}")
    try:
        return _plain_mapping(value, "value")
    except RecursionError:
        raise InputError("the value is nested too deeply, or in itself") from None


def _plain(value: Any, place: str) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else check_text(value, place)
    if value is None or kind is bool or kind is int:
        return value
    if kind is dict:
        return _plain_mapping(value, place)
    if kind is list or kind is tuple:
        return [_plain(each, f"{place}[{number}]") for number, each in enumerate(value)]
    if kind is float:
        return _finite(value, place)
    return _plain_object(value, place)


def _plain_mapping(value: Mapping[Any, Any], place: str) -> dict[str, Any]:
    if any(not isinstance(key, str) for key in value):
        raise InputError(f"{place} has a key that is not text: JSON has no other keys")
    return {_plain(key, place): _plain(each, f"{place}.{key}") for key, each in value.items()}


def _finite(value: float, place: str) -> float:
    if not isfinite(value):
        raise InputError(f"{place} is {value}, which JSON has no number for: leave it out, or use None")
    return value


def _plain_object(value: Any, place: str) -> Any:
    """What is not of one of JSON's own types, or of a type made from one."""
    if isinstance(value, Enum):
        return _plain(value.value, place)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_mapping({field.name: getattr(value, field.name) for field in fields(value)}, place)
    if isinstance(value, Mapping):
        return _plain_mapping(value, place)
    kinds: tuple[Callable[[Any], Any], ...] = (str, int, float, list, tuple)
    for kind in kinds:
        if isinstance(value, cast("type", kind)):
            return _plain(kind(value), place)
    raise InputError(f"{place} is a {type(value).__name__}, which JSON cannot carry: use texts, numbers, lists, dicts")
