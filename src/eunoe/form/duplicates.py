"""Whether two statements say the same: alike in words or in meaning, and equal in all that makes a difference."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import chain, takewhile
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
_MIN_COSINE: Final = 0.95
"""Vectors this close mean the same, if the words do not speak against it (docs/decisions/0012-resolution.md)."""
_MIN_RELATED_COSINE: Final = 0.8
"""From here on, words that begin alike count as the same, as in "allergic" and "allergy"."""
_RELATED_SHARE: Final = 0.8
_RELATED_LETTERS: Final = 4
"""How much of the shorter of two related words the longer one begins with, and how much at least."""
_CACHED_TEXTS: Final = 4096
_PATTERNS: Final = PatternFile("duplicates", marks=MARKS)
_COUNTS: Final = NUMBER_VALUES.keys() - {"a", "an", "couple", "few", "several"}


class _Features(NamedTuple):
    """What two statements are compared by."""

    stems: frozenset[str]
    """Content words."""
    exact: frozenset[str]
    """Numbers, dates, names, relatives, and what tells the past and who is meant: what differs here makes another
    statement."""
    ordered: frozenset[str]
    """Names and numbers, by whose order who and whom are told apart."""
    initials: frozenset[str]
    """Words with a capital at the start of a sentence: they may be names."""
    past: frozenset[str]
    """Stems of words that end as what is over does."""
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
    if one.are_same_words(other):
        return True
    return (cosine >= _MIN_COSINE or _overlap(one, other, cosine) >= _MIN_OVERLAP) and not _differ(one, other)


def similarity(first: str, second: str) -> float:
    """How much two texts have in common, from 0 to 1."""
    one, other = _features(first), _features(second)
    if one.are_same_words(other):
        return 1.0
    return round(min(_overlap(one, other), 0.99) * (0.5 if _differ(one, other) else 1.0), 4)


def _overlap(one: _Features, other: _Features, cosine: float = 0.0) -> float:
    """The Jaccard index of the content words."""
    shared, union = len(one.stems & other.stems), len(one.stems | other.stems)
    if cosine >= _MIN_RELATED_COSINE:
        left, right = sorted(one.stems - other.stems), sorted(other.stems - one.stems)
        related = sum(any(_is_related(word, like) for like in right) for word in left)
        shared, union = shared + related, union - related
    return shared / union if union else 0.0


def _is_related(word: str, other: str) -> bool:
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    return shared >= max(_RELATED_LETTERS, _RELATED_SHARE * min(len(word), len(other)))


def _differ(one: _Features, other: _Features) -> bool:
    """Whether anything makes them two statements: a number, a name, a negation, an opposite, a sign, an accent or the
    order of names."""
    if one.exact - set(other.words) or other.exact - set(one.words) or one.signs != other.signs:
        return True
    if one.negations % 2 != other.negations % 2 or _have_opposites(one, other) or _are_spelled_differently(one, other):
        return True
    if one.initials.difference(other.words) and other.initials.difference(one.words):
        return True
    if one.past & other.stems - other.past or other.past & one.stems - one.past:
        return True
    named = one.ordered | other.ordered
    orders = [sorted((word for word in each.words if word in named), key=_is_number) for each in (one, other)]
    return orders[0] != orders[1]


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
    folded = list(map(fold, written))
    words = tuple(map(_plain, folded))
    names = {_plain(fold(name)) for name in _find_names(text)}
    initials = {fold(match[1]) for match in _PATTERNS.initial.finditer(text) if match[1][0].isupper()}
    numbers = set(filter(_is_number, words))
    return _Features(
        stems=_stems(folded, spoken),
        # "We're" is not the past of "we are".
        exact=frozenset([*names, *numbers, *_exact_vocabulary().intersection(set(words) - _contractions(folded))]),
        ordered=frozenset(names | numbers),
        initials=frozenset(map(_plain, _without_small_words(initials, spoken))),
        past=frozenset(stem(word, spoken or ENGLISH) for word in words if word.endswith("ed")),
        negations=sum(word in _PATTERNS.words["negations"] for word in words),
        words=words,
        spellings=tuple(_plain(normalize(word)) for word in written),
        signs=tuple(meaningful_signs(text)),
    )


def _plain(word: str) -> str:
    """A word without its apostrophes and the genitive, and a number word as a number."""
    plain = word.replace("’", "'").removesuffix("'s").replace("'", "")
    return str(NUMBER_VALUES[plain]) if plain in _COUNTS else plain


def _contractions(words: Sequence[str]) -> set[str]:
    return {_plain(word) for word in words if _plain(word) not in word}


def _find_names(text: str) -> list[str]:
    """Words with a capital inside a sentence, "I" not among them."""
    words = [match[0] for match in _PATTERNS.name.finditer(text)]
    return [word for word in words if word[0].isupper() and not word.startswith(("I'", "I’")) and word != "I"]


def _is_number(word: str) -> bool:
    return any(map(str.isdecimal, word))


def _stems(words: list[str], spoken: int) -> frozenset[str]:
    kept, fillers = _exact_vocabulary() - _PATTERNS.words["who_and_when"], _PATTERNS.words["fillers"]
    starts = [word.replace("’", "'").partition("'")[0] for word in words]
    content = [
        word if word == start else start
        for word, start in zip(map(_plain, words), starts, strict=True)
        if start not in fillers and (word in kept or _is_number(word) or not is_stop_word(start, spoken))
    ]
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
    """Months, days, seasons, numbers, relatives and words such as "last": what differs in one of them is another
    statement."""
    holidays = (word for name in DAY_OFFSETS for word in fold(name).split() if len(word) > 3)
    names = map(fold, [*MONTHS, *WEEKDAYS, *SEASONS, *NUMBER_VALUES, *NUMBER_WORDS])
    lists = (_PATTERNS.words[name] for name in ("relative_times", "relatives", "who_and_when"))
    return frozenset(chain(names, holidays, *lists)) - {"a", "an"}


@cache
def _opposite_sides() -> dict[str, list[tuple[int, int]]]:
    """The pairs of opposites that a word belongs to, by their numbers, and its side in each."""
    sides: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, pair in enumerate(_PATTERNS.content["words"]["opposites"].split()):
        for side, word in enumerate(pair.split("/")):
            sides[word].append((number, side))
    return sides
