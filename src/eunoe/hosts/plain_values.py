"""What users give beside a text, as JSON can carry it."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, cast
from uuid import UUID

from eunoe.errors import InputError
from eunoe.model.arguments import check_text


def plain_mapping(given: Any, name: str) -> dict[str, Any]:
    """Return a copy of a mapping as it will come back.

    Dates, UUIDs, decimals, enums, dataclasses, tuples, sets and keys that are numbers become what JSON has for them.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{name} must be a mapping, not {type(given).__name__}")
    try:
        return _plain_mapping(given, name)
    except RecursionError:
        raise InputError(f"{name} is nested too deeply, or in itself") from None


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
    plain = {}
    for key, each in value.items():
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise InputError(f"{place} has a key that is neither text nor a number: JSON has no other keys")
        plain[_plain(str(key), place)] = _plain(each, f"{place}.{key}")
    if len(plain) < len(value):
        raise InputError(f"{place} has a number and the same number as text for keys: JSON cannot tell them apart")
    return plain


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
    if isinstance(value, UUID | Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted((_plain(each, place) for each in value), key=lambda each: (type(each).__name__, str(each)))
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_mapping({field.name: getattr(value, field.name) for field in fields(value)}, place)
    if isinstance(value, Mapping):
        return _plain_mapping(value, place)
    kinds: tuple[Callable[[Any], Any], ...] = (str, int, float, list, tuple)
    for kind in kinds:
        if isinstance(value, cast("type", kind)):
            return _plain(kind(value), place)
    raise InputError(f"{place} is a {type(value).__name__}, which JSON cannot carry: use texts, numbers, lists, dicts")
