"""One text in several spellings: as it stands, with its escapes read, and without what only numbers its parts."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from eunoe.text.normalize import look_alike_form

# Scripts that put no blanks between words.
SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Marks and invisible signs do not part a word.
_SILENT = frozenset({"Mn", "Mc", "Me", "Cf", "Cn", "Co", "Cs"})
_DEEPEST = 3
_NEXT = "%[89ab][0-9a-f]"
_ESCAPES = re.compile(
    r"&(?:#[0-9]{1,7};?|#x[0-9a-f]{1,6};?|[a-z][a-z0-9]{1,31};|(?:nbsp|amp|quot|shy|lt|gt))"
    rf"|%[0-7][0-9a-f]|%[cd][0-9a-f]{_NEXT}|%e[0-9a-f](?:{_NEXT}){{2}}|%f[0-7](?:{_NEXT}){{3}}"
    r"|\\{1,4}(?:[nrtfvb0]|x[0-9a-f]{2}|u[0-9a-f]{4}|u\{[0-9a-f]{1,6}\}|U[0-9a-f]{8})",
    re.IGNORECASE,
)
_NUMBERS = re.compile(
    r"^[ \t>#*+|-]{0,40}(?:[(\[]?\d{1,5}[.):|\]](?=\s|$)|\d{1,5}(?:\t| {2,}))"
    r"|[(\[{<]\s?\d{1,4}\s?[)\]}>]"
    r"|[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u2460-\u249b]"
    r"|</?[a-z][a-z0-9]{0,9}\s?/?>",
    re.IGNORECASE | re.MULTILINE,
)


class Word(NamedTuple):
    """A word as it is compared, and where it stands in the text."""

    letters: str
    start: int
    end: int


class Spelling(NamedTuple):
    """A text as it is read, and where each of its signs stands in the text as it was written."""

    text: str
    spans: Sequence[tuple[int, int]]

    def words(self) -> Iterator[Word]:
        letters: list[str] = []
        first = last = 0
        for number, sign in enumerate(self.text):
            if read := _plain(sign):
                first, last = (first if letters else number), number
                letters.append(read)
            elif letters and unicodedata.category(sign) not in _SILENT:
                yield Word("".join(letters), self.spans[first][0], self.spans[last][1])
                letters = []
        if letters:
            yield Word("".join(letters), self.spans[first][0], self.spans[last][1])

    def stream(self) -> Stream:
        letters: list[str] = []
        signs: list[int] = []
        for number, sign in enumerate(self.text):
            for letter in _plain(sign):
                letters.append(letter)
                signs.append(number)
        return Stream("".join(letters), signs, self.spans)

    def replaced(self, pattern: re.Pattern[str], by: Callable[[str], str]) -> Spelling:
        """With every match of a pattern read as something else."""
        texts: list[str] = []
        spans: list[tuple[int, int]] = []
        done = 0
        for match in pattern.finditer(self.text):
            start, end = match.span()
            read = by(match[0])
            texts += [self.text[done:start], read]
            spans += self.spans[done:start]
            spans += [(self.spans[start][0], self.spans[end - 1][1])] * len(read)
            done = end
        return Spelling("".join([*texts, self.text[done:]]), [*spans, *self.spans[done:]])


class Stream(NamedTuple):
    """The letters and digits of a text as they are compared, and where each stood."""

    letters: str
    signs: Sequence[int]
    spans: Sequence[tuple[int, int]]

    def is_whole(self, start: int, end: int) -> bool:
        """Whether no word reaches over the ends of a part."""
        return self._parted(start) and self._parted(end)

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a part stands in the text as it was written."""
        return self.spans[self.signs[start]][0], self.spans[self.signs[end - 1]][1]

    def _parted(self, place: int) -> bool:
        if place in (0, len(self.letters)):
            return True
        return self.signs[place] - self.signs[place - 1] > 1 or bool(SPACELESS.match(self.letters[place]))


def spellings(text: str) -> list[Spelling]:
    """A text as it stands, with its escapes read, and without numbers of lines and the like; each only if it differs.

    >>> [spelling.text for spelling in spellings("1. a%20b")]
    ['1. a%20b', '1. a b', '  a b']
    """
    found = [Spelling(text, [(place, place + 1) for place in range(len(text))])]
    read = _unescaped(found[0])
    if read.text != text:
        found.append(read)
    if _NUMBERS.search(read.text):
        found.append(read.replaced(_NUMBERS, lambda _: " "))
    return found


def _unescaped(spelling: Spelling) -> Spelling:
    for _ in range(_DEEPEST):
        read = spelling.replaced(_ESCAPES, _sign) if _ESCAPES.search(spelling.text) else spelling
        if read.text == spelling.text:
            break
        spelling = read
    return spelling


def _sign(escape: str) -> str:
    """What an escape stands for."""
    if escape[0] == "&":
        return html.unescape(escape)
    if escape[0] == "%":
        return bytes.fromhex(escape.replace("%", "")).decode("utf-8", "replace")
    code = escape.lstrip("\\")
    if len(code) == 1:
        return {"n": "\n", "t": "\t"}.get(code, " ")
    number = int(code[1:].strip("{}"), 16)
    return chr(number) if number < 0x110000 else " "


@lru_cache(maxsize=4096)
def _plain(sign: str) -> str:
    """A sign as letters and digits; a mark that only changes another sign is none."""
    if unicodedata.category(sign)[0] in "MC":
        return ""
    return "".join(letter for letter in look_alike_form(sign) if letter.isalnum())
