"""Structured answers: read, checked against the form that was asked for, and asked for again if they are no good.

No error here repeats an answer's words: errors are kept and shown, and what was said may be forgotten later.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from eunoe.errors import EunoeError, LlmError
from eunoe.llm.contract import Llm, Prompt
from eunoe.llm.lenient_json import read_json

T = TypeVar("T")
Schema = Mapping[str, Any]

UNUSABLE: Final = "no usable answer"
"""What every error says after a model answered in vain."""
_MAX_SHOWN_CHARACTERS: Final = 1500
_MAX_NUMBER: Final = 10**18
_MAX_NUMBER_CHARACTERS: Final = 40
_WHOLE: Final = "the answer"
_BOOLEANS: Final = {"true": True, "false": False}
_SCALARS: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "string": ("text", (str,)),
    "integer": ("a number", (int, float)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "null": ("null", (type(None),)),
}
"""By the type in a schema: what an error calls it, and the types of Python."""
_TYPE_NAMES: Final = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


def ask_structured(llm: Llm, prompt: Prompt, check: Callable[[Any], T], attempts: int = 2) -> T:
    """Return what `check` makes of an answer that conforms to the prompt's schema.

    After a bad answer the model is told what was wrong with it. Raise LlmError when all attempts are used up.
    """
    text = prompt.text
    for left in reversed(range(attempts)):
        answer = llm.ask(replace(prompt, text=text)).text
        try:
            value = read_json(answer)
            return check(value if prompt.schema is None else conform(value, prompt.schema))
        except (EunoeError, ValueError, TypeError, LookupError) as error:
            if not left:
                raise LlmError(f"{llm.name} gave {UNUSABLE} in {attempts} attempts: {error}") from error
            half = _MAX_SHOWN_CHARACTERS // 2
            shown = answer if len(answer) <= 2 * half else f"{answer[:half]} [...] {answer[-half:]}"
            text = (
                f"{prompt.text}\n\nAn earlier answer could not be used: {error}\n"
                f"That answer, as one JSON text, was:\n{json.dumps(shown, ensure_ascii=False)}\n"
                "Answer again, with JSON alone, complete and in the form that was asked for."
            )
    raise LlmError(f"attempts is {attempts}: at least one is needed")


def conform(value: Any, schema: Schema, place: str = _WHOLE) -> Any:
    """Return the value in the form of a JSON Schema; raise LlmError that names the place where it does not fit.

    What can only mean one thing is put right: numbers in quotes, an enum in other letter case, what may be null left
    out. Properties that are not in the schema are dropped if it says so.

    >>> conform({"n": "3", "x": 1}, {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    ...                              "additionalProperties": False})
    {'n': 3}
    """
    if value is None and _may_be_null(schema):
        return None
    errors = []
    for alternative in _alternatives(schema):
        try:
            return _conform_to_type(value, alternative, place)
        except LlmError as error:
            if alternative.get("type") != "null":
                errors.append(str(error))
    raise LlmError("; or ".join(errors)) if errors else _wrong_type("null", value, place)


def _alternatives(schema: Schema) -> Sequence[Schema]:
    """A schema as others with one type each."""
    if "anyOf" in schema:
        return [alternative for one in schema["anyOf"] for alternative in _alternatives(one)]
    kind = schema.get("type")
    if "enum" in schema or not isinstance(kind, list | tuple):
        return [schema]
    return [{**schema, "type": one} for one in kind]


def _may_be_null(schema: Schema) -> bool:
    return any(one.get("type") == "null" or None in one.get("enum", ()) for one in _alternatives(schema))


def _conform_to_type(value: Any, schema: Schema, place: str) -> Any:
    kind = schema.get("type")
    if "enum" in schema:
        return _choose(value, schema["enum"], place)
    if kind == "object":
        return _conform_object(value, schema, place)
    if kind == "array":
        if not isinstance(value, list):
            raise _wrong_type("a list", value, place)
        items, prefix = schema.get("items", {}), "" if place == _WHOLE else place
        return [conform(item, items, f"{prefix}[{number}]") for number, item in enumerate(value)]
    return value if kind is None else _conform_scalar(value, kind, place)


def _choose(value: Any, choices: Sequence[Any], place: str) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    if isinstance(value, str):
        folded = value.strip().casefold()
        for choice in choices:
            if isinstance(choice, str) and choice.casefold() == folded:
                return choice
    raise LlmError(f"{place} must be one of {json.dumps(list(choices), ensure_ascii=False)}")


def _conform_object(value: Any, schema: Schema, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong_type("an object", value, place)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    prefix = "" if place == _WHOLE else f"{place}."
    conformed = {}
    for name, wanted in properties.items():
        # Null also stands for a property that need not be there.
        if name in value and (value[name] is not None or name in required or _may_be_null(wanted)):
            conformed[name] = conform(value[name], wanted, f"{prefix}{name}")
    for name in required:
        if name not in conformed:
            if not _may_be_null(properties.get(name, {})):
                raise LlmError(f"{prefix}{name} is missing")
            conformed[name] = None
    return conformed | _other_properties(value, schema, place)


def _other_properties(value: dict[str, Any], schema: Schema, place: str) -> dict[str, Any]:
    rule = schema.get("additionalProperties", True)
    names = [name for name in value if rule is not False and name not in schema.get("properties", {})]
    return {name: conform(value[name], {} if rule is True else rule, f"a property of {place}") for name in names}


def _conform_scalar(value: Any, kind: str, place: str) -> Any:
    name, types = _SCALARS[kind]
    if isinstance(value, str) and kind != "string":
        value = _unquote(value, kind)
    if type(value) not in types or (kind in ("integer", "number") and not abs(value) <= _MAX_NUMBER):
        raise _wrong_type(name, value, place)
    if kind == "integer" and value != int(value):
        raise _wrong_type("a whole number", value, place)
    return int(value) if kind == "integer" else value


def _unquote(text: str, kind: str) -> Any:
    if kind == "boolean":
        return _BOOLEANS.get(text.strip().lower(), text)
    if kind == "null" or len(text) >= _MAX_NUMBER_CHARACTERS:
        return text
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return text


def _wrong_type(wanted: str, value: Any, place: str) -> LlmError:
    return LlmError(f"{place} must be {wanted}, not {_TYPE_NAMES.get(type(value), 'a number')}")
