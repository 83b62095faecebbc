"""What was recalled stays with the director: a copy of a memory in a prompt to the worker is found and cut out.

The worker is sent no eight words of a memory in a row, and no memory of four words or more as a whole. Names are no
words: file names, paths, symbols, hashes and numbers pass, which is what a memory is for. What the ticket says, what
the worker said first, and what was found in the folder or by the check passes too. Case, punctuation, line breaks,
accents, invisible signs and look-alike letters hide nothing. A memory in other words, another order, another language,
or in pieces is not found: the guard stops a director that copies, not one that wants to tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from eunoe.text.normalize import HAN_AND_KANA, SOUTH_EAST_ASIAN, bare_form

PASSAGE_WORDS: Final = 8
_LEAST_WORDS: Final = 4
"""A shorter memory is no secret."""
_CUT_MARK: Final = "[...]"
_ESCAPE: Final = re.compile(r"\\[nrt\"]")
"""As a memory is quoted for the director."""
_UNSPACED: Final = f"{HAN_AND_KANA}{SOUTH_EAST_ASIAN}"
_TOKEN: Final = re.compile(rf"[{_UNSPACED}]+|[^\s{_UNSPACED}]+")
"""What stands between blanks. A sign of a script without blanks is a word, and never belongs to a name."""
_WORD: Final = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W\d_]|[\u0300-\u036f\u00ad\u200b-\u200f\u2060])+")
_EDGES: Final = ".,;:!?\"'`*_()[]{}<>«»…"
_NAME: Final = re.compile(r"\d|\w_|[a-z][A-Z]|[^\W_][/\\.:@=#$~+][^\W_]|^[/@#$~.-]")


class Leak(NamedTuple):
    """A part of a prompt that is recalled text."""

    start: int
    end: int
    text: str


class _Word(NamedTuple):
    letters: str
    start: int
    end: int


class LeakGuard:
    """Knows what was recalled, what the ticket says, and what was sent and answered so far.

    >>> guard = LeakGuard(["The index on orders.customer_id was missing, so every query read the whole table."])
    >>> guard.redact("Look at orders.customer_id: EVERY QUERY read the whole table, missing an index.")
    'Look at orders.customer_id: EVERY QUERY read the whole table, missing an index.'
    >>> guard.redact("Note: the index on orders.customer_id was missing, so every query read all. Add one.")
    'Note: [...] orders.customer_id [...] all. Add one.'
    """

    def __init__(
        self, recalled: Iterable[str], ticket: Iterable[str] = (), turns: Iterable[tuple[str, str]] = ()
    ) -> None:
        memories = [_letters(text) for text in dict.fromkeys(recalled)]
        memories = [memory for memory in memories if len(memory) >= _LEAST_WORDS]
        self._sizes = {min(PASSAGE_WORDS, len(memory)) for memory in memories}
        self._passages = {run for memory in memories for run in _runs(memory, [min(PASSAGE_WORDS, len(memory))])}
        for text in ticket:
            self._passages -= set(_runs(_letters(text), self._sizes))
        sent = set[tuple[str, ...]]()
        for prompt, answer in turns:  # a worker that repeats its prompt allows nothing
            sent.update(_runs(_letters(prompt), self._sizes))
            self._passages -= set(_runs(_letters(answer), self._sizes)) - sent

    def find_leaks(self, prompt: str) -> list[Leak]:
        """Find where a prompt carries recalled text. A name between two words is not a part of it."""
        words = _words(prompt)
        letters = [word.letters for word in words]
        told = set[int]()
        for size in self._sizes:
            for start in range(len(words) - size + 1):
                if tuple(letters[start : start + size]) in self._passages:
                    told.update(range(start, start + size))
        plain, spans = _ESCAPE.sub("  ", prompt), list[tuple[int, int]]()
        for word in (words[place] for place in sorted(told)):
            if spans and not any(map(str.isalnum, plain[spans[-1][1] : word.start])):
                spans[-1] = (spans[-1][0], word.end)
            else:
                spans.append((word.start, word.end))
        return [Leak(start, end, prompt[start:end]) for start, end in spans]

    def redact(self, prompt: str) -> str:
        """Cut the leaks out, also those that arise by cutting. Return an empty text if no word is left."""
        while leaks := self.find_leaks(prompt):
            for leak in reversed(leaks):
                following = prompt[leak.end :].lstrip(".,;:!?\"'`*_)")
                prompt = f"{prompt[: leak.start]}{_CUT_MARK}{following}"
        return prompt if _words(prompt) else ""


def _words(text: str) -> list[_Word]:
    """The words of a text as they are compared, and where they stand. Names are left out."""
    plain = _ESCAPE.sub("  ", text)
    return [
        _Word(letters, *word.span())
        for token in _TOKEN.finditer(plain)
        if not _NAME.search(token[0].strip(_EDGES))
        for word in _WORD.finditer(plain, *token.span())
        if (letters := bare_form(word[0])).isalnum()
    ]


def _letters(text: str) -> list[str]:
    return [word.letters for word in _words(text)]


def _runs(letters: Sequence[str], sizes: Iterable[int]) -> Iterator[tuple[str, ...]]:
    return (tuple(letters[start : start + size]) for size in sizes for start in range(len(letters) - size + 1))
