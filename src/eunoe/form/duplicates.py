"""Whether two statements say the same: alike in words or in meaning, and equal in all that makes a difference."""

from collections import defaultdict
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.text.analyzer import stem, terms_of_each, word_cache
from eunoe.text.dates import DAY_OFFSETS, MONTHS, NUMBER_VALUES, NUMBER_WORDS, SEASONS, WEEKDAYS
from eunoe.text.languages import ENGLISH, detect_language, is_stop_word
from eunoe.text.look_alikes import meaningful_signs
from eunoe.text.normalize import fold, normalize
from eunoe.text.scripts import MARKS

_MIN_OVERLAP: Final = 0.8
"""Share of all content words that two statements of the same must have in common."""
_MIN_COSINE: Final = 0.97
"""Vectors this close mean the same, if the words do not speak against it (docs/decisions/0012-resolution.md)."""
_MAX_SIMILARITY_OF_DIFFERENT: Final = 0.5
"""Statements that differ in a number, a date, a name or a negation are never more similar than this."""
_CACHED_TEXTS: Final = 4096
_PATTERNS: Final = PatternFile("duplicates", marks=MARKS)


class _Features(NamedTuple):
    """What two statements are compared by."""

    stems: frozenset[str]
    """Content words."""
    exact: frozenset[str]
    """Numbers, dates and names: what differs here makes another statement."""
    initials: frozenset[str]
    """Words with a capital at the start of a sentence: they may be names."""
    negations: int
    words: tuple[str, ...]
    spellings: tuple[str, ...]
    """The words with their accents."""
    signs: tuple[str, ...]
    """Emoji, symbols and the like."""

    def are_same_words(self, other: "_Features") -> bool:
        return self.words == other.words and self.spellings == other.spellings and self.signs == other.signs


def is_duplicate(first: str, second: str, cosine: float = 0.0) -> bool:
    """Whether one of the two can stand for both. `cosine` tells how close their vectors are."""
    one, other = _features(first), _features(second)
    if one.are_same_words(other) or (_overlap(one, other) >= _MIN_OVERLAP and not _differ(one, other)):
        return True
    return cosine >= _MIN_COSINE and similarity(first, second) > _MAX_SIMILARITY_OF_DIFFERENT


def similarity(first: str, second: str) -> float:
    """How much two texts have in common, from 0 to 1."""
    one, other = _features(first), _features(second)
    if one.are_same_words(other):
        return 1.0
    return round(min(_overlap(one, other), 0.99) * (0.5 if _differ(one, other) else 1.0), 4)


def _overlap(one: _Features, other: _Features) -> float:
    """The Jaccard index of the content words."""
    union = len(one.stems | other.stems)
    return len(one.stems & other.stems) / union if union else 0.0


def _differ(one: _Features, other: _Features) -> bool:
    """Whether anything makes them two statements: a number, a name, a negation, an opposite, a sign, an accent or the
    order of names."""
    if one.exact != other.exact or one.negations % 2 != other.negations % 2 or one.signs != other.signs:
        return True
    if _have_opposites(one, other) or _are_spelled_differently(one, other):
        return True
    if one.initials.difference(other.words) and other.initials.difference(one.words):
        return True
    return one.stems == other.stems and len(one.exact) > 1 and _exact_words(one) != _exact_words(other)


def _exact_words(features: _Features) -> list[str]:
    """Numbers, dates and names in their order, by which who and whom are told apart."""
    return [word for word in features.words if word in features.exact]


def _are_spelled_differently(one: _Features, other: _Features) -> bool:
    """Whether a word of both has other letters in each, as in "Maßen" and "Massen"."""
    if one.words == one.spellings and other.words == other.spellings:
        return False
    spellings = dict(zip(one.words, one.spellings, strict=True))
    pairs = zip(other.words, other.spellings, strict=True)
    return any(spellings.get(word, spelling) != spelling for word, spelling in pairs)


def _have_opposites(one: _Features, other: _Features) -> bool:
    sides = _opposite_sides()
    own = chain.from_iterable(sides.get(word, ()) for word in set(one.words).difference(other.words))
    others = set(chain.from_iterable(sides.get(word, ()) for word in set(other.words).difference(one.words)))
    return any((pair, 1 - side) in others for pair, side in own)


@word_cache(_CACHED_TEXTS)
def _features(text: str) -> _Features:
    spoken, written = detect_language(text), [match[0] for match in _PATTERNS.word.finditer(text)]
    words = list(map(fold, written))
    names = [fold(name) for name in _find_names(text)]
    initials = {fold(match[1]) for match in _PATTERNS.initial.finditer(text) if match[1][0].isupper()}
    plain = tuple(map(_without_apostrophes, words))
    return _Features(
        stems=_stems(words, spoken),
        exact=frozenset([*filter(_is_exact, words), *(name.removesuffix("'s").removesuffix("’s") for name in names)]),
        initials=_without_small_words(initials, spoken),
        negations=sum(word in _PATTERNS.words["negations"] for word in plain),
        words=plain,
        spellings=tuple(_without_apostrophes(normalize(word)) for word in written),
        signs=tuple(meaningful_signs(text)),
    )


def _without_apostrophes(word: str) -> str:
    return word.replace("'", "").replace("’", "")


def _find_names(text: str) -> list[str]:
    """Words with a capital inside a sentence, "I" not among them."""
    words = [match[0] for match in _PATTERNS.name.finditer(text)]
    return [word for word in words if word[0].isupper() and not word.startswith(("I'", "I’")) and word != "I"]


def _is_exact(word: str) -> bool:
    return word in _exact_vocabulary() or any(map(str.isdecimal, word))


def _stems(words: list[str], spoken: int) -> frozenset[str]:
    exact, fillers = _exact_vocabulary(), _PATTERNS.words["fillers"]
    content = [word for word in words if word not in fillers and (word in exact or not is_stop_word(word, spoken))]
    terms = [
        [stem(word, spoken or ENGLISH)] if word.isascii() else terms_of_each([word], spoken)[0] for word in content
    ]
    return frozenset(chain.from_iterable(terms))


def _without_small_words(initials: set[str], spoken: int) -> frozenset[str]:
    """Those that are neither fillers nor small words, as in "I've" and "It's"."""
    starts = {word: word.replace("’", "'").partition("'")[0] for word in initials - _PATTERNS.words["fillers"]}
    return frozenset(word for word, start in starts.items() if not is_stop_word(start, spoken))


@cache
def _exact_vocabulary() -> frozenset[str]:
    """Months, days, seasons, numbers and words such as "last": what differs in one of them is another statement."""
    holidays = (word for name in DAY_OFFSETS for word in fold(name).split() if len(word) > 3)
    names = map(fold, [*MONTHS, *WEEKDAYS, *SEASONS, *NUMBER_VALUES, *NUMBER_WORDS])
    return frozenset([*names, *holidays, *_PATTERNS.words["relative_times"]]) - {"a", "an"}


@cache
def _opposite_sides() -> dict[str, list[tuple[int, int]]]:
    """The pairs of opposites that a word belongs to, by their numbers, and its side in each."""
    sides: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, pair in enumerate(_PATTERNS.content["words"]["opposites"].split()):
        for side, word in enumerate(pair.split("/")):
            sides[word].append((number, side))
    return sides
