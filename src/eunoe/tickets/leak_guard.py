"""What was recalled stays with the director: recalled text in a prompt to the worker is found and cut out.

Texts are compared as letters and digits, without case, blanks, punctuation, accents and look-alikes, with escapes
decoded and numbers of lines left out, so that no other spelling hides a text that reads the same.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

from eunoe.text.look_alikes import bare_form
from eunoe.tickets.aligned_text import UNSPACED, AlignedLetters, AlignedText, Span, text_variants
from eunoe.tickets.credentials import find_credentials
from eunoe.tickets.word_overlap import WordOverlap

MIN_RUN_WORDS: Final = 8.0
"""A letter of a script without spaces counts as half a word."""
_MIN_VARIANT_WORDS: Final = 3
"""A short memory in another spelling counts if it has so many words."""
_UNIT: Final = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")
_UNSPACED_UNIT: Final = re.compile(f"[{UNSPACED}]")
_LETTER: Final = re.compile(r"[^\W_]")
_CUT_MARK: Final = "[...]"
_SEPARATOR: Final = "\n"


class Leak(NamedTuple):
    """A part of a prompt that is recalled text."""

    start: int
    end: int
    text: str


class LeakGuard:
    """Knows what was recalled, and what the worker may be told because it is said elsewhere.

    >>> guard = LeakGuard(["The staging database is called heron and listens on port 5499 only."], ["Fix the setup."])
    >>> [leak.text for leak in guard.find_leaks("Note: the STAGING database is *called heron*, and listens on it.")]
    ['the STAGING database is *called heron*, and listens on']
    >>> guard.redact("The staging database is called heron and listens on port 5499 only. Fix the setup.")
    '[...] Fix the setup.'
    """

    def __init__(self, recalled: Iterable[str], allowed: Iterable[str]) -> None:
        self._allowed_texts = list(allowed)
        self._runs: set[str] = set()
        self._short_texts: dict[str, str] = {}
        """Memories that are shorter than a run: their letters, and their units with blanks between."""
        self._secrets: set[str] = set()
        variants: dict[str, None] = {}
        for text in dict.fromkeys(recalled):
            self._add(text, 1)
            for variant in text_variants(text):
                self._add(variant.text, _MIN_VARIANT_WORDS)
                variants[variant.text] = None
        self._overlap = WordOverlap(variants)

    def _add(self, text: str, min_units: int) -> None:
        units = _split_units(text)
        runs = set(_shortest_runs(units))
        self._runs |= runs
        if not runs and len(units) >= min_units:
            self._short_texts["".join(units)] = _spaced(units)
        self._secrets.update("".join(_split_units(secret)) for secret in find_credentials(text))

    def find_leaks(self, prompt: str) -> list[Leak]:
        """Find where a prompt carries recalled text.

        That is a run of eight words or more out of a memory, the whole of a shorter one, more than half of what a
        memory or a sentence of it says, or a secret.
        """
        merged: list[Span] = []
        for start, end in sorted(span for variant in text_variants(prompt) for span in self._find_spans(variant)):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return [Leak(start, end, prompt[start:end]) for start, end in merged]

    def _find_spans(self, prompt: AlignedText) -> Iterator[Span]:
        letters = prompt.letters()
        for run in self._runs:
            if run in letters.text and run not in self._allowed_runs:
                yield from letters.find(run)
        for short, spaced in self._short_texts.items():
            if short in letters.text and spaced not in self._allowed_units:
                yield from letters.find(short, whole_words=True)
        for secret in self._secrets:
            if secret in letters.text and not self._is_allowed(secret):
                yield from letters.find(secret, whole_words=True)
        yield from self._overlap.find(prompt, lambda: self._allowed_words)

    def redact(self, prompt: str) -> str:
        """Cut the leaks out, also those that arise by cutting. Return an empty text if no word is left."""
        while leaks := self.find_leaks(prompt):
            for leak in reversed(leaks):
                following = prompt[leak.end :].lstrip(".,;:!?\"'`*_)")
                prompt = f"{prompt[: leak.start]}{_CUT_MARK}{following}"
        return prompt if _LETTER.search(prompt) else ""

    def _is_allowed(self, secret: str) -> bool:
        return any(True for letters in self._allowed_letters for _ in letters.find(secret, whole_words=True))

    @cached_property
    def _allowed_variants(self) -> list[AlignedText]:
        return [variant for text in self._allowed_texts for variant in text_variants(text)]

    @cached_property
    def _allowed_letters(self) -> list[AlignedLetters]:
        return [variant.letters() for variant in self._allowed_variants]

    @cached_property
    def _allowed_runs(self) -> str:
        return _SEPARATOR.join(letters.text for letters in self._allowed_letters)

    @cached_property
    def _allowed_units(self) -> str:
        return _SEPARATOR.join(_spaced(_split_units(variant.text)) for variant in self._allowed_variants)

    @cached_property
    def _allowed_words(self) -> frozenset[str]:
        return frozenset(word.letters for variant in self._allowed_variants for word in variant.words())


def _split_units(text: str) -> list[str]:
    """The words of a text as they are compared, or its letters where words are not set apart."""
    words = ("".join(filter(str.isalnum, word)) for word in bare_form(text).split())
    return [unit for word in words for unit in _UNIT.findall(word)]


def _spaced(units: Sequence[str]) -> str:
    return f" {' '.join(units)} "


def _shortest_runs(units: Sequence[str]) -> Iterator[str]:
    """Every run of units that is just long enough to be a leak."""
    lengths = list(accumulate((0.5 if _UNSPACED_UNIT.fullmatch(unit) else 1.0 for unit in units), initial=0.0))
    for start in range(len(units)):
        end = bisect_left(lengths, lengths[start] + MIN_RUN_WORDS)
        if end >= len(lengths):
            return
        yield "".join(units[start:end])
