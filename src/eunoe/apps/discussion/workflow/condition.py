"""Conditions: comparisons of texts, joined by AND and OR.

A condition is read before its placeholders or templates are filled in, each text by itself, so that no text that
comes in can change what it means.

    condition  = all {OR all}
    all        = comparison {AND comparison}
    comparison = "(" condition ")" | text [operator text]
    text       = words, a placeholder, a template, or anything in quotes
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

from eunoe.errors import WorkflowError
from eunoe.model.arguments import show

Render = Callable[[str], str]
Condition = Callable[[Render], bool]

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_TOKEN: Final = (
    r"""\s*(?:(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<sign>==|!=|<=|>=|<|>|\(|\))|(?P<word>%s))"""
)
_LETTER: Final = r"""[^\s'"=!<>()]"""
_TEMPLATE: Final = r"\{\{.*?\}\}|\{%.*?%\}"
_TOKENS: Final = {
    is_template: re.compile(_TOKEN % f"(?:{word})+", re.DOTALL)
    for is_template, word in ((False, _LETTER), (True, f"{_TEMPLATE}|{_LETTER}"))
}
"""A word may hold templates where they are read."""
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_FALSE: Final = ("", "false", "0", "no", "none", "null")
_MAX_DEPTH: Final = 50


def parse_condition(text: str, is_template: bool = False) -> Condition:
    """Read a condition, whose texts may be templates. Raise WorkflowError if it is none.

    >>> values = {"{a}": "yes", "{b}": "10"}
    >>> parse_condition("{a} == yes AND ({b} > 2 OR {b} == 0)")(lambda text: values.get(text, text))
    True
    """
    return _Parser(text, is_template).whole()


def condition_texts(text: str, is_template: bool = False) -> list[str]:
    """The texts that a condition compares. Raise WorkflowError if it is none."""
    parser = _Parser(text, is_template)
    parser.whole()
    return parser.texts


class _Parser:
    def __init__(self, text: str, is_template: bool) -> None:
        self._text = text
        self._pattern = _TOKENS[is_template]
        self.texts: list[str] = []
        self._tokens = iter(self._split())
        self._depth = 0
        self.token: str | None = next(self._tokens, None)

    def whole(self) -> Condition:
        condition = self.condition()
        if self.token is not None:
            raise self.error(f"{self.token!r} is not expected there")
        return condition

    def condition(self) -> Condition:
        alternatives = [self._all()]
        while self._is_word("OR"):
            self._take()
            alternatives.append(self._all())
        return lambda render: any(each(render) for each in alternatives)

    def error(self, reason: str) -> WorkflowError:
        return WorkflowError(f"the condition {show(self._text)} cannot be read: {reason}")

    def _all(self) -> Condition:
        parts = [self._comparison()]
        while self._is_word("AND"):
            self._take()
            parts.append(self._comparison())
        return lambda render: all(each(render) for each in parts)

    def _comparison(self) -> Condition:
        if self.token == "(":
            return self._in_parentheses()
        left = self._operand()
        if self.token not in _OPERATORS:
            return lambda render: render(left).strip().casefold() not in _FALSE
        compare = _OPERATORS[self._take()]
        right = self._operand()
        return lambda render: compare(*_comparable(render(left), render(right)))

    def _in_parentheses(self) -> Condition:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.error(f"more than {_MAX_DEPTH} parentheses stand in each other")
        self._take()
        condition = self.condition()
        if self.token != ")":
            raise self.error("a ) is missing")
        self._take()
        self._depth -= 1
        return condition

    def _operand(self) -> str:
        words = []
        while self.token is not None and self.token not in (*_OPERATORS, "(", ")") and not self._is_word("AND", "OR"):
            words.append(_unquote(self._take()))
        if not words:
            raise self.error("a text is missing" + (f" before {self.token!r}" if self.token else " at its end"))
        self.texts.append(" ".join(words))
        return self.texts[-1]

    def _take(self) -> str:
        assert self.token is not None
        token, self.token = self.token, next(self._tokens, None)
        return token

    def _is_word(self, *words: str) -> bool:
        return self.token is not None and self.token in words

    def _split(self) -> list[str]:
        tokens, place, end = [], 0, len(self._text.rstrip())
        while place < end:
            match = self._pattern.match(self._text, place)
            if match is None:
                raise self.error(f"{self._text[place:].strip()[0]!r} stands alone")
            tokens.append(match.group().strip() if not match["quoted"] else match["quoted"])
            place = match.end()
        return tokens


def _unquote(token: str) -> str:
    if token[0] not in "'\"":
        return token
    return re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL)


def _comparable(left: str, right: str) -> tuple[Any, Any]:
    """Numbers are compared as numbers, true and false in any letter case, everything else as text."""
    left, right = left.strip(), right.strip()
    if _NUMBER.fullmatch(left) and _NUMBER.fullmatch(right):
        return float(left), float(right)
    if {left.casefold(), right.casefold()} <= {"true", "false"}:
        return left.casefold(), right.casefold()
    return left, right
