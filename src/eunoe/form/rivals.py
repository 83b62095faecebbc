"""Whether two statements are rivals: about the same thing, with another value. Both cannot be true at a time.

Words decide. Vectors do not tell "lives in Turin, moved to Rome" from "likes tea, likes running": the second pair is
the closer one (docs/decisions/0012-resolution.md). What cannot be shown to be the same thing is taken for another one:
two statements side by side cost a line, a wrong rival costs a fact.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.text.analyzer import stem, word_cache
from eunoe.text.dates import MONTHS, NUMBER_VALUES, NUMBER_WORDS, WEEKDAYS
from eunoe.text.languages import ENGLISH, detect_language, is_stop_word
from eunoe.text.normalize import fold

_MIN_SHARED: Final = 2
"""Words that two statements share, beside who they are about, if they are to be one matter without a key that says so.
One is not enough: "decided to use Rust" and "decided to meet on Mondays" share a team."""
_MAX_CHARACTERS: Final = 2000
"""Longer texts say many things; their beginnings are compared."""
_CACHED_TEXTS: Final = 1024
_QUESTION_START: Final = " (asked: "
"""What the rules put behind an answer."""
_PATTERNS: Final = PatternFile("rivals")


class _Word(NamedTuple):
    text: str
    stem: str
    is_content: bool
    is_number: bool
    is_definite: bool
    """Whether no "a" or "another" stands before it."""
    follows_preposition: bool
    before: str
    """The stem of the word before it."""


def is_rival(old: str, new: str, key: str = "", people: Iterable[str] = ()) -> bool:
    """Return whether a new statement gives another value to what an old one is about.

    `key` is a memory key that both have, `people` are those whom they are about.

    >>> is_rival("Anna lives in Turin.", "Anna moved to Rome.", "anna/home")
    True
    >>> is_rival("Anna likes tea.", "Anna likes running.", "anna/preference")
    False
    """
    owner, _, attribute = key.rpartition("/")
    return _Pair(old, new, _subject_stems((owner, *people)) | _common_start(old, new), attribute).is_rival()


def key_words(text: str, people: Iterable[str] = ()) -> list[str]:
    """Return the words that no statement about something else would have: without whom it is about and verbs that many
    statements share."""
    subject, common = _subject_stems(people), _listed("plural_verbs")
    words = (word for word in _words(text, detect_language(text)) if word.is_content and word.text not in common)
    return [word.text for word in words if stem_of(word.text) not in subject]


def says_more(old: str, new: str) -> bool:
    """Return whether an old statement says something besides what a new one takes the place of."""
    said, spoken = old.partition(_QUESTION_START)[0], detect_language(f"{old} {new}")
    known = {word.stem for word in _words(new, spoken)}
    return any(word.is_content and word.stem not in known for word in _words(said[len(_core(said)) :], spoken))


def tells_change(text: str) -> bool:
    """Return whether a statement says in so many words that something known before is no longer so."""
    return bool(_PATTERNS.change.search(text[:_MAX_CHARACTERS]))


def tells_past(text: str) -> bool:
    """Return whether a statement speaks of what was for a time or nearly came about, so that it changes nothing."""
    return bool(_PATTERNS.unchanged.search(text[:_MAX_CHARACTERS]))


def count_negations(text: str) -> int:
    """Return how often a text says "not" or "never"."""
    return len(_PATTERNS.negation.findall(text[:_MAX_CHARACTERS]))


def is_opposed(one: str, other: str) -> bool:
    """Return whether one of two statements denies what the other says."""
    if count_negations(one) % 2 != count_negations(other) % 2:
        return True
    first, second = set(_find_texts(one)), set(_find_texts(other))
    return any((a in first and b in second) or (b in first and a in second) for a, b in _opposites())


class _Pair:
    """An old and a new statement, read in one language."""

    def __init__(self, old: str, new: str, subject: frozenset[str], attribute: str) -> None:
        spoken = detect_language(f"{old[:_MAX_CHARACTERS]} {new[:_MAX_CHARACTERS]}")
        self._texts = old, new
        self._spoken = spoken
        self._old, self._new = _words(old, spoken), _words(new, spoken)
        self._cores = _words(_core(old), spoken), _words(_core(new), spoken)
        self._subject = subject
        self._attribute = attribute

    def is_rival(self) -> bool:
        if self._is_over(self._cores[0], self._new) or self._is_over(self._cores[1], self._old):
            return True
        if _qualifiers(self._old) != _qualifiers(self._new):
            return False
        if is_opposed(*self._texts):
            return self._is_told_in(self._cores[0], self._new) or self._is_told_in(self._cores[1], self._old)
        return self._has_other_attribute_value() or self._has_other_value()

    def _is_over(self, core: list[_Word], words: list[_Word]) -> bool:
        """Whether words tell the end of the thing that the core of the other statement is about."""
        told = [word for word in words if not word.follows_preposition]
        endings = _listed("endings").intersection(word.text for word in told) - {word.text for word in core}
        things = self._specific(core)
        return bool(endings and things) and things <= self._specific(told)

    def _is_told_in(self, core: list[_Word], words: list[_Word]) -> bool:
        """Whether words have all that a core tells, but for what makes them opposites."""
        opposites = {word for pair in _opposites() for word in pair}
        told = {word.stem for word in core if word.is_content and word.text not in opposites} - self._subject
        return bool(self._specific(core)) and told <= {word.stem for word in words}

    def _has_other_attribute_value(self) -> bool:
        """Whether both give a value to the same attribute, and not the same value."""
        one, other = (_attribute_values(text[:_MAX_CHARACTERS], self._attribute, self._spoken) for text in self._texts)
        pairs = ((one[name] - self._subject, other[name] - self._subject) for name in one.keys() & other.keys())
        return any(value - other_value and other_value - value for value, other_value in pairs)

    def _has_other_value(self) -> bool:
        """Whether they share what they are about and differ in one place."""
        definite = {word.stem for word in self._new if word.is_definite}
        shared = self._specific(self._old) & self._specific(self._new) & definite
        named = {stem(word, self._spoken) for word in _find_texts(self._attribute)}
        named -= {stem(word, self._spoken) for word in _listed("general_key_words")}
        is_named = bool(named) and 2 * len(named & shared) >= len(named)
        if not is_named and len(shared) < _MIN_SHARED:
            return False
        known, other_known = {word.stem for word in self._old}, {word.stem for word in self._new}
        one = _differing_places(self._old, other_known | self._subject)
        other = _differing_places(self._new, known | self._subject)
        return min(len(one), len(other)) == 1 and _fit_one_slot(one[0], other[0], named)

    def _specific(self, words: list[_Word]) -> set[str]:
        """What a statement is about, without whom, and without numbers and verbs that many statements share."""
        common = _listed("plural_verbs") | _listed("endings")
        content = (word for word in words if word.is_content and not word.is_number and word.text not in common)
        return {word.stem for word in content} - self._subject


def stem_of(word: str) -> str:
    return stem(word, ENGLISH)


def _subject_stems(names: Iterable[str]) -> frozenset[str]:
    return frozenset(stem_of(word) for name in names for word in _find_texts(name))


def _common_start(old: str, new: str) -> frozenset[str]:
    """Whom two statements are about if both begin with the same name."""
    first, second = (_find_texts(text[:_MAX_CHARACTERS])[:1] for text in (old, new))
    return frozenset(map(stem_of, first)) if first == second and old[:1].isupper() else frozenset()


def _core(text: str) -> str:
    """A statement up to where it begins to say something else."""
    addition = _PATTERNS.addition.search(text[:_MAX_CHARACTERS])
    return text[: addition.start()] if addition else text


def _differing_places(words: list[_Word], known: set[str]) -> list[list[_Word]]:
    """The places in which a statement differs, each with its words; numbers in several of them, as in a date and an
    hour, count as one place."""
    places = list[list[_Word]]()
    is_inside = False
    for word in words:
        if word.stem in known:
            is_inside = False
        elif word.is_content:
            places = places if is_inside else [*places, []]
            places[-1].append(word)
            is_inside = True
    named = [place for place in places if not all(word.is_number for word in place)]
    numbers = [word for place in places if place not in named for word in place]
    return [*named, numbers] if numbers else named


def _fit_one_slot(one: list[_Word], other: list[_Word], named: set[str]) -> bool:
    """Whether two values may stand in the same place. "Red" and "in the garage" do not, nor do two things that the
    same API does."""
    if any(word.is_number for word in (*one, *other)):
        return True
    if one[0].before in named and other[0].before in named:
        return False
    return one[0].follows_preposition == other[0].follows_preposition


def _qualifiers(words: list[_Word]) -> set[str]:
    """Which of several things a statement begins with, such as a sister or a second address."""
    # "I work at" tells of no work address.
    links, following = _listed("prepositions") | _listed("links"), [*(word.text for word in words[1:5]), ""]
    pairs = zip(words[:4], following, strict=False)
    return {word.stem for word, after in pairs if word.text in _listed("qualifiers") and after not in links}


@word_cache(_CACHED_TEXTS)
def _words(text: str, spoken: int) -> list[_Word]:
    found, words = _find_texts(text), list[_Word]()
    for place, word in enumerate(found):
        is_stop = word in _listed("fillers") or is_stop_word(word, spoken)
        is_number = any(map(str.isdecimal, word)) or word in _number_words()
        before = set(found[max(0, place - 2) : place])
        words.append(
            _Word(
                text=word,
                stem=stem(word, spoken),
                is_content=is_number or not is_stop,
                is_number=is_number,
                is_definite=before.isdisjoint(_listed("indefinite")),
                follows_preposition=not before.isdisjoint(_listed("prepositions")),
                before=words[-1].stem if words else "",
            )
        )
    return words


def _find_texts(text: str) -> list[str]:
    words = (fold(match[0]).replace("’", "'") for match in _PATTERNS.word.finditer(text[:_MAX_CHARACTERS]))
    return [word.removesuffix("'s") for word in words]


@word_cache(_CACHED_TEXTS)
def _attribute_values(text: str, attribute: str, spoken: int) -> dict[str, frozenset[str]]:
    """The attributes that a statement gives a value to, each with the words that may be it."""
    rows = [row for row in _PATTERNS.tables["keyed_attributes"] if row.name == attribute]
    matches = ((row.name, row.pattern.search(text)) for row in (*_PATTERNS.tables["attributes"], *rows))
    return dict(_read_attribute(name, match, spoken) for name, match in matches if match)


def _read_attribute(name: str, match: re.Match[str], spoken: int) -> tuple[str, frozenset[str]]:
    groups = {group: fold(value) for group, value in match.groupdict().items() if value}
    value = groups.pop("value", "")
    rest = f"{match.string[: match.start()]} {match.string[match.end() :]}"
    words = [value] if value else [word.stem for word in _words(rest, spoken) if word.is_content]
    holder = _PATTERNS.holder.match(match.string)
    # Where Anna's sister lives is not where Anna lives.
    is_of_other = holder is not None and not match.start() <= holder.start("what") < match.end()
    others = [fold(holder["what"])] if holder and is_of_other else []
    return " ".join([name, *map(stem_of, [*groups.values(), *others])]), frozenset(words)


@cache
def _listed(name: str) -> frozenset[str]:
    return frozenset(map(fold, _PATTERNS.words[name]))


@cache
def _number_words() -> frozenset[str]:
    """Words that count or date, and are no name of a thing."""
    return frozenset(map(fold, [*MONTHS, *WEEKDAYS, *NUMBER_VALUES, *NUMBER_WORDS])) - {"a", "an"}


@cache
def _opposites() -> list[tuple[str, str]]:
    pairs = (pair.split("/") for pair in _PATTERNS.content["words"]["opposites"].split())
    return [(fold(one), fold(other)) for one, other in pairs]
