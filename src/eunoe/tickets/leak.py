"""What was recalled stays with the director: passages of memories in a prompt to the worker are found and cut out.

Texts are compared as streams of letters and digits, without case, blanks, punctuation, accents and look-alikes, so that
no other spelling hides a passage that reads the same.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from eunoe.model.text import skeleton

RUN = 8.0

# Scripts that put no blanks between words; one of their signs counts as half a word.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_UNITS = re.compile(f"{_SPACELESS.pattern}|(?:(?!{_SPACELESS.pattern}).)+")
_APART = "\n"
_MARK = "[...]"
_WORD = re.compile(r"[^\W_]")


class Passage(NamedTuple):
    """A part of a prompt that is recalled text, by its place in the prompt."""

    start: int
    end: int
    text: str


class Guard:
    """Knows what was recalled, and what the worker may be told because it is said elsewhere.

    >>> guard = Guard(["The staging database is called heron and listens on port 5499 only."], ["Fix the setup."])
    >>> [passage.text for passage in guard.passages("Note: the STAGING database is *called heron*, and listens on it.")]
    ['the STAGING database is *called heron*, and listens on']
    >>> guard.cut("The staging database is called heron and listens on port 5499 only. Fix the setup.")
    '[...] Fix the setup.'
    """

    def __init__(self, recalled: Iterable[str], allowed: Iterable[str]) -> None:
        self._allowed = list(allowed)
        self._runs: dict[str, None] = {}
        self._short: dict[str, str] = {}
        for text in dict.fromkeys(recalled):
            units = _units(text)
            runs = list(_runs(units))
            self._runs.update(dict.fromkeys(runs))
            if units and not runs:
                self._short["".join(units)] = f" {' '.join(units)} "

    def passages(self, prompt: str) -> list[Passage]:
        """Where a prompt carries a run of eight words or more out of a memory, or the whole of a shorter one."""
        stream = _stream(prompt)
        found: list[tuple[int, int]] = []
        for run in self._runs:
            if run in stream.letters and run not in self._known:
                found += _places(stream.letters, run)
        for short, spaced in self._short.items():
            if short in stream.letters and spaced not in self._known_words:
                found += [place for place in _places(stream.letters, short) if stream.is_whole(*place)]
        spans = [(stream.places[start], stream.places[end - 1] + 1) for start, end in _merged(found)]
        return [Passage(start, end, prompt[start:end]) for start, end in spans]

    def cut(self, prompt: str) -> str:
        """The prompt without those passages; empty if no word is left. What comes together by cutting is cut too."""
        while passages := self.passages(prompt):
            for passage in reversed(passages):
                prompt = f"{prompt[: passage.start]}{_MARK}{_rest(prompt[passage.end :])}"
        return prompt if _WORD.search(prompt) else ""

    @cached_property
    def _known(self) -> str:
        return _APART.join(_stream(text).letters for text in self._allowed)

    @cached_property
    def _known_words(self) -> str:
        return _APART.join(f" {' '.join(_units(text))} " for text in self._allowed)


class _Stream(NamedTuple):
    """The letters and digits of a text as they are compared, and where each stood."""

    letters: str
    places: Sequence[int]

    def is_whole(self, start: int, end: int) -> bool:
        """Whether no word reaches over the ends of a part."""
        return self._parted(start) and self._parted(end)

    def _parted(self, place: int) -> bool:
        if place in (0, len(self.letters)):
            return True
        return self.places[place] - self.places[place - 1] > 1 or bool(_SPACELESS.match(self.letters[place]))


def _stream(text: str) -> _Stream:
    letters: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        for letter in _plain(sign):
            letters.append(letter)
            places.append(place)
    return _Stream("".join(letters), places)


@lru_cache(maxsize=4096)
def _plain(sign: str) -> str:
    """A sign as letters and digits; a mark that only changes another sign is none."""
    if unicodedata.category(sign)[0] in "MC":
        return ""
    return "".join(letter for letter in skeleton(sign) if letter.isalnum())


def _units(text: str) -> list[str]:
    """The words of a text, or its signs where words are not set apart."""
    words = ("".join(filter(str.isalnum, word)) for word in skeleton(text).split())
    return [unit for word in words if word for unit in _UNITS.findall(word)]


def _runs(units: Sequence[str]) -> Iterator[str]:
    """Every run of units that is just long enough."""
    weights = [0.5 if _SPACELESS.fullmatch(unit) else 1.0 for unit in units]
    sums = [0.0]
    for weight in weights:
        sums.append(sums[-1] + weight)
    for start in range(len(units)):
        end = bisect_left(sums, sums[start] + RUN)
        if end >= len(sums):
            return
        yield "".join(units[start:end])


def _places(text: str, part: str) -> Iterator[tuple[int, int]]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + 1)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _rest(text: str) -> str:
    """What follows a passage, without the marks that ended it."""
    return text.lstrip(".,;:!?\"'`*_)")
