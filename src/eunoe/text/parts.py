"""Long texts in parts: one vector says little about what stands in the middle of a page."""

from collections.abc import Iterator
from math import ceil
from typing import Final

from eunoe.text.sentences import split_line, word_count

LONG_TEXT_WORDS: Final = 150
"""A text of at most so many words has one vector: it is about one thing, and in parts it is found less well
(docs/decisions/0018-parts.md)."""
PART_WORDS: Final = 60
"""About how many words a part has."""
MAX_PARTS: Final = 64
"""About how many parts a text has at most: a longer one has longer parts."""
_USUAL_WORD_CHARACTERS: Final = 6
"""With the blank after it. A longer word counts as several: a model reads it in pieces."""


def split_into_parts(text: str) -> list[str]:
    """Split a text for embedding: whole, or cut between lines and sentences into parts of about the same length.

    >>> split_into_parts("Anna moved to Rome.")
    ['Anna moved to Rome.']
    >>> [len(part.split()) for part in split_into_parts("Anna moved to Rome. " * 50)]
    [68, 68, 64]
    """
    if len(text) < 2 * LONG_TEXT_WORDS or (total := _size(text)) <= LONG_TEXT_WORDS:
        return [text]
    part_size = total / min(round(total / PART_WORDS), MAX_PARTS)
    return list(_join_pieces(text, part_size))


def _size(text: str) -> float:
    """How many words of the usual length a text has."""
    return max(word_count(text), len(text) / _USUAL_WORD_CHARACTERS)


def _join_pieces(text: str, part_size: float) -> Iterator[str]:
    part, size = list[str](), 0.0
    for line in text.splitlines():
        for sentence in split_line(line):
            for piece in filter(None, _cut_sentence(sentence, part_size)):
                more = _size(piece)
                if part and size + more / 2 > part_size:
                    yield " ".join(part)
                    part, size = [], 0.0
                part.append(piece)
                size += more
    if part:
        yield " ".join(part)


def _cut_sentence(sentence: str, part_size: float) -> Iterator[str]:
    """Cut a sentence that is too long for a part evenly, between words where there are any."""
    step = ceil(len(sentence) / ceil(_size(sentence) / part_size))
    start = 0
    while start < len(sentence):
        end = start + step
        blank = sentence.rfind(" ", start + step // 2, end) if end < len(sentence) else -1
        end = end if blank < 0 else blank
        yield sentence[start:end].strip()
        start = end
