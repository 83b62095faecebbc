"""Texts as they are read (escapes decoded, numbering left out), aligned with the texts as they were written."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from eunoe.text.look_alikes import bare_form

UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Letters of scripts without spaces between words, as a class of a pattern. `text.scripts.SPACELESS` will not do: it
has Korean too, which is written with spaces, and whose syllables fall apart into single letters when compared."""
_UNSPACED_LETTER: Final = re.compile(f"[{UNSPACED}]")
_INVISIBLE_CATEGORIES: Final = frozenset({"Mn", "Mc", "Me", "Cf", "Cn", "Co", "Cs"})
"""Marks and invisible characters do not end a word."""
_MAX_NESTED_ESCAPES: Final = 3
_UTF8_TAIL: Final = "%[89ab][0-9a-f]"
_ESCAPE: Final = re.compile(
    r"&(?:#[0-9]{1,7};?|#x[0-9a-f]{1,6};?|[a-z][a-z0-9]{1,31};|(?:nbsp|amp|quot|shy|lt|gt))"
    rf"|%[0-7][0-9a-f]|%[cd][0-9a-f]{_UTF8_TAIL}|%e[0-9a-f](?:{_UTF8_TAIL}){{2}}|%f[0-7](?:{_UTF8_TAIL}){{3}}"
    r"|\\{1,4}(?:[nrtfvb0]|x[0-9a-f]{2}|u[0-9a-f]{4}|u\{[0-9a-f]{1,6}\}|U[0-9a-f]{8})",
    re.IGNORECASE,
)
_NUMBERING: Final = re.compile(
    r"^[ \t>#*+|-]{0,40}(?:[(\[]?\d{1,5}[.):|\]](?=\s|$)|\d{1,5}(?:\t| {2,}))"
    r"|[(\[{<]\s?\d{1,4}\s?[)\]}>]"
    r"|[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u2460-\u249b]"
    r"|</?[a-z][a-z0-9]{0,9}\s?/?>",
    re.IGNORECASE | re.MULTILINE,
)
"""Numbers of lines, list items and footnotes, and tags."""

Span = tuple[int, int]


class AlignedWord(NamedTuple):
    """A word as it is compared, and where it stands in the text as it was written."""

    letters: str
    start: int
    end: int


class AlignedLetters(NamedTuple):
    """The letters and digits of a text as they are compared, and where each stands in the text as it was written."""

    text: str
    spans: Sequence[Span]
    starts: Sequence[bool]
    """Whether a word starts at each letter, and at the end."""

    def find(self, part: str, whole_words: bool = False) -> Iterator[Span]:
        """Find where a part was written; with `whole_words` only where it is no piece of a longer word."""
        start = self.text.find(part)
        while start >= 0:
            end = start + len(part)
            if not whole_words or (self.starts[start] and self.starts[end]):
                yield self.spans[start][0], self.spans[end - 1][1]
            start = self.text.find(part, start + 1)


class AlignedText(NamedTuple):
    """A text as it is read, and where each of its characters stands in the text as it was written."""

    text: str
    spans: Sequence[Span]

    @classmethod
    def of(cls, text: str) -> AlignedText:
        return cls(text, [(place, place + 1) for place in range(len(text))])

    def words(self) -> Iterator[AlignedWord]:
        letters, first, last = "", 0, 0
        for place, character in enumerate(f"{self.text} "):  # the space ends the last word
            if compared := _comparable_letters(character):
                first, last = (first if letters else place), place
                letters += compared
            elif letters and unicodedata.category(character) not in _INVISIBLE_CATEGORIES:
                yield AlignedWord(letters, self.spans[first][0], self.spans[last][1])
                letters = ""

    def letters(self) -> AlignedLetters:
        letters: list[str] = []
        spans: list[Span] = []
        starts: list[bool] = []
        last = -2
        for place, character in enumerate(self.text):
            for letter in _comparable_letters(character):
                starts.append(place - last > 1 or (not letter.isascii() and bool(_UNSPACED_LETTER.match(letter))))
                letters.append(letter)
                spans.append(self.spans[place])
                last = place
        return AlignedLetters("".join(letters), spans, [*starts, True])

    def replace(self, pattern: re.Pattern[str], replacement: Callable[[str], str]) -> AlignedText:
        texts: list[str] = []
        spans: list[Span] = []
        done = 0
        for match in pattern.finditer(self.text):
            start, end = match.span()
            new = replacement(match[0])
            texts += [self.text[done:start], new]
            spans += self.spans[done:start]
            spans += [(self.spans[start][0], self.spans[end - 1][1])] * len(new)
            done = end
        return AlignedText("".join([*texts, self.text[done:]]), [*spans, *self.spans[done:]])


def text_variants(text: str) -> list[AlignedText]:
    """Return a text as it stands, with its escapes decoded, and without numbering; each only if it differs.

    >>> [variant.text for variant in text_variants("1. a%20b")]
    ['1. a%20b', '1. a b', '  a b']
    """
    variants = [AlignedText.of(text)]
    decoded = variants[0]
    for _ in range(_MAX_NESTED_ESCAPES):
        further = decoded.replace(_ESCAPE, _decode)
        if further.text == decoded.text:
            break
        decoded = further
    if decoded.text != text:
        variants.append(decoded)
    if _NUMBERING.search(decoded.text):
        variants.append(decoded.replace(_NUMBERING, lambda _: " "))
    return variants


def _decode(escape: str) -> str:
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
def _comparable_letters(character: str) -> str:
    """A character as letters and digits; none for a mark that only changes another one."""
    if unicodedata.category(character)[0] in "MC":
        return ""
    return "".join(letter for letter in bare_form(character) if letter.isalnum())
