"""What was recalled stays with the director: a copy of a memory in a prompt to the worker is found and cut out.

The guard promises this. The worker is sent no eight words of a memory in a row, and no memory of four words or more as
a whole. Shorter pieces, of three words or more, are counted over all prompts of a run: together they are at most half
of a memory, and half of each of its sentences; seven words are allowed in any case. Names are no words: file names,
paths, symbols, hashes and numbers pass, which is what a memory is for. Words of a memory that only look like names, by
signs, digits or capitals, are words. What the ticket says, what the worker said first, and what was found in the
folder or by the check passes too. Case, punctuation, line breaks, accents, invisible signs and look-alike letters hide
nothing. A memory in other words, another order, another language or an encoding, with other words in between, in
pieces of one or two words, letter by letter or without any blanks is not found: the guard stops a director that
copies, not one that wants to tell.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from eunoe.text.normalize import HAN_AND_KANA, SOUTH_EAST_ASIAN, bare_form

PASSAGE_WORDS: Final = 8.0
PIECE_WORDS: Final = 3.0
_LEAST_WORDS: Final = 4.0
"""A shorter memory is no secret."""
_CUT_MARK: Final = "[...]"
_ESCAPE: Final = re.compile(r"\\[nrt\"]")
"""As a memory is quoted for the director."""
_EDGES: Final = ".,;:!?\"'`*_()[]{}<>«»…"
_NAME: Final = re.compile(r"\d|\w_|[a-z][A-Z]|[^\W_][/\\.:@=#$~+][^\W_]|^[/@#$~.-]")
_NAME_START: Final = "#@$~/\\+=-"
_NAME_PART: Final = re.compile(r"(?P<letter>(?!))|[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
_UNSEEN: Final = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
"""Signs without width, and marks that no language puts on a letter."""
_LETTER_RUN: Final = re.compile(r"[^\W\d_]+")
"""Also matches signs of numbers that are no digits, such as ², ① and ½."""
_ROMAN: Final = re.compile("[\u2160-\u2188]")
"""Numbers that look like letters: both readings are tried."""
_ALPHABETS: Final = (0x249C, 0x24B6, 0x24D0, 0x1F110, 0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
"""Where the letters in circles, squares and brackets begin, and those of flags."""
_LETTERS: Final = {first + place: chr(ord("a") + place) for first in _ALPHABETS for place in range(26)} | str.maketrans(
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz"
)
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
        self._vocabulary = frozenset(word for memory in self._memories for word in memory.vocabulary)
        self._allowed = _Runs()
        self._sent = _Runs()
        for text in ticket:
            self._allowed |= _runs(*self._read(text))
        for prompt, answer in turns:
            self._sent |= _runs(*self._read(prompt))
            self._allowed |= _runs(*self._read(answer)) - self._sent  # a worker that repeats its prompt allows nothing

    def find_leaks(self, prompt: str) -> list[Leak]:
        """Find where a prompt carries recalled text."""
        readings = self._read(prompt)
        new = _runs(*readings) - self._allowed
        sent = _Runs(self._sent.pieces | new.pieces) - self._allowed
        leaks = _Runs()
        for memory in self._memories:
            leaks |= memory.leaks(new, sent, self._allowed)
        cut = {
            words[place]
            for words in readings
            for size, runs in ((PIECE_WORDS, leaks.pieces), (PASSAGE_WORDS, leaks.passages))
            for run, places in _places(words, size)
            if run in runs
            for place in places
        }
        return list(_join_words(prompt, sorted(cut, key=lambda word: (word.start, word.end))))

    def redact(self, prompt: str) -> str:
        """Cut the leaks out, also those that arise by cutting. Return an empty text if no word is left."""
        while leaks := self.find_leaks(prompt):
            for leak in reversed(leaks):
                following = prompt[leak.end :].lstrip(".,;:!?\"'`*_)")
                prompt = f"{prompt[: leak.start]}{_CUT_MARK}{following}"
        return prompt if _words(prompt) else ""

    def _read(self, text: str) -> list[list[_Word]]:
        """The words of a text, read in two ways: names left out, and names as the words of memories in them.

        So neither a name between the words of a memory nor a sign on each of them hides it. Roman numbers in one sign
        are read as letters, and as nothing.
        """
        texts = dict.fromkeys((text, _ROMAN.sub("\xad", text)))
        return [words for each in texts for words in (_words(each), list(self._words_in_names(_plain(each))))]

    def _words_in_names(self, text: str) -> Iterator[_Word]:
        before = ""
        for token, name in _tokens(text):
            if name and not self._names.isdisjoint((name, name.lstrip(_NAME_START))):
                continue
            words = _read_words(text, token.span())
            if name or len(words) > 1 or "\xad" in token[0]:
                words = words if any(word.weight < 1 for word in words) else self._known_words(text, words)
            for word in words:
                if len(words) == 1 or len(word.letters) > 1 or word.weight < 1 or (before, word.letters) in self._pairs:
                    yield word
                    before = word.letters

    def _known_words(self, text: str, words: Sequence[_Word]) -> list[_Word]:
        """Those words of a name that memories have: all as one, each as a whole, or its parts."""
        if not words:
            return []
        whole = _Word("".join(word.letters for word in words), words[0].start, words[-1].end, 1.0)
        if whole.letters in self._vocabulary:
            return [whole]
        parts = (
            [word] if word.letters in self._vocabulary else _read_words(text, (word.start, word.end), _NAME_PART)
            for word in words
        )
        return [part for found in parts for part in found if part.letters in self._vocabulary]


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
        self.names = {name for _, name in _tokens(_without_escapes(_plain(text))) if name}
        self._words = _words(text)
        self.vocabulary = [word.letters for word in self._words]
        self.pairs = set(pairwise(self.vocabulary))
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
        return whole >= _LEAST_WORDS and told >= min(whole, PASSAGE_WORDS) and told > whole / 2

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
    marks = "\u0300-\u036f\u00ad"
    word = rf"(?P<letter>[{unspaced}])|(?:(?![{unspaced}])[^\W\d_]|[{marks}])+"
    return _Patterns(re.compile(rf"[{unspaced}]+|[^\s{unspaced}]+"), re.compile(word))


def _plain(text: str) -> str:
    """The text with plain letters for decorated ones, one sign for numbers and all unseen; each in its place."""
    if text.isascii():
        return text
    return _LETTER_RUN.sub(_without_numbers, _UNSEEN.sub("\xad", text.translate(_LETTERS)))


def _without_numbers(match: re.Match[str]) -> str:
    word = match[0]
    if word.isalpha():
        return word
    return "".join(sign if sign.isalpha() or _ROMAN.match(sign) else "\xad" for sign in word)


def _without_escapes(text: str) -> str:
    return _ESCAPE.sub("  ", text)


def _tokens(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """What stands between blanks, and the name that it looks like, if it looks like one."""
    for token in _patterns(is_ascii=text.isascii()).token.finditer(text):
        name = token[0].strip(_EDGES)
        yield token, name if _NAME.search(name) else ""


def _words(text: str) -> list[_Word]:
    """The words of a text as they are compared, and where they stand. Names are left out."""
    plain = _without_escapes(_plain(text))
    return [word for token, name in _tokens(plain) if not name for word in _read_words(plain, token.span())]


def _read_words(text: str, span: tuple[int, int], pattern: re.Pattern[str] | None = None) -> list[_Word]:
    pattern = pattern or _patterns(is_ascii=text.isascii()).word
    found = (
        _Word(bare_form(word[0]), *word.span(), 0.5 if word["letter"] else 1.0)
        for word in pattern.finditer(text, *span)
    )
    return [word for word in found if word.letters.isalnum()]


def _runs(*readings: Sequence[_Word]) -> _Runs:
    return _Runs(
        *(
            frozenset(run for words in readings for run, _ in _places(words, size))
            for size in (PIECE_WORDS, PASSAGE_WORDS)
        )
    )


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


def _join_words(prompt: str, words: Iterable[_Word]) -> Iterator[Leak]:
    """Parts of a prompt made of these words. A name between two words is not a part of them."""
    plain, spans = _without_escapes(prompt), list[tuple[int, int]]()
    for word in words:
        if spans and not any(map(str.isalnum, plain[spans[-1][1] : word.start])):
            spans[-1] = (spans[-1][0], max(word.end, spans[-1][1]))
        else:
            spans.append((word.start, word.end))
    return (Leak(start, end, prompt[start:end]) for start, end in spans)
