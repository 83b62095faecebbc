"""The plural of a word and the singular of a plural, where the endings differ too much for a stemmer."""

from typing import Final

from eunoe.text.languages import LANGUAGES
from eunoe.text.word_files import load_groups

_MIN_BEGINNING: Final = 1
"""Letters before the ending, as in "pão"."""


def other_numbers(word: str, language: int) -> tuple[str, ...]:
    """Return what the plural of a folded word may be, or the singular of a plural; most languages need none.

    >>> other_numbers("reunioes", LANGUAGES.index("portuguese")), other_numbers("luz", LANGUAGES.index("spanish"))
    (('reuniao',), ('luces',))
    """
    return tuple(
        word.removesuffix(ending) + other
        for ending, other in _ENDINGS.get(language, ())
        if word.endswith(ending) and len(word) >= len(ending) + _MIN_BEGINNING
    )


def _both_ways(pairs: frozenset[str]) -> tuple[tuple[str, str], ...]:
    found = [(one, many) for one, _, many in (pair.partition("/") for pair in sorted(pairs))]
    return (*found, *((many, one) for one, many in found))


_ENDINGS: Final = {LANGUAGES.index(name): _both_ways(pairs) for name, pairs in load_groups("plural_endings").items()}
