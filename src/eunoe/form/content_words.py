"""How much of one text another has, counted by content words, in whatever form and however often they come."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from eunoe.text.analyzer import terms
from eunoe.text.languages import detect_language, is_stop_word
from eunoe.text.normalize import fold
from eunoe.text.scripts import SPACELESS

_PUNCTUATION: Final = ".,;:!?"
_OPENING: Final = "\"'([*_“„«"
_CLOSING: Final = "\"')]*_”»"
_SENTENCE_ENDS: Final = (*".!?:…", "")
_MIN_NAMES: Final = 5
"""Fewer names and numbers than this say little about a text."""
_ROOT_CHARACTERS: Final = 5
"""What the members of one family of words have in common; stems alone part compounds from what they are made of."""
_SPACELESS: Final = re.compile(rf"[{SPACELESS}]")


def content_words(text: str, spoken: int | None = None) -> frozenset[str]:
    """Return the words of a text that say something, as stems of its own language or of the one given; in scripts
    without spaces its characters and their pairs."""
    tongue = detect_language(text) if spoken is None else spoken
    chunks = [chunk for chunk in text.split() if not is_stop_word(fold(chunk.strip(_PUNCTUATION)), tongue)]
    return frozenset(term for chunk in chunks for term in terms(chunk, tongue))


def covered_share(text: str, sources: Sequence[str]) -> float:
    """Return how much of a text's content the sources have together; all of it if it has none."""
    wanted = _without_common_parts(content_words(text))
    roots = {term[:_ROOT_CHARACTERS] for term in _all_content(sources, detect_language(text))}
    return sum(term[:_ROOT_CHARACTERS] in roots for term in wanted) / len(wanted) if wanted else 1.0


def kept_share(old: str, untrue: Sequence[str], new: str) -> float:
    """Return how much of what an old text says a new one has: of its content, or of its names and numbers if that is
    more. What is not true any more does not count."""
    spoken = detect_language(old)
    kept, gone = _all_content([new], spoken), _all_content(untrue, spoken)
    content, names = content_words(old) - gone, names_and_numbers(old) - gone
    parts = [content] if len(names) < _MIN_NAMES else [content, names]
    return max((len(part & kept) / len(part) for part in parts if part), default=1.0)


def names_and_numbers(text: str) -> frozenset[str]:
    """Return what no other word can stand for."""
    spoken = detect_language(text)
    chunks = [chunk for before, chunk in pairwise(["", *text.split()]) if _is_name_or_number(before, chunk)]
    return frozenset(term for chunk in chunks for term in terms(chunk, spoken))


def language_or_script(text: str) -> int:
    """Return the number of a text's language; -1 for scripts without spaces."""
    letters = sum(map(str.isalpha, text))
    return -1 if 2 * len(_SPACELESS.findall(text)) > letters else detect_language(text)


def _is_name_or_number(before: str, chunk: str) -> bool:
    """Whether it holds a digit, or a capital letter that no sentence begins with."""
    if any(map(str.isdecimal, chunk)):
        return True
    return chunk.lstrip(_OPENING)[:1].isupper() and before.rstrip(_CLOSING)[-1:] not in _SENTENCE_ENDS


def _without_common_parts(terms: frozenset[str]) -> frozenset[str]:
    """Without numbers, which dates and sums are put into anew, and single characters of scripts without spaces, which
    any two texts share; all of them if nothing else is there."""
    return (
        frozenset(term for term in terms if not term.isdecimal() and (len(term) > 1 or not _SPACELESS.match(term)))
        or terms
    )


def _all_content(texts: Iterable[str], spoken: int) -> frozenset[str]:
    """The content words of all texts, each in its own language and in the one given."""
    spoken_in = ((text, tongue) for text in texts for tongue in {detect_language(text), spoken})
    return frozenset[str]().union(*(content_words(text, tongue) for text, tongue in spoken_in))
