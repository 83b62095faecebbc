"""What a model passed to a tool, checked against the tool's own schema. Errors say to the model what to pass."""

import re
from collections.abc import Mapping
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.model.arguments import check_text, show

_TYPES: Final[Mapping[str, Any]] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}")
_MAX_CHARACTERS: Final = 1_000_000
"""Of a text, as over HTTP: while a longer question is read, everybody else waits."""
_TRUTHS: Final = {"true": True, "false": False}


def check_arguments(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that are null, which models pass for what they leave out."""
    return _check_object("", schema, given)


def _check(place: str, schema: Mapping[str, Any], value: Any) -> Any:
    kind = schema["type"]
    value = _read_text(kind, value) if isinstance(value, str) else value
    if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        raise InputError(f"{place} is {show(value)}: it must be of type {kind}")
    if kind == "object":
        return _check_object(f"{place}.", schema, value)
    if kind == "array":
        return _check_array(place, schema, value)
    if kind == "integer":
        _check_bounds(place, schema, value)
    elif kind == "string":
        _check_string(place, schema, value)
    return value


def _read_text(kind: str, text: str) -> Any:
    """A number or a truth value that was written as text, as workflows and some models do; else the text itself."""
    if kind == "integer" and _NUMBER.fullmatch(text.strip()):
        return int(text)
    return _TRUTHS.get(text.strip().lower(), text) if kind == "boolean" else text


def _check_object(prefix: str, schema: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    given = {name: each for name, each in value.items() if each is not None}
    if unknown := sorted(given.keys() - properties.keys()):
        names = f"there are {', '.join(properties)}" if properties else "there is none"
        raise InputError(f"there is no argument {prefix}{show(unknown[0])}: {names}")
    if missing := [name for name in schema.get("required", ()) if name not in given]:
        raise InputError(f"{prefix}{missing[0]} is missing: pass it")
    return {name: _check(f"{prefix}{name}", properties[name], each) for name, each in given.items()}


def _check_array(place: str, schema: Mapping[str, Any], value: list[Any]) -> list[Any]:
    most = schema.get("maxItems")
    if most is not None and len(value) > most:
        raise InputError(f"{place} has {len(value)} items: pass at most {most}")
    return [_check(f"{place}[{number}]", schema["items"], each) for number, each in enumerate(value)]


def _check_bounds(place: str, schema: Mapping[str, Any], value: int) -> None:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    if not least <= value <= most:
        raise InputError(
            f"{place} is {show(value)}: pass {least} or more" + (f", at most {most}" if value > most else "")
        )


def _check_string(place: str, schema: Mapping[str, Any], value: str) -> None:
    check_text(value, place)
    choices = schema.get("enum")
    if choices and value not in choices:
        raise InputError(f"{place} is {show(value)}: pass one of {', '.join(choices)}")
    most = schema.get("maxLength", _MAX_CHARACTERS)
    if len(value) > most:
        raise InputError(f"{place} has {len(value):,} characters: pass at most {most:,}")
