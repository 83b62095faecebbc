"""The arguments of a verb as JSON can carry them, once the verb has checked them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from inspect import BoundArguments, Parameter
from typing import Any, Final
from uuid import UUID

from eunoe.errors import InputError
from eunoe.model.arguments import as_list, parse_time
from eunoe.model.message import Message
from eunoe.model.scope import Scope

_KEPT_BY_THE_STORE: Final = frozenset({"scope", "position", "recorded", "retired"})
"""Fields of a message that whoever writes it does not set."""


def hold(bound: BoundArguments) -> None:
    """Make lists of what can be read only once, since arguments are read twice: to be checked, and to be sent."""
    for name, value in bound.arguments.items():
        if isinstance(value, Iterator):
            bound.arguments[name] = list(value)


def plain_arguments(bound: BoundArguments) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments that were given, by name, and those that the verb takes as further keywords."""
    plain: dict[str, Any] = {}
    keywords: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:  # the first is the memory itself
        parameter = bound.signature.parameters[name]
        if parameter.kind is Parameter.VAR_KEYWORD:
            keywords = value
        elif value is not None and name != "progress":  # which is told here, if at all
            plain[name] = _plain_argument(str(parameter.annotation), value)
    return _with_listed(plain), _with_listed(keywords)


def _with_listed(given: dict[str, Any]) -> dict[str, Any]:
    """A request always lists the scopes of sources, even a single one."""
    scopes = given.get("source_scopes")
    return given if scopes is None else given | {"source_scopes": list(as_list(scopes, "", str | Mapping))}


def plain_value(value: Any) -> Any:
    """What JSON itself has no form for, in one that it has."""
    if isinstance(value, Scope | UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Message):
        return {each.name: getattr(value, each.name) for each in fields(value) if each.name not in _KEPT_BY_THE_STORE}
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # an array
        return value.tolist()
    if isinstance(value, Iterable):
        return list(value)
    raise InputError(f"a {type(value).__name__} cannot be sent to a server: give texts, numbers, lists or mappings")


def _plain_argument(annotation: str, value: Any) -> Any:
    for word, plain in _BY_ANNOTATION.items():
        if word in annotation:
            return plain(value)
    return value


def _plain_scopes(value: Any) -> str | list[str]:
    return [Scope.of(each).text for each in value] if isinstance(value, list | tuple) else Scope.of(value).text


def _plain_vector(value: Any) -> list[Any]:
    """One vector, or the rows of a matrix."""
    numbers = value.tolist() if hasattr(value, "tolist") else value
    return [float(each) if isinstance(each, int | float) else _plain_vector(each) for each in numbers]


def _plain_list(values: Any) -> list[Any]:
    if isinstance(values, str | Mapping | Message):
        return [values] if values != "" else []
    return list(values)


_BY_ANNOTATION: Final[Mapping[str, Callable[[Any], Any]]] = {
    "Scope": _plain_scopes,
    "Time": lambda value: parse_time(value).isoformat(),
    "Vector": lambda value: _plain_vector(value),
    "Iterable": _plain_list,
}
"""Arguments that can be given in several forms: how each is sent, by a word in its annotation."""
