"""Dataclasses read from JSON: every field is checked against its type, so that nobody meets a wrong one later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
_SCALARS: Final[Mapping[Any, tuple[type, ...]]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (int, float),
    NoneType: (NoneType,),
}


def read_typed(kind: type[T], fields: Any) -> T:
    """Return a dataclass with these fields; raise TypeError or ValueError for a value that is not of its type.

    >>> from eunoe.apps.tickets.ticket import Ticket
    >>> read_typed(Ticket, {"id": "login", "title": "Fix the login"}).title
    'Fix the login'
    >>> read_typed(Ticket, {"id": "login", "title": None})
    Traceback (most recent call last):
    TypeError: title is not of type str
    """
    if not isinstance(fields, dict):
        raise TypeError(f"{kind.__name__} is no object")
    hints = get_type_hints(kind)
    return kind(**{name: _read(name, hints.get(name, NoneType), value) for name, value in fields.items()})


def _read(name: str, hint: Any, value: Any) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if value is None and NoneType in parts else _read(name, parts[0], value)
    if origin is Literal and isinstance(value, str) and value in parts:
        return value
    if origin is list and isinstance(value, list):
        return [_read(name, parts[0], item) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: _read(name, parts[1], item) for key, item in value.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        return read_typed(hint, value)
    if type(value) in _SCALARS.get(hint, ()):
        return value
    raise TypeError(f"{name} is not of type {getattr(hint, '__name__', hint)}")
