"""Names that are spelled like another one: what somebody may have meant who mistyped it."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

_MAX_NAME_CHARACTERS: Final = 120
"""No name is longer; comparing takes time with the product of the lengths."""
_MAX_COMPARED: Final = 50
"""So many that share most pairs of letters are compared letter by letter."""
_MAX_WORDS: Final = 6
_MIN_WORD_CHARACTERS: Final = 4
"""Shorter words, such as "the" and "von", stand in too many names."""
_MIN_SHARED_PAIRS: Final = 0.3
_MIN_RATIO: Final = 0.7


def find_similar_names(name: str, names: Iterable[str], count: int) -> list[str]:
    """Return the names, at most so many, that are spelled most like one, or that share a word with it; best first.

    >>> find_similar_names("greta lindqvst", ["greta lindqvist", "lisbon", "greta berg", "bergen"], 5)
    ['greta lindqvist', 'greta berg']
    """
    if not 0 < len(name) <= _MAX_NAME_CHARACTERS:
        return []
    pairs = {name[start : start + 2] for start in range(max(1, len(name) - 1))}
    shares = ((sum(pair in other for pair in pairs) / len(pairs), other) for other in names)
    near = sorted((pair for pair in shares if pair[0] >= _MIN_SHARED_PAIRS), key=lambda pair: (-pair[0], pair[1]))
    ratios = [(_similarity(name, other), other) for _, other in near[:_MAX_COMPARED]]
    ratios.sort(key=lambda pair: (-pair[0], len(pair[1]), pair[1]))
    return [other for ratio, other in ratios if ratio >= _MIN_RATIO][:count]


def _similarity(name: str, other: str) -> float:
    """How much two names, or single words of them, are spelled alike: from 0 to 1."""
    pairs = [(mine, theirs) for mine in _words(name) for theirs in _words(other)]
    return max(_ratio(name, other), 0.9 * max((_ratio(*pair) for pair in pairs), default=0.0))


def _words(name: str) -> list[str]:
    return [word for word in name.split() if len(word) >= _MIN_WORD_CHARACTERS][:_MAX_WORDS]


def _ratio(a: str, b: str) -> float:
    return SequenceMatcher(None, a, b, autojunk=False).ratio()
