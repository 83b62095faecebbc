"""Long texts in parts: one vector says little about what stands in the middle of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from typing import Final

from eunoe.text.sentences import split, words

LONG: Final = 150
"""So many words still have one vector: shorter texts are about one thing, and in parts they are found less well."""
PART: Final = 60
"""About how many words a part has."""
MOST: Final = 64
"""A text of about as many parts has longer ones instead of more."""
_LETTERS: Final = 6
"""A word of more characters, with the blank after it, counts as several: a model reads it in pieces."""


def parts(text: str) -> list[str]:
    """A text as it is embedded: whole, or cut between lines and sentences into parts of about the same length.

    >>> parts("Anna moved to Rome.")
    ['Anna moved to Rome.']
    >>> [len(part.split()) for part in parts("Anna moved to Rome. " * 50)]
    [68, 68, 64]
    """
    if len(text) < 2 * LONG or (total := _size(text)) <= LONG:
        return [text]
    most = total / min(round(total / PART), MOST)
    return list(_packed(_pieces(text, most), most))


def _size(text: str) -> float:
    return max(words(text), len(text) / _LETTERS)


def _pieces(text: str, most: float) -> Iterator[str]:
    return (run for line in text.splitlines() for sentence in split(line) for run in _runs(sentence, most))


def _runs(sentence: str, most: float) -> Iterator[str]:
    """One that is too long for a part is cut evenly, between words where there are any."""
    step = ceil(len(sentence) / ceil(_size(sentence) / most))
    start = 0
    while start < len(sentence):
        end = start + step
        blank = sentence.rfind(" ", start + step // 2, end) if end < len(sentence) else -1
        end = end if blank < 0 else blank
        yield sentence[start:end].strip()
        start = end


def _packed(pieces: Iterable[str], most: float) -> Iterator[str]:
    held, size = "", 0.0
    for piece in pieces:
        more = _size(piece)
        if held and size + more / 2 > most:
            yield held
            held, size = "", 0.0
        held, size = f"{held} {piece}".strip(), size + more
    if held:
        yield held
