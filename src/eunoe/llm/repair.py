"""JSON as models write it: the small faults that can mean only one thing are put right, in one pass over the text."""

from __future__ import annotations

import math
import re
from typing import Any

_DEEPEST = 60
_MOST_OPENINGS = 300
_BLANK = re.compile(r"\s*")
_OPENING = re.compile(r"[{\[]")
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"true": True, "false": False}
_NOTHING = ("null", "none", "nan", "undefined", "infinity", "-infinity")
_PLAIN = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_CLOSERS = {"'": "'", "‘": "’'", "“": '”"', "”": '”"', "„": '“”"'}
_AFTER_A_STRING = re.compile(r"\s*(?:[,:\]}]|\Z)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Broken(Exception):
    """A fault that could mean several things; the message names its place, never the words there."""


class _Fault(Exception):
    def __init__(self, what: str, place: int, is_words: bool) -> None:
        super().__init__(what)
        self.place = place
        self.is_words = is_words
        """Whether the brackets may be part of the words around the answer."""


def longest(text: str) -> Any:
    """Of all objects and lists in a text the longest; Broken if there is none, or one that cannot be read.

    Brackets in the words around them are passed over: what is broken before its first string is taken for words.
    """
    best, length, place = None, 0, 0
    trouble = _Fault("it holds no object and no list", 0, True)
    for _ in range(_MOST_OPENINGS):
        opening = _OPENING.search(text, place)
        if not opening or not trouble.is_words:
            break
        reader = _Reader(text, opening.start())
        try:
            value = reader.value(0)
            reader.check_begun(value)
            if reader.place - opening.start() > length:
                best, length = value, reader.place - opening.start()
        except _Fault as fault:
            trouble = fault
        place = max(reader.place, opening.end())
    if length and trouble.is_words:
        return best
    raise Broken(f"{trouble} {_where(text, trouble.place)}")


class _Reader:
    """Reads one value. Where the text breaks off, what is complete in lists and objects is kept."""

    def __init__(self, text: str, place: int) -> None:
        self.text = text
        self.place = place
        self.cut = False
        """Whether the text broke off inside the value that was read last."""
        self.has_strings = False

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise _Fault("lists and objects are nested too deeply", self.place, False)
        sign = self._next()
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._list(depth)
        if sign == '"' or sign in _CLOSERS:
            return self._string(sign)
        return self._bare(depth)

    def _list(self, depth: int) -> list[Any]:
        self.place += 1
        items: list[Any] = []
        while not self._is_over("]", bool(items)):
            item = self.value(depth + 1)
            if self.cut:
                break
            items.append(item)
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        self.place += 1
        members: dict[str, Any] = {}
        while not self._is_over("}", bool(members)):
            name = self._name()
            value = None if self.cut else self.value(depth + 1)
            if self.cut and not isinstance(value, dict | list):
                break
            self.check_begun(value)
            members[name] = value
        return members

    def check_begun(self, read: Any) -> None:
        """What breaks off before anything was said must not pass for an empty answer."""
        if self.cut and not read:
            raise _Fault("it breaks off before anything was said", self.place, False)

    def _is_over(self, closer: str, begun: bool) -> bool:
        """Whether a list or object ends here: at its bracket, at that of the next one out, or where the text does."""
        sign = self._next()
        if begun and sign == ",":
            self.place += 1
            sign = self._next()
        elif begun and sign and sign not in "]}":
            raise self._fault("a comma or a closing bracket is missing")
        self.cut = self.cut or not sign
        self.place += sign == closer
        return not sign or sign in "]}"

    def _name(self) -> str:
        sign = self._next()
        name = self._string(sign) if sign == '"' or sign in _CLOSERS else self._word()
        colon = self._next()
        self.cut = self.cut or not colon
        if colon not in ("", ":"):
            raise self._fault("a colon is missing")
        self.place += len(colon)
        return name

    def _string(self, sign: str) -> str:
        if sign == '"':
            found = _PLAIN.match(self.text, self.place)
            return self._taken(found.group(1) if found else None, found.end() if found else 0)
        end = self._end_of_string(_CLOSERS[sign])
        return self._taken(self.text[self.place + 1 : end] if end else None, end + 1)

    def _end_of_string(self, closers: str) -> int:
        """Where a string in other quotes ends: at a quote after which a string can end; 0 if nowhere."""
        for found in re.compile(rf"\\.|[{closers}]", re.DOTALL).finditer(self.text, self.place + 1):
            if found.group()[0] != "\\" and _AFTER_A_STRING.match(self.text, found.end()):
                return found.start()
        return 0

    def _taken(self, inner: str | None, end: int) -> str:
        self.cut = self.cut or inner is None
        self.has_strings = True
        self.place = len(self.text) if inner is None else end
        return _ESCAPE.sub(_escaped, inner or "")

    def _bare(self, depth: int) -> Any:
        if number := _NUMBER.match(self.text, self.place):
            self.place = number.end()
            # Digits at the very end may be the first of more, unless nothing but one bracket is missing.
            self.cut = self.place == len(self.text) and depth > 1
            return _number(number.group())
        word = self._word().lower()
        if word in _WORDS or word in _NOTHING:
            return _WORDS.get(word)
        if self._next():
            raise self._fault("a value is missing, or stands without quotes")
        self.cut = True
        return None

    def _word(self) -> str:
        found = _WORD.match(self.text, self.place)
        if not found and self._next():
            raise self._fault("a name or a value is missing")
        self.place = found.end() if found else self.place
        return found.group() if found else ""

    def _next(self) -> str:
        """The next sign that is not blank, left where it is; empty at the end of the text or of its fence."""
        blank = _BLANK.match(self.text, self.place)
        self.place = blank.end() if blank else self.place
        return "" if self.text.startswith("```", self.place) else self.text[self.place : self.place + 1]

    def _fault(self, what: str) -> _Fault:
        return _Fault(what, self.place, not self.has_strings)


def _where(text: str, place: int) -> str:
    line = text.count("\n", 0, place) + 1
    return f"(line {line}, character {place - text.rfind(chr(10), 0, place)})"


def _escaped(found: re.Match[str]) -> str:
    sign = found.group(1)
    return chr(int(sign[1:], 16)) if len(sign) > 1 else _ESCAPES.get(sign, sign)


def _number(text: str) -> int | float | None:
    """A number; None for one that is beyond all measure."""
    if len(text) < 20 and text.lstrip("+-").isdecimal():
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else None
