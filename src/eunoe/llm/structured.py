"""Structured answers: read, checked against the form that was asked for, and asked for again if they are no good.

No error here repeats an answer's words: errors are kept and shown, and what was said may be forgotten later.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from eunoe.errors import EunoeError, LlmError
from eunoe.llm.contract import Llm, Prompt
from eunoe.text.normalize import replace_surrogates

_MAX_CHARACTERS: Final = 500_000
_MAX_DEPTH: Final = 60
_MAX_WRAPPINGS: Final = 3
"""JSON texts inside one another that are read; more are nonsense."""
_ARGUMENTS: Final = ("arguments", "parameters", "input")
_MAX_OPENINGS: Final = 300
"""How many opening brackets are tried; more are nonsense."""
_THINKING_TAG: Final = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_BLANK: Final = re.compile(r"\s*")
_OPENING: Final = re.compile(r"[{\[]")
_NUMBER: Final = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_WORD: Final = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*")
_CONSTANTS: Final = {"true": True, "false": False} | dict.fromkeys(
    ("null", "none", "nan", "undefined", "infinity", "-infinity")
)
_QUOTED: Final = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_CLOSING_QUOTES: Final = {"'": "'", "‘": "’'", "“": '”"', "”": '”"', "„": '“”"'}
_AFTER_STRING: Final = re.compile(r"\s*(?:[,:\]}]|\Z)")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def read_json(text: str) -> Any:
    """Return what an answer says in JSON, with words around it, fences, and small faults of its writer overlooked.

    >>> read_json('Sure! {"facts": [{"text": "Anna plays the cello",}, {"text": "Anna li')
    {'facts': [{'text': 'Anna plays the cello'}]}
    """
    return _unwrap_all(_read_text(text))


class JsonValues(NamedTuple):
    """The objects and lists of an answer, in order."""

    values: list[Any]
    is_cut: bool = False
    """Whether the answer breaks off inside one of them."""


def read_json_values(text: str) -> JsonValues:
    """Return all that an answer says in JSON: one value, several lines with one each, or several fences.

    >>> read_json_values('{"a": 1} and [{"b": 2}, {"c":')
    JsonValues(values=[{'a': 1}, [{'b': 2}]], is_cut=True)
    """
    whole, answer = _prepare(text)
    try:
        found = JsonValues([_load(whole, answer)])
    except ValueError:
        spans = _read_all(answer)
        values = [_without_surrogates(span.value) for span in spans]
        found = JsonValues(values, any(span.is_cut for span in spans))
    return found._replace(values=[_unwrap_all(value) for value in found.values])


def _unwrap_all(value: Any) -> Any:
    for _ in range(_MAX_WRAPPINGS):
        value = _unwrap(value)
    return value


def _unwrap(value: Any) -> Any:
    """The value without what models put around it: quotes, a call of a tool, a JSON text as the only value."""
    if isinstance(value, str):
        return _read_inner(value)
    if not isinstance(value, dict):
        return value
    calls = [value[name] for name in _ARGUMENTS if isinstance(value.get("name"), str) and name in value]
    if calls and isinstance(calls[0], dict | str):
        return calls[0]
    if len(value) == 1:
        [(name, only)] = value.items()
        return {name: _read_inner(only)} if isinstance(only, str) else value
    return value


def _read_inner(text: str) -> Any:
    """What a JSON text of an object or a list says; any other text as it is."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return _load(text)
    except ValueError:
        return text


def _read_text(text: str) -> Any:
    whole, answer = _prepare(text)
    try:
        return _load(whole, answer)
    except ValueError:
        longest = max(_read_all(answer), key=lambda span: span.length)
        return _without_surrogates(longest.value)


def _prepare(text: str) -> tuple[str, str]:
    """An answer, and the same without thoughts."""
    if len(text) > _MAX_CHARACTERS:
        raise LlmError(f"The answer has {len(text):,} characters, which is far more than was asked for")
    whole = replace_surrogates(text).strip().lstrip("\ufeff")
    return whole, _without_thinking(whole)


def _load(*candidates: str) -> Any:
    """What the first of some texts that is JSON says; ValueError if none is."""
    for candidate in candidates:
        try:
            value = json.loads(candidate, parse_constant=lambda _: None, parse_float=_parse_number)
            return _without_surrogates(value)
        except (ValueError, RecursionError):  # json reads deeper than Python may call
            continue
    raise ValueError


def _without_thinking(text: str) -> str:
    """The answer without what some models write before it; the tag that opens it may be missing."""
    tags = list(_THINKING_TAG.finditer(text))
    ends = [tag.end() for tag in tags if tag.group(1)]
    after = text[ends[-1] :] if ends else text
    return after if after.strip() or not tags else text[: tags[0].start()]


def _without_surrogates(value: Any) -> Any:
    """The value without lone surrogates, which escapes can smuggle in and no store can hold."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _parse_number(text: str) -> int | float | None:
    """A number; None for one that is beyond all measure."""
    if len(text) < 20 and text.lstrip("+-").isdecimal():
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else None


class _Fault(Exception):
    """A fault that could mean several things; the message never repeats the words there."""

    def __init__(self, message: str, place: int, is_prose: bool) -> None:
        super().__init__(message)
        self.place = place
        self.is_prose = is_prose
        """Whether the brackets may be part of the words around the answer."""


class _Span(NamedTuple):
    """An object or a list in a text."""

    value: Any
    length: int
    is_cut: bool


def _read_all(text: str) -> list[_Span]:
    """All objects and lists in a text; LlmError if there is none, or one that cannot be read.

    Brackets in the words around them are passed over: what is broken before its first string is taken for words.
    """
    spans: list[_Span] = []
    place = 0
    fault = _Fault("it holds no object and no list", 0, True)
    for _ in range(_MAX_OPENINGS):
        opening = _OPENING.search(text, place)
        if not opening or not fault.is_prose:
            break
        reader = _Reader(text, opening.start())
        try:
            value = reader.read_value(0)
            reader.check_not_empty(value)
            spans.append(_Span(value, reader.place - opening.start(), reader.is_cut))
        except _Fault as error:
            fault = error
        place = max(reader.place, opening.end())
    if spans and fault.is_prose:
        return spans
    line = text.count("\n", 0, fault.place) + 1
    where = f"(line {line}, character {fault.place - text.rfind(chr(10), 0, fault.place)})"
    raise LlmError(f"The answer is not JSON that can be read: {fault} {where}")


class _Reader:
    """Reads one value. Where the text breaks off, what is complete in lists and objects is kept."""

    def __init__(self, text: str, place: int) -> None:
        self.text = text
        self.place = place
        self.is_cut = False
        """Whether the text broke off inside the value that was read last."""
        self.has_strings = False

    def read_value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise _Fault("lists and objects are nested too deeply", self.place, False)
        sign = self._next_sign()
        if sign == "{":
            return self._read_object(depth)
        if sign == "[":
            return self._read_list(depth)
        if sign == '"' or sign in _CLOSING_QUOTES:
            return self._read_string(sign)
        return self._read_unquoted(depth)

    def check_not_empty(self, value: Any) -> None:
        """What breaks off before anything was said must not pass for an empty answer."""
        if self.is_cut and not value:
            raise _Fault("it breaks off before anything was said", self.place, False)

    def _read_list(self, depth: int) -> list[Any]:
        self.place += 1
        items: list[Any] = []
        while not self._is_at_end("]", bool(items)):
            item = self.read_value(depth + 1)
            if self.is_cut:
                break
            items.append(item)
        return items

    def _read_object(self, depth: int) -> dict[str, Any]:
        self.place += 1
        members: dict[str, Any] = {}
        while not self._is_at_end("}", bool(members)):
            name = self._read_name()
            value = None if self.is_cut else self.read_value(depth + 1)
            if self.is_cut and not isinstance(value, dict | list):
                break
            self.check_not_empty(value)
            members[name] = value
        return members

    def _is_at_end(self, closer: str, has_items: bool) -> bool:
        """Whether a list or object ends here: at its bracket, at that of the next one out, or where the text does."""
        sign = self._next_sign()
        if has_items and sign == ",":
            self.place += 1
            sign = self._next_sign()
        elif has_items and sign and sign not in "]}":
            raise self._fault("a comma or a closing bracket is missing")
        self.is_cut = self.is_cut or not sign
        self.place += sign == closer
        return not sign or sign in "]}"

    def _read_name(self) -> str:
        sign = self._next_sign()
        name = self._read_string(sign) if sign == '"' or sign in _CLOSING_QUOTES else self._read_word()
        colon = self._next_sign()
        self.is_cut = self.is_cut or not colon
        if colon not in ("", ":"):
            raise self._fault("a colon is missing")
        self.place += len(colon)
        return name

    def _read_string(self, sign: str) -> str:
        start, end = self.place + 1, -1
        if sign == '"':
            quoted = _QUOTED.match(self.text, self.place)
            end = quoted.end() - 1 if quoted else -1
        else:  # other quotes end at one after which a string can end
            quotes = re.compile(rf"\\.|[{_CLOSING_QUOTES[sign]}]", re.DOTALL).finditer(self.text, start)
            closing = (quote for quote in quotes if quote.group()[0] != "\\")
            end = next((quote.start() for quote in closing if _AFTER_STRING.match(self.text, quote.end())), -1)
        self.has_strings = True
        self.is_cut = self.is_cut or end < 0
        self.place = len(self.text) if end < 0 else end + 1
        return _ESCAPE.sub(_unescape, self.text[start:end]) if end >= 0 else ""

    def _read_unquoted(self, depth: int) -> Any:
        if number := _NUMBER.match(self.text, self.place):
            self.place = number.end()
            # Digits at the very end may be the first of more, unless nothing but one bracket is missing.
            self.is_cut = self.place == len(self.text) and depth > 1
            return _parse_number(number.group())
        word = self._read_word().lower()
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if self._next_sign():
            raise self._fault("a value is missing, or stands without quotes")
        self.is_cut = True
        return None

    def _read_word(self) -> str:
        word = _WORD.match(self.text, self.place)
        if not word and self._next_sign():
            raise self._fault("a name or a value is missing")
        self.place = word.end() if word else self.place
        return word.group() if word else ""

    def _next_sign(self) -> str:
        """The next sign that is not blank, left where it is; empty at the end of the text or of its fence."""
        blank = _BLANK.match(self.text, self.place)
        self.place = blank.end() if blank else self.place
        return "" if self.text.startswith("```", self.place) else self.text[self.place : self.place + 1]

    def _fault(self, message: str) -> _Fault:
        return _Fault(message, self.place, not self.has_strings)


def _unescape(escape: re.Match[str]) -> str:
    sign = escape.group(1)
    return chr(int(sign[1:], 16)) if len(sign) > 1 else _ESCAPES.get(sign, sign)


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
