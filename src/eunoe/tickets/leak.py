"""What was recalled stays with the director: passages of memories in a prompt to the worker are found and cut out.

Texts are compared as streams of letters and digits, without case, blanks, punctuation, accents and look-alikes, with
escapes read and numbers of lines left out, so that no other spelling hides a passage that reads the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from eunoe.text.normalize import look_alike_form
from eunoe.tickets.credentials import credentials
from eunoe.tickets.share import Shares
from eunoe.tickets.spelling import SPACELESS, Spelling, Stream, spellings

RUN = 8.0

_UNITS = re.compile(f"{SPACELESS.pattern}|(?:(?!{SPACELESS.pattern}).)+")
_APART = "\n"
_MARK = "[...]"
_WORD = re.compile(r"[^\W_]")
_CLEAR = 3
"""A short memory in another spelling counts if it has so many words."""


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
        self._secrets: dict[str, None] = {}
        texts: dict[str, None] = {}
        for text in dict.fromkeys(recalled):
            self._learn(text, 1)
            for spelling in spellings(text):
                self._learn(spelling.text, _CLEAR)
                texts[spelling.text] = None
        self._shares = Shares(texts)

    def _learn(self, text: str, least: int) -> None:
        units = _units(text)
        runs = list(_runs(units))
        self._runs.update(dict.fromkeys(runs))
        if not runs and len(units) >= least:
            self._short["".join(units)] = f" {' '.join(units)} "
        self._secrets.update(dict.fromkeys("".join(_units(secret)) for secret in credentials(text)))

    def passages(self, prompt: str) -> list[Passage]:
        """Where a prompt carries recalled text.

        That is a run of eight words or more out of a memory, the whole of a shorter one, more than half of what a
        memory or a sentence of it says, or a secret.
        """
        found = [span for spelling in spellings(prompt) for span in self._spans(spelling)]
        return [Passage(start, end, prompt[start:end]) for start, end in _merged(found)]

    def _spans(self, spelling: Spelling) -> Iterator[tuple[int, int]]:
        stream = spelling.stream()
        for run in self._runs:
            if run in stream.letters and run not in self._known:
                yield from (stream.place(*place) for place in _places(stream.letters, run))
        for short, spaced in self._short.items():
            if short in stream.letters and spaced not in self._known_units:
                yield from _whole(stream, short)
        for secret in self._secrets:
            if secret in stream.letters and not self._is_known(secret):
                yield from _whole(stream, secret)
        yield from self._shares.spans(list(spelling.words()), lambda: self._known_words)

    def cut(self, prompt: str) -> str:
        """The prompt without those passages; empty if no word is left. What comes together by cutting is cut too."""
        while passages := self.passages(prompt):
            for passage in reversed(passages):
                prompt = f"{prompt[: passage.start]}{_MARK}{_rest(prompt[passage.end :])}"
        return prompt if _WORD.search(prompt) else ""

    def _is_known(self, secret: str) -> bool:
        return any(next(_whole(stream, secret), None) for stream in self._streams)

    @cached_property
    def _known(self) -> str:
        return _APART.join(stream.letters for stream in self._streams)

    @cached_property
    def _known_units(self) -> str:
        return _APART.join(f" {' '.join(_units(spelling.text))} " for spelling in self._spellings)

    @cached_property
    def _known_words(self) -> frozenset[str]:
        return frozenset(word.letters for spelling in self._spellings for word in spelling.words())

    @cached_property
    def _streams(self) -> list[Stream]:
        return [spelling.stream() for spelling in self._spellings]

    @cached_property
    def _spellings(self) -> list[Spelling]:
        return [spelling for text in self._allowed for spelling in spellings(text)]


def _whole(stream: Stream, part: str) -> Iterator[tuple[int, int]]:
    """Where a part stands that is no piece of a longer word."""
    return (stream.place(*place) for place in _places(stream.letters, part) if stream.is_whole(*place))


def _units(text: str) -> list[str]:
    """The words of a text, or its signs where words are not set apart."""
    words = ("".join(filter(str.isalnum, word)) for word in look_alike_form(text).split())
    return [unit for word in words if word for unit in _UNITS.findall(word)]


def _runs(units: Sequence[str]) -> Iterator[str]:
    """Every run of units that is just long enough; a sign of a script without blanks counts as half a word."""
    weights = [0.5 if SPACELESS.fullmatch(unit) else 1.0 for unit in units]
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
