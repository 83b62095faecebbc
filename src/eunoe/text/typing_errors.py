"""Typing errors: the words that somebody may have meant who mistyped one letter."""

from string import ascii_lowercase
from typing import Final

MIN_CHARACTERS: Final = 5
"""A shorter word is one letter away from too many others."""
_MAX_CHARACTERS: Final = 24


def one_letter_away(word: str) -> frozenset[str]:
    """Return what a folded word is with a letter left out, put in, changed, or two exchanged; the first letter, which
    is seldom wrong, stays.

    >>> sorted({"render", "sundays", "fender"} & (one_letter_away("rendr") | one_letter_away("sundys")))
    ['render', 'sundays']
    """
    if not (MIN_CHARACTERS <= len(word) <= _MAX_CHARACTERS and word.isascii() and word.isalpha()):
        return frozenset()
    parts = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    found = {before + letter + after for before, after in parts for letter in ascii_lowercase}
    found |= {before + letter + after[1:] for before, after in parts if after for letter in ("", *ascii_lowercase)}
    found |= {before + after[1] + after[0] + after[2:] for before, after in parts if len(after) > 1}
    return frozenset(found - {word})
