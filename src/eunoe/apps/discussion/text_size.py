"""The size of texts that are made without a model: in words; pasted data without blanks counts by its characters."""

from __future__ import annotations

from typing import Final

from eunoe.text.sentences import cut_to_words, word_count

_WORD_CHARACTERS: Final = 12
"""Of a text with longer words than this on average, its characters count. No language has such words."""


def size_in_words(text: str) -> int:
    """How many words a text has, or has room for.

    >>> size_in_words("I moved to Rome."), size_in_words("QUJD" * 300)
    (4, 100)
    """
    return max(word_count(text), -(-len(text) // _WORD_CHARACTERS))


def cut_to_size(text: str, words: int) -> str:
    """Cut a text to the size of so many words, and then "…".

    >>> cut_to_size("See data:QUJDQUJDQUJDQUJDQUJDQUJDQUJD", 2)
    'See data:QUJDQUJDQUJDQUJ…'
    """
    short, most = cut_to_words(text, words), words * _WORD_CHARACTERS
    return short if len(short) <= most + 1 else f"{short[:most].rstrip()}…"
