"""Markdown that is safe to publish: links lead somewhere or are words, raw HTML is shown as it was written.

A parser says where links stand. Only they are changed; the rest stays as it was, character by character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from eunoe.errors import MissingPackageError

try:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline, autolink, html_inline, image, link
    from markdown_it.token import Token
except ImportError as error:
    raise MissingPackageError("eunoe.apps.wiki needs markdown-it-py: pip install 'eunoe[wiki]'") from error

FindTarget = Callable[[str], str]
"""From the target of a link as it was written to one that leads somewhere; empty if there is none."""
Rule = Callable[[StateInline, bool], bool]

_MAX_BRACKETS: Final = 300
"""In one paragraph. With more the parser takes long, and no prose has so many."""
_MAX_NESTING: Final = 100
_MAX_PASSES: Final = 5
"""What was HTML may hold links, which are seen when it has become text."""
_UNSAFE_TAG: Final = re.compile(r"<(?!/?(?:br|details|summary|sub|sup|kbd)\s*/?>)")
"""The beginning of any tag but some that only shape a text."""


class Edit(NamedTuple):
    """A stretch of a text, and what comes in its place."""

    start: int
    end: int
    text: str


def make_safe(text: str, find: FindTarget) -> str:
    """Put right where links lead, and make text of those that lead nowhere and of HTML. Code stays as it is.

    A block of code that never ends is ended.

    >>> make_safe("[a](a) and [b](b), `[b](b)`", lambda target: "a.md" if target == "a" else "")
    '[a](a.md) and b, `[b](b)`'
    """
    parser, places = _parser(), set[str]()

    def find_once(target: str) -> str:
        if target not in places:
            places.add(target := find(target))
        return target

    for _ in range(_MAX_PASSES):
        before, text = text, _Pass(text, find_once, parser).text()
        if text == before:
            return text
    return _UNSAFE_TAG.sub("&lt;", text.replace("[", "&#91;"))


class _Pass:
    """One reading of a text, which changes its lines."""

    def __init__(self, text: str, find: FindTarget, parser: MarkdownIt) -> None:
        self._lines = text.split("\n")
        self._find = find
        self._parser = parser
        self._env: dict[str, Any] = {}
        self._tokens = parser.parse(text, self._env)

    def text(self) -> str:
        for token in self._tokens:
            if token.type == "inline":
                self._change_prose(token)
            elif token.type == "html_block":
                self._change_lines(token, lambda line: _UNSAFE_TAG.sub("&lt;", line))
        self._change_references()
        return "\n".join(self._lines + self._end_of_code())

    def _change_prose(self, token: Token) -> None:
        if token.content.count("[") > _MAX_BRACKETS:
            self._change_lines(token, _as_words)
            return
        new = _apply(token.content, self._edits(token.content))
        if new == token.content:
            return
        start, _ = token.map or (0, 0)
        for number, (old_line, new_line) in enumerate(zip(token.content.split("\n"), new.split("\n"), strict=True)):
            line = self._lines[start + number]
            is_there = old_line in line  # a cell of a table is written in another way where it holds a bar
            self._lines[start + number] = line.replace(old_line, new_line, 1) if is_there else _as_words(line)

    def _edits(self, content: str) -> list[Edit]:
        edits: list[Edit] = []
        env = {**self._env, "edits": edits, "find": self._find}
        self._parser.inline.tokenize(StateInline(content, self._parser, env, []))
        return edits

    def _change_lines(self, token: Token, change: Callable[[str], str]) -> None:
        start, end = token.map or (0, 0)
        self._lines[start:end] = map(change, self._lines[start:end])

    def _change_references(self) -> None:
        for label, reference in self._env.get("references", {}).items():
            start, end = reference["map"]
            target = self._find(reference["href"])
            if target != reference["href"]:
                indent = self._lines[start].partition("[")[0]
                rest = [""] * (end - start - 1)
                self._lines[start:end] = [f"{indent}[{label.lower()}]: {target or '#'}", *rest]

    def _end_of_code(self) -> list[str]:
        last = self._tokens[-1] if self._tokens else None
        if last is None or last.type != "fence" or last.level or not last.map:
            return []
        end = self._lines[last.map[1] - 1].strip()
        is_ended = last.map[1] - last.map[0] > 1 and end.startswith(last.markup) and not end.strip(last.markup[0])
        return [] if is_ended else [last.markup]


def _parser() -> MarkdownIt:
    """A parser that notes for each link what is to be changed. It reads prose only when that is asked of it."""
    parser = MarkdownIt("commonmark").enable("table").disable(["emphasis"])
    parser.core.ruler.disable("inline")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # all are looked at here
    parser.options["maxNesting"] = _MAX_NESTING
    ruler = parser.inline.ruler
    ruler.at("link", _noted(link, "[", "href"))
    ruler.at("image", _noted(image, "![", "src"))
    ruler.at("autolink", _noted_tag(autolink))
    ruler.at("html_inline", _noted_tag(html_inline))
    return parser


def _noted(rule: Rule, opening: str, attribute: str) -> Rule:
    """A rule for links in brackets. Those that name a reference are changed where that is defined."""

    def read(state: StateInline, silent: bool) -> bool:
        start, count, edits = state.pos, len(state.tokens), len(state.env["edits"])
        if not rule(state, silent):
            return False
        if silent:
            return True
        if opening == "![":  # its label was read apart, with other places
            del state.env["edits"][edits:]
        target = str(next(token for token in state.tokens[count:] if attribute in token.attrs).attrs[attribute])
        end = state.pos
        label_end = state.md.helpers.parseLinkLabel(state, start + len(opening) - 1, opening == "[")
        if state.src[label_end : label_end + 2] == "](":
            state.env["edits"] += _link_edits(state, start, label_end, end, opening, target)
        return True

    return read


def _link_edits(state: StateInline, start: int, label_end: int, end: int, opening: str, target: str) -> list[Edit]:
    place = state.env["find"](target)
    if place and place == target:
        return []
    breaks = "\n" * state.src.count("\n", label_end, end)
    if place:
        return [Edit(label_end, end, f"]({place}){breaks}")]
    return [Edit(start, start + len(opening), ""), Edit(label_end, end, breaks)]


def _noted_tag(rule: Rule) -> Rule:
    """A rule for what stands between angle brackets: addresses and HTML."""

    def read(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            target = next((str(token.attrs["href"]) for token in state.tokens[count:] if "href" in token.attrs), "")
            is_safe = state.env["find"](target) == target if target else not _UNSAFE_TAG.match(state.src, start)
            state.env["edits"] += [] if is_safe else [Edit(start, start + 1, "&lt;")]
        return True

    return read


def _apply(text: str, edits: list[Edit]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _as_words(line: str) -> str:
    """A line in which nothing is a link or a tag."""
    return line.replace("[", "&#91;").replace("<", "&lt;")
