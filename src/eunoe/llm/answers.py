"""Structured answers: read, repaired where that is safe, checked, and asked for again if they are no good.

No error here repeats an answer's words: errors are kept and shown, and what was said may be forgotten later.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from eunoe.errors import EunoeError, LlmError
from eunoe.llm.contract import Llm, Prompt
from eunoe.llm.repair import Broken, longest
from eunoe.text.normalize import replace_surrogates

T = TypeVar("T")

UNUSABLE = "no usable answer"
"""What every error says after a model answered in vain."""
_LONGEST = 500_000
_SHOWN = 1500
_LARGEST = 10**18
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_TRUTHS = {"true": True, "false": False}


def ask_structured(llm: Llm, prompt: Prompt, check: Callable[[Any], T], attempts: int = 2) -> T:
    """An answer that was read, conforms to the prompt's schema, and passed `check`, which may also turn it into
    something else. After a bad answer the model is told what was wrong with it; LlmError when all attempts are used up.
    """
    asked = prompt
    for attempt in range(1, attempts + 1):
        text = llm.ask(asked).text
        try:
            return check(_conforming(text, prompt.schema))
        except (EunoeError, ValueError, TypeError, LookupError) as error:
            if attempt == attempts:
                raise LlmError(f"{llm.name} gave {UNUSABLE} in {attempts} attempts: {error}") from error
            asked = replace(prompt, text=_again(prompt.text, text, error))
    raise LlmError(f"attempts is {attempts}: at least one is needed")


def read_json(text: str) -> Any:
    """What an answer says in JSON, with words around it, fences, and small faults of its writer overlooked.

    >>> read_json('Sure! {"facts": [{"text": "Anna plays the cello",}, {"text": "Anna li')
    {'facts': [{'text': 'Anna plays the cello'}]}
    """
    if len(text) > _LONGEST:
        raise LlmError(f"The answer has {len(text):,} characters, which is far more than was asked for")
    whole = replace_surrogates(text).strip().lstrip("\ufeff")
    said = _without_thoughts(whole)
    for part in (whole, said):
        try:
            return _cleaned(json.loads(part, parse_constant=_nothing, parse_float=_finite))
        except (ValueError, RecursionError):
            continue
    try:
        return _cleaned(longest(said))
    except Broken as error:
        raise LlmError(f"The answer is not JSON that can be read: {error}") from None


def conform(value: Any, schema: Mapping[str, Any], place: str = "the answer") -> Any:
    """The value in the form of a JSON Schema; LlmError names the place where it does not fit.

    What can only mean one thing is put right: numbers in quotes, an enum in other letter case, what may be null left
    out. Properties that are not in the schema are dropped if it says so.

    >>> conform({"n": "3", "x": 1}, {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    ...                              "additionalProperties": False})
    {'n': 3}
    """
    if "anyOf" in schema:
        return _any_of(value, schema["anyOf"], place)
    if "enum" in schema:
        return _enum(value, schema["enum"], place)
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        return _any_of(value, [{**schema, "type": one} for one in kind], place)
    if kind is None:
        return value
    return _KINDS[kind](value, schema, place)


def _conforming(text: str, schema: Mapping[str, Any] | None) -> Any:
    value = read_json(text)
    return value if schema is None else conform(value, schema)


def _again(text: str, answer: str, error: Exception) -> str:
    shown = answer if len(answer) <= _SHOWN else f"{answer[: _SHOWN // 2]} [...] {answer[-_SHOWN // 2 :]}"
    return (
        f"{text}\n\nAn earlier answer could not be used: {error}\n"
        f"That answer, as one JSON text, was:\n{json.dumps(shown, ensure_ascii=False)}\n"
        "Answer again, with JSON alone, complete and in the form that was asked for."
    )


def _without_thoughts(text: str) -> str:
    """The answer without the thinking that some models write before it; the tag that opens it may be missing."""
    tags = list(_THOUGHT.finditer(text))
    ends = [tag.end() for tag in tags if tag.group(1)]
    after = text[ends[-1] :] if ends else text
    return after if after.strip() or not tags else text[: tags[0].start()]


def _nothing(_: str) -> None:
    return None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _cleaned(value: Any) -> Any:
    """The value without lone surrogates, which escapes can smuggle in and no store can hold."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _cleaned(item) for key, item in value.items()}
    return value


def _any_of(value: Any, schemas: Sequence[Mapping[str, Any]], place: str) -> Any:
    if value is None and any(_may_be_null(schema) for schema in schemas):
        return None
    troubles = []
    for schema in schemas:
        try:
            return conform(value, schema, place)
        except LlmError as error:
            if schema.get("type") != "null":
                troubles.append(str(error))
    raise LlmError("; or ".join(troubles) or f"{place} must be null, not {_kind(value)}")


def _may_be_null(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "null" or (isinstance(kind, list | tuple) and "null" in kind) or None in schema.get("enum", ())


def _enum(value: Any, allowed: Sequence[Any], place: str) -> Any:
    for choice in allowed:
        if type(choice) is type(value) and choice == value:
            return choice
    if isinstance(value, str):
        bare = value.strip().casefold()
        for choice in allowed:
            if isinstance(choice, str) and choice.casefold() == bare:
                return choice
    raise LlmError(f"{place} must be one of {json.dumps(list(allowed), ensure_ascii=False)}")


def _object(value: Any, schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong("an object", value, place)
    properties: Mapping[str, Any] = schema.get("properties", {})
    found = {
        name: conform(value[name], wanted, _inside(place, name))
        for name, wanted in properties.items()
        if name in value and not _is_left_out(value[name], name, schema)
    }
    for name in schema.get("required", ()):
        if name not in found:
            _check_may_lack(properties.get(name, {}), _inside(place, name))
            found[name] = None
    return found | _others(value, schema, place)


def _is_left_out(value: Any, name: str, schema: Mapping[str, Any]) -> bool:
    """Whether null stands for a property that need not be there."""
    return value is None and name not in schema.get("required", ()) and not _takes_null(schema["properties"][name])


def _takes_null(schema: Mapping[str, Any]) -> bool:
    return _may_be_null(schema) or any(_may_be_null(one) for one in schema.get("anyOf", ()))


def _check_may_lack(schema: Mapping[str, Any], place: str) -> None:
    if not _takes_null(schema):
        raise LlmError(f"{place} is missing")


def _others(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    rule = schema.get("additionalProperties", True)
    names = [name for name in value if name not in schema.get("properties", {})]
    if rule is False:
        return {}
    if rule is True:
        return {name: value[name] for name in names}
    return {name: conform(value[name], rule, f"a property of {place}") for name in names}


def _array(value: Any, schema: Mapping[str, Any], place: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong("a list", value, place)
    items = schema.get("items", {})
    return [conform(item, items, f"{_bare(place)}[{number}]") for number, item in enumerate(value)]


def _string(value: Any, schema: Mapping[str, Any], place: str) -> str:
    if not isinstance(value, str):
        raise _wrong("text", value, place)
    return value


def _integer(value: Any, schema: Mapping[str, Any], place: str) -> int:
    number = _number(value, schema, place)
    if number != int(number):
        raise _wrong("a whole number", value, place)
    return int(number)


def _number(value: Any, schema: Mapping[str, Any], place: str) -> float:
    if isinstance(value, str) and len(value) < 40:
        value = _as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise _wrong("a number", value, place)
    return value


def _as_number(text: str) -> Any:
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return text


def _boolean(value: Any, schema: Mapping[str, Any], place: str) -> bool:
    if isinstance(value, str):
        value = _TRUTHS.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise _wrong("true or false", value, place)
    return value


def _null(value: Any, schema: Mapping[str, Any], place: str) -> None:
    if value is not None:
        raise _wrong("null", value, place)


_KINDS: dict[str, Callable[[Any, Mapping[str, Any], str], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
}


def _wrong(wanted: str, value: Any, place: str) -> LlmError:
    return LlmError(f"{place} must be {wanted}, not {_kind(value)}")


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _inside(place: str, name: str) -> str:
    return f"{_bare(place)}.{name}".removeprefix(".")


def _bare(place: str) -> str:
    return "" if place == "the answer" else place
