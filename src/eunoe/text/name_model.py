"""How likely a word with a capital is part of a name: a small model looks at its spelling and at what is around it.

It is a logistic regression over marks that a word has or has not: where it stands in its sentence, how it is written,
how common it is in small letters, the words before and after it. `training/names.py` makes its file.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from math import exp
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.text.languages import LANGUAGES
from eunoe.text.word_files import load_words

MODEL_FILE: Final = Path(__file__).parent / "model" / "names.json"
GERMAN: Final = LANGUAGES.index("german")
"""It writes all its nouns with a capital."""

NEVER_A_NAME: Final = 4
"""The level of words that were labelled by hand: exclamations, and what sentences begin with."""
GIVEN_NAMES: Final = load_words("given_names")
"""Names of people that are also words."""

_SHOUTED_SHARE: Final = 0.5
"""With more words all in capitals than this a sentence is shouted, and a capital says nothing."""
_LEAST_SHOUTED: Final = 3
_STARTS: Final = frozenset(".:!?…")
_NO_BREAKS: Final = frozenset(",&-–'’/+")
_APOSTROPHES: Final = ("'", "’")
_QUOTES: Final = frozenset('"“”„«»`*_([{<|「『【')
_NEXT_MARKS: Final = frozenset("!,:?;()'\"`|=")
_MAX_CACHED_WORDS: Final = 1 << 12
_MAX_WORD_CHARACTERS: Final = 40
"""A longer one is no word that a list could have."""


class Surroundings(NamedTuple):
    """What is the same for all words of a sentence."""

    lowercase: frozenset[str]
    """Words that the text also has in small letters."""
    is_german: bool
    is_shouted: bool


class NameModel:
    """Scores words by what it learned. It never changes."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        """`data` is what `training/names.py` writes."""
        self._weights: dict[str, float] = data["weights"]
        self._levels = {word: level for level, words in enumerate(data["words"], 1) for word in words.split()}

    def score(self, tokens: Sequence[str], place: int, surroundings: Surroundings) -> float:
        """Return how likely the word at a place is part of a name, 0 to 1."""
        marks = read_marks(tokens, place, surroundings, self.level)
        return 1 / (1 + exp(-sum(map(self._weight, marks))))

    def _weight(self, mark: str) -> float:
        return self._weights.get(mark, 0.0)

    def level(self, word: str) -> int:
        """Return how common a word is in small letters: 0 (hardly seen) to 3, or NEVER_A_NAME."""
        return word_level(word, self._levels)


@cache
def load_name_model() -> NameModel:
    """Load the model of the package."""
    return NameModel(json.loads(MODEL_FILE.read_text("utf-8")))


def word_level(word: str, levels: Mapping[str, int]) -> int:
    """Return the level of a word; of one with hyphens that of its rarest part."""
    level = levels.get(word, 0)
    return level if level or "-" not in word else min(levels.get(part, 0) for part in word.split("-"))


@lru_cache(maxsize=_MAX_CACHED_WORDS)
def plain_word(token: str) -> str:
    """Return a token as words are counted: in small letters, without a full stop or a possessive.

    >>> plain_word("You’re."), plain_word("Anna's")
    ("you're", 'anna')
    """
    return token[:_MAX_WORD_CHARACTERS].lower().rstrip(".").replace("’", "'").removesuffix("'s")


def read_surroundings(tokens: Sequence[str], lowercase: frozenset[str], language: int) -> Surroundings:
    is_shouted = False
    if sum(map(str.isupper, tokens)) >= _LEAST_SHOUTED:
        words = [token for token in tokens if token[0].isalpha()]
        shouted = sum(len(word) > 1 and word.isupper() for word in words)
        is_shouted = shouted > _SHOUTED_SHARE * max(len(words), _LEAST_SHOUTED)
    return Surroundings(lowercase, language == GERMAN, is_shouted)


def read_marks(
    tokens: Sequence[str], place: int, around: Surroundings, level_of: Callable[[str], int]
) -> Iterable[str]:
    """Return the marks that the word at a place has."""
    word, shape, is_given, is_owner = _read_spelling(tokens[place])
    level = level_of(word)
    known = "1" if level else "0"
    position = "T" if around.is_shouted else _position(tokens, place)
    where = f"de{position}" if around.is_german else position
    following = _next_kind(tokens, place)
    marks = [
        "bias", f"{where}{shape}{level}", f"{where}>{following}", f"{position}{level}>{following}",
        f"-{word[-3:]}{known}", f"-{word[-2:]}{known}",
    ]  # fmt: skip
    if following == "low":
        marks.append(f"{known}>{plain_word(tokens[place + 1])}")
    before = tokens[place - 1] if place else "."
    if before[0].isalpha():
        small = f"<{plain_word(before)}" if before[0].islower() else ""
        marks.append(f"de{small}" if small and around.is_german else small or f"{where}<cap")
    if is_owner:
        marks.append(f"{where}own{known}")
    if is_given:
        marks += f"{where}given", f"given>{following}"
    if word in around.lowercase:
        marks.append(f"{where}lower")
    if level and position != "i":
        marks.append(f"={word}")
    return marks


@lru_cache(maxsize=_MAX_CACHED_WORDS)
def _read_spelling(token: str) -> tuple[str, str, bool, bool]:
    """A word as it is counted, its shape, whether people are given it as a name, and whether it owns something."""
    word = plain_word(token)
    return word, _shape(token), word in GIVEN_NAMES, token[-2:-1] in _APOSTROPHES


def _shape(token: str) -> str:
    letters = token.rstrip(".")
    if len(letters) == 1:
        return "1"
    if letters.isalpha():
        return "A" if letters.isupper() else "C" if letters[1:].islower() else "X"
    if any(map(str.isdecimal, letters)):
        return "D"
    return "B" if letters.isupper() else "H"


def _position(tokens: Sequence[str], place: int) -> str:
    """Where in a sentence a word stands: at its start, inside, after a comma, a quote or another mark."""
    if not place:
        return "s"
    before = tokens[place - 1]
    if before[0].isalnum():
        return "i"
    if before in _STARTS or not any(token[0].isalnum() for token in tokens[:place]):
        return "s"
    return "c" if before in _NO_BREAKS else "q" if before in _QUOTES else "m"


def _next_kind(tokens: Sequence[str], place: int) -> str:
    if place + 1 == len(tokens) or tokens[place].endswith("."):
        return "end"
    following = tokens[place + 1]
    if following[0].isalpha():
        return "low" if following[0].islower() else "cap"
    if following[0].isdecimal():
        return "num"
    return following if following in _NEXT_MARKS else "mark"
