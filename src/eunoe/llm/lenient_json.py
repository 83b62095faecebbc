"""JSON as LLMs write it: small faults that can mean only one thing are put right, in one pass over the text."""

import json
import math
import re
from typing import Any, Final, NamedTuple

from eunoe.errors import LlmError
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
