"""What bears a text out: the words that it shares with other texts, in whatever form and however often they come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from eunoe.text.analyzer import terms
from eunoe.text.languages import detect_language, is_stop_word
from eunoe.text.normalize import fold
from eunoe.text.scripts import SPACELESS

_EDGES: Final = ".,;:!?"
_CLOSING: Final = "\"')]*_”»"
_ENDS: Final = (*".!?:…", "")
_FEWEST_MARKS: Final = 5
"""Fewer names and numbers than this say little about a text."""
_ROOT: Final = 5
_SIGN: Final = re.compile(rf"[{SPACELESS}]")


def content(text: str, spoken: int | None = None) -> frozenset[str]:
    """The words of a text that say something, as stems of its own language or of the one given; in scripts without
    spaces its signs and their pairs.

    >>> sorted(content("Anna likes the teas and 3 cats."))
    ['3', 'anna', 'cat', 'like', 'tea']
    """
    tongue = detect_language(text) if spoken is None else spoken
    chunks = [chunk for chunk in text.split() if not is_stop_word(fold(chunk.strip(_EDGES)), tongue)]
    return frozenset(term for chunk in chunks for term in terms(chunk, tongue))


def share(text: str, parts: Sequence[str]) -> float:
    """How much of a text's content the parts have together; all of it if it has none."""
    wanted, known = _telling(content(text)), _known(parts, detect_language(text))
    roots = {_root(term) for term in known}
    return sum(_root(term) in roots for term in wanted) / len(wanted) if wanted else 1.0


def kept(old: str, untrue: Sequence[str], text: str) -> float:
    """How much of what an old text says another has: of its content, or of its names and numbers if that is more. What
    is not true any more does not count."""
    found, gone = (_known(parts, detect_language(old)) for parts in ([text], untrue))
    held, named = content(old) - gone, marks(old) - gone
    parts = [held] if len(named) < _FEWEST_MARKS else [held, named]
    return max((len(part & found) / len(part) for part in parts if part), default=1.0)


def marks(text: str) -> frozenset[str]:
    """Names and numbers: what no other word stands for.

    >>> sorted(marks("She met Anna on 3 May."))
    ['3', 'anna', 'may']
    """
    tongue = detect_language(text)
    pairs = pairwise(["", *text.split()])
    return frozenset(term for before, chunk in pairs if _is_mark(before, chunk) for term in terms(chunk, tongue))


def script(text: str) -> int:
    """The language of a text by its number; below 0 for scripts without spaces."""
    letters = [sign for sign in text if sign.isalpha()]
    return -1 if 2 * len(_SIGN.findall(text)) > len(letters) else detect_language(text)


def _is_mark(before: str, chunk: str) -> bool:
    """Whether it holds a number, or a capital letter that no sentence begins with."""
    if any(sign.isdecimal() for sign in chunk):
        return True
    return chunk.lstrip("\"'([*_“„«")[:1].isupper() and before.rstrip(_CLOSING)[-1:] not in _ENDS


def _root(term: str) -> str:
    """What the parts of one family of words have in common; stems alone part compounds from what they are made of."""
    return term[:_ROOT]


def _telling(found: frozenset[str]) -> frozenset[str]:
    """Without numbers, which dates and sums are put into anew, and single signs of scripts without spaces, which any
    two texts share."""
    return (
        frozenset(term for term in found if not term.isdecimal() and (len(term) > 1 or not _SIGN.match(term))) or found
    )


def _known(parts: Iterable[str], spoken: int) -> frozenset[str]:
    """The content of all parts, each in its own language and in the one given."""
    return frozenset[str]().union(
        *(content(part, tongue) for part in parts for tongue in {detect_language(part), spoken})
    )
