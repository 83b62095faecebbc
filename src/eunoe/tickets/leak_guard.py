"""What was recalled stays with the director: a copy of a memory in a prompt to the worker is found and cut out.

The guard promises this. The worker is sent no eight words of a memory in a row, and no memory of four words or more as
a whole. In pieces of four words or more, counted over all prompts of a run, it is sent at most half of a memory, or of
one sentence of it, or seven words. Names are no words: file names, paths, symbols, hashes and numbers pass, which is
what a memory is for. Words of a memory that are only joined like a name, by signs or capitals, are words. What the
ticket says, or what the worker said first, passes too. Case, punctuation, line breaks, accents and look-alike letters
hide nothing. A memory in other words, another order, another language or an encoding is not found: the guard stops a
director that copies, not one that wants to tell.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from eunoe.text.look_alikes import bare_form
from eunoe.text.scripts import HAN_AND_KANA, SOUTH_EAST_ASIAN

PASSAGE_WORDS: Final = 8.0
PIECE_WORDS: Final = 4.0
_CUT_MARK: Final = "[...]"
_ESCAPE: Final = re.compile(r"\\[nrt\"]")
"""As a memory is quoted for the director."""
_EDGES: Final = ".,;:!?\"'`*_()[]{}<>«»…"
_NAME: Final = re.compile(r"\d|\w_|[a-z][A-Z]|[^\W_][/\\.:@=#$~+][^\W_]|^[/@#$~.-]")
_NAME_PART: Final = re.compile(r"(?P<letter>(?!))|[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
_SENTENCE_END: Final = re.compile(r"[.!?]\s|\n|[。！？]")  # noqa: RUF001


class Leak(NamedTuple):
    """A part of a prompt that is recalled text."""

    start: int
    end: int
    text: str


class _Word(NamedTuple):
    letters: str
    start: int
    end: int
    weight: float


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
        self._memories = [_Memory(text) for text in dict.fromkeys(recalled)]
        self._names = frozenset(name for memory in self._memories for name in memory.names)
        self._pairs = frozenset(pair for memory in self._memories for pair in memory.pairs)
        self._allowed = _Runs()
        self._sent = _Runs()
        for text in ticket:
            self._allowed |= _runs(self._read(text))
        for prompt, answer in turns:
            self._sent |= _runs(self._read(prompt))
            self._allowed |= _runs(self._read(answer)) - self._sent  # a worker that repeats its prompt allows nothing

    def find_leaks(self, prompt: str) -> list[Leak]:
        """Find where a prompt carries recalled text."""
        words = self._read(prompt)
        new = _runs(words) - self._allowed
        sent = _Runs(self._sent.pieces | new.pieces) - self._allowed
        leaks = _Runs()
        for memory in self._memories:
            leaks |= memory.leaks(new, sent, self._allowed)
        cut: set[int] = set()
        for size, runs in ((PIECE_WORDS, leaks.pieces), (PASSAGE_WORDS, leaks.passages)):
            cut.update(place for run, places in _places(words, size) if run in runs for place in places)
        return list(_join_words(prompt, words, sorted(cut)))

    def redact(self, prompt: str) -> str:
        """Cut the leaks out, also those that arise by cutting. Return an empty text if no word is left."""
        while leaks := self.find_leaks(prompt):
            for leak in reversed(leaks):
                following = prompt[leak.end :].lstrip(".,;:!?\"'`*_)")
                prompt = f"{prompt[: leak.start]}{_CUT_MARK}{following}"
        return prompt if _words(prompt) else ""

    def _read(self, text: str) -> list[_Word]:
        """The words of a text. A name is left out, unless two of its parts stand side by side in a memory."""
        return _words(text, lambda name, parts: name in self._names or self._pairs.isdisjoint(pairwise(parts)))


class _Runs(NamedTuple):
    """Runs of words of a text, as their letters: those that are a piece, and those that are a passage."""

    pieces: frozenset[str] = frozenset()
    passages: frozenset[str] = frozenset()

    def __or__(self, other: _Runs) -> _Runs:
        return _Runs(self.pieces | other.pieces, self.passages | other.passages)

    def __sub__(self, other: _Runs) -> _Runs:
        return _Runs(self.pieces - other.pieces, self.passages - other.passages)


class _Memory:
    def __init__(self, text: str) -> None:
        self.names = {name for _, name in _tokens(_without_escapes(text)) if name}
        self._words = _words(text)
        self.pairs = set(pairwise(word.letters for word in self._words))
        self._runs = _runs(self._words)
        self._units = [range(len(self._words)), *_sentences(text, self._words)]

    def leaks(self, new: _Runs, sent: _Runs, allowed: _Runs) -> _Runs:
        """The runs of the memory in a prompt that make it a leak, with what was sent before."""
        pieces = self._runs.pieces & new.pieces
        free = self._covered(allowed.pieces)
        known = self._covered(sent.pieces) - free
        added = self._covered(pieces) - free
        is_told = any(added.intersection(unit) and self._is_told(known, free, unit) for unit in self._units)
        return _Runs(pieces if is_told else frozenset(), self._runs.passages & new.passages)

    def _is_told(self, known: set[int], free: set[int], unit: range) -> bool:
        whole = self._weight(place for place in unit if place not in free)
        told = self._weight(known.intersection(unit))
        return whole >= PIECE_WORDS and told >= min(whole, PASSAGE_WORDS) and told > whole / 2

    def _covered(self, pieces: frozenset[str]) -> set[int]:
        return {place for run, places in _places(self._words, PIECE_WORDS) if run in pieces for place in places}

    def _weight(self, places: Iterable[int]) -> float:
        return sum(self._words[place].weight for place in places)


class _Patterns(NamedTuple):
    token: re.Pattern[str]
    word: re.Pattern[str]


@cache
def _patterns(*, is_ascii: bool) -> _Patterns:
    """What stands between blanks, and the words in it.

    A letter of a script without blanks counts as half a word, and never belongs to a name.
    """
    if is_ascii:
        return _Patterns(re.compile(r"\S+"), re.compile(r"(?P<letter>(?!))|[A-Za-z]+"))
    unspaced = f"{HAN_AND_KANA}{SOUTH_EAST_ASIAN}"
    marks = "\u0300-\u036f\u200b-\u200f\u00ad\u2060\ufeff"
    word = rf"(?P<letter>[{unspaced}])|(?:(?![{unspaced}])[^\W\d_]|[{marks}])+"
    return _Patterns(re.compile(rf"[{unspaced}]+|[^\s{unspaced}]+"), re.compile(word))


def _without_escapes(text: str) -> str:
    return _ESCAPE.sub("  ", text)


def _tokens(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """What stands between blanks, and the name that it looks like, if it looks like one."""
    for token in _patterns(is_ascii=text.isascii()).token.finditer(text):
        name = token[0].strip(_EDGES)
        yield token, name if _NAME.search(name) else ""


def _words(text: str, is_name: Callable[[str, list[str]], bool] = lambda name, parts: True) -> list[_Word]:
    """The words of a text as they are compared, and where they stand. Names are left out.

    Args:
        is_name: is asked about what looks like a name, with the words that it would be otherwise.
    """
    plain = _without_escapes(text)
    found = list[_Word]()
    for token, name in _tokens(plain):
        parts = _read_words(plain, token, _NAME_PART if name else _patterns(is_ascii=plain.isascii()).word)
        if not name or not is_name(name, [part.letters for part in parts]):
            found += parts
    return found


def _read_words(text: str, token: re.Match[str], pattern: re.Pattern[str]) -> list[_Word]:
    found = (
        _Word(bare_form(word[0]), *word.span(), 0.5 if word["letter"] else 1.0)
        for word in pattern.finditer(text, *token.span())
    )
    return [word for word in found if word.letters.isalnum()]


def _runs(words: Sequence[_Word]) -> _Runs:
    return _Runs(*(frozenset(run for run, _ in _places(words, size)) for size in (PIECE_WORDS, PASSAGE_WORDS)))


def _places(words: Sequence[_Word], size: float) -> Iterator[tuple[str, range]]:
    """Every run of words that is just as long, and its places."""
    lengths = list(accumulate((word.weight for word in words), initial=0.0))
    for start in range(len(words)):
        end = bisect_left(lengths, lengths[start] + size)
        if end >= len(lengths):
            return
        yield " ".join(word.letters for word in words[start:end]), range(start, end)


def _sentences(text: str, words: Sequence[_Word]) -> Iterator[range]:
    """The places of the words of each sentence that is long enough to hold a passage."""
    ends = [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    first = 0
    for end in ends:
        last = bisect_left(words, end, first, key=lambda word: word.start)
        if sum(word.weight for word in words[first:last]) >= PASSAGE_WORDS:
            yield range(first, last)
        first = last


def _join_words(prompt: str, words: Sequence[_Word], places: Iterable[int]) -> Iterator[Leak]:
    """Parts of a prompt made of these words. A name between two words is not a part of them."""
    plain, spans = _without_escapes(prompt), list[tuple[int, int]]()
    for place in places:
        word = words[place]
        if spans and not any(map(str.isalnum, plain[spans[-1][1] : word.start])):
            spans[-1] = (spans[-1][0], word.end)
        else:
            spans.append((word.start, word.end))
    return (Leak(start, end, prompt[start:end]) for start, end in spans)
