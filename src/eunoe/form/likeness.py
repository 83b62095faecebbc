"""How two statements stand to each other: duplicates say the same, rivals give another value to the same thing.

Words decide whether two are rivals. Vectors do not tell "lives in Turin, moved to Rome" from "likes tea, likes
running": the second pair is the closer one (docs/decisions/0012-resolution.md). What cannot be shown to be the same
thing is taken for another one: two statements side by side cost a line, a wrong rival costs a fact.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import chain, takewhile
from typing import Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.text.analyzer import stem, terms_of_each, word_cache
from eunoe.text.dates import DAY_OFFSETS, MONTHS, NUMBER_VALUES, NUMBER_WORDS, SEASONS, WEEKDAYS
from eunoe.text.languages import ENGLISH, detect_language, is_stop_word
from eunoe.text.normalize import MARKS, fold, meaningful_signs, normalize

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
_MIN_SHARED: Final = 2
"""Words that two statements share, beside who they are about, if they are to be one matter without a key that says so.
One is not enough: "decided to use Rust" and "decided to meet on Mondays" share a team."""
_MAX_CHARACTERS: Final = 2000
"""Longer texts say many things; their beginnings are compared."""
_CACHED_READINGS: Final = 1024
_QUESTION_START: Final = " (asked: "
"""What the rules put behind an answer."""
_DUPLICATES: Final = PatternFile("duplicates", marks=MARKS)
_COUNTS: Final = NUMBER_VALUES.keys() - {"a", "an", "couple", "few", "several"}
_RIVALS: Final = PatternFile("rivals")


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
    mine, theirs = set(one.words), set(other.words)
    if one.exact - theirs or other.exact - mine or one.signs != other.signs:
        return True
    if one.negations % 2 != other.negations % 2 or (one.initials - theirs and other.initials - mine):
        return True
    sides = _opposite_sides()
    others = {side for word in theirs - mine for side in sides.get(word, ())}
    if any((pair, 1 - side) in others for word in mine - theirs for pair, side in sides.get(word, ())):
        return True
    # A word of both may have other letters in each, as in "Maßen" and "Massen".
    spellings = dict(zip(one.words, one.spellings, strict=True))
    if any(
        spellings.get(word, spelling) != spelling for word, spelling in zip(other.words, other.spellings, strict=True)
    ):
        return True
    if one.past & other.stems - other.past or other.past & one.stems - one.past:
        return True
    named = one.ordered | other.ordered
    orders = [sorted((word for word in each.words if word in named), key=_is_number) for each in (one, other)]
    return orders[0] != orders[1]


@word_cache(_CACHED_TEXTS)
def _features(text: str) -> _Features:
    lists, spoken = _DUPLICATES.words, detect_language(text)
    written = [match[0] for match in _DUPLICATES.word.finditer(text)]
    folded = list(map(fold, written))
    words = tuple(map(_plain, folded))
    capitals = (match[0] for match in _DUPLICATES.name.finditer(text) if match[0][0].isupper())
    names = {_plain(fold(word)) for word in capitals if word != "I" and not word.startswith(("I'", "I’"))}
    numbers = set(filter(_is_number, words))
    contractions = {word for word, whole in zip(words, folded, strict=True) if word not in whole}
    initials = {fold(match[1]) for match in _DUPLICATES.initial.finditer(text) if match[1][0].isupper()}
    kept, content = _exact_vocabulary() - lists["who_and_when"], list[str]()
    for word, start in zip(words, map(_before_apostrophe, folded), strict=True):
        if start not in lists["fillers"] and (word in kept or _is_number(word) or not is_stop_word(start, spoken)):
            content.append(start)
    terms = (
        [stem(word, spoken or ENGLISH)] if word.isascii() else terms_of_each([word], spoken)[0] for word in content
    )
    return _Features(
        stems=frozenset(chain.from_iterable(terms)),
        # "We're" is not the past of "we are".
        exact=frozenset([*names, *numbers, *_exact_vocabulary().intersection(set(words) - contractions)]),
        ordered=frozenset(names | numbers),
        initials=frozenset(
            _plain(word) for word in initials - lists["fillers"] if not is_stop_word(_before_apostrophe(word), spoken)
        ),
        past=frozenset(stem(word, spoken or ENGLISH) for word in words if word.endswith("ed")),
        negations=sum(word in lists["negations"] for word in words),
        words=words,
        spellings=tuple(_plain(normalize(word)) for word in written),
        signs=tuple(meaningful_signs(text)),
    )


def _plain(word: str) -> str:
    """A word without its apostrophes and the genitive, and a number word as a number."""
    plain = word.replace("’", "'").removesuffix("'s").replace("'", "")
    return str(NUMBER_VALUES[plain]) if plain in _COUNTS else plain


def _before_apostrophe(word: str) -> str:
    return word.replace("’", "'").partition("'")[0]


def _is_number(word: str) -> bool:
    return any(map(str.isdecimal, word))


@cache
def _exact_vocabulary() -> frozenset[str]:
    """Months, days, seasons, numbers, relatives and words such as "last": what differs in one of them is another
    statement."""
    holidays = (word for name in DAY_OFFSETS for word in fold(name).split() if len(word) > 3)
    names = map(fold, [*MONTHS, *WEEKDAYS, *SEASONS, *NUMBER_VALUES, *NUMBER_WORDS])
    lists = (_DUPLICATES.words[name] for name in ("relative_times", "relatives", "who_and_when"))
    return frozenset(chain(names, holidays, *lists)) - {"a", "an"}


@cache
def _opposite_sides() -> dict[str, list[tuple[int, int]]]:
    """The pairs of opposites that a word belongs to, by their numbers, and its side in each."""
    sides: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, pair in enumerate(_DUPLICATES.content["words"]["opposites"].split()):
        for side, word in enumerate(pair.split("/")):
            sides[word].append((number, side))
    return sides


class _Word(NamedTuple):
    """A word of a statement that may have a rival."""

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
    subject = _subject_stems((owner, *people))
    first, second = (_find_texts(text)[:1] for text in (old, new))
    if first == second and old[:1].isupper():  # whom both are about if they begin with the same name
        subject |= frozenset(map(stem, first))
    return _Pair(old, new, subject, attribute).is_rival()


def key_words(text: str, people: Iterable[str] = ()) -> list[str]:
    """Return the words that no statement about something else would have: without whom it is about and verbs that many
    statements share."""
    subject, common = _subject_stems(people), _listed("plural_verbs")
    words = (word for word in _words(text, detect_language(text)) if word.is_content and word.text not in common)
    return [word.text for word in words if stem(word.text) not in subject]


def says_more(old: str, new: str) -> bool:
    """Return whether an old statement says something besides what a new one takes the place of."""
    said, spoken = old.partition(_QUESTION_START)[0], detect_language(f"{old} {new}")
    known = {word.stem for word in _words(new, spoken)}
    return any(word.is_content and word.stem not in known for word in _words(said[len(_core(said)) :], spoken))


def tells_change(text: str) -> bool:
    """Return whether a statement says in so many words that something known before is no longer so."""
    return bool(_RIVALS.change.search(text[:_MAX_CHARACTERS]))


def tells_past(text: str) -> bool:
    """Return whether a statement speaks of what was for a time or nearly came about, so that it changes nothing."""
    return bool(_RIVALS.unchanged.search(text[:_MAX_CHARACTERS]))


def count_negations(text: str) -> int:
    """Return how often a text says "not" or "never"."""
    return len(_RIVALS.negation.findall(text[:_MAX_CHARACTERS]))


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
        self._texts, self._spoken = (old, new), spoken
        self._old, self._new = _words(old, spoken), _words(new, spoken)
        self._cores = _words(_core(old), spoken), _words(_core(new), spoken)
        self._subject, self._attribute = subject, attribute

    def is_rival(self) -> bool:
        crossed = (self._cores[0], self._new), (self._cores[1], self._old)
        if any(self._is_over(core, words) for core, words in crossed):
            return True
        if _qualifiers(self._old) != _qualifiers(self._new):
            return False
        if is_opposed(*self._texts):
            return any(self._is_told_in(core, words) for core, words in crossed)
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
        places = _differing_places(self._old, other_known | self._subject)
        other_places = _differing_places(self._new, known | self._subject)
        if min(len(places), len(other_places)) != 1:
            return False
        # "Red" and "in the garage" do not fit in the same place, nor do two things that the same API does.
        one, other = places[0], other_places[0]
        if any(word.is_number for word in (*one, *other)):
            return True
        if one[0].before in named and other[0].before in named:
            return False
        return one[0].follows_preposition == other[0].follows_preposition

    def _specific(self, words: list[_Word]) -> set[str]:
        """What a statement is about, without whom, and without numbers and verbs that many statements share."""
        common = _listed("plural_verbs") | _listed("endings")
        content = (word for word in words if word.is_content and not word.is_number and word.text not in common)
        return {word.stem for word in content} - self._subject


def _subject_stems(names: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(word) for name in names for word in _find_texts(name))


def _core(text: str) -> str:
    """A statement up to where it begins to say something else."""
    addition = _RIVALS.addition.search(text[:_MAX_CHARACTERS])
    return text[: addition.start()] if addition else text


def _differing_places(words: list[_Word], known: set[str]) -> list[list[_Word]]:
    """The places in which a statement differs, each with its words; numbers in several of them, as in a date and an
    hour, count as one place."""
    places, is_inside = list[list[_Word]](), False
    for word in words:
        if word.stem in known:
            is_inside = False
        elif word.is_content:
            if not is_inside:
                places.append([])
            places[-1].append(word)
            is_inside = True
    named = [place for place in places if not all(word.is_number for word in place)]
    numbers = [word for place in places if place not in named for word in place]
    return [*named, numbers] if numbers else named


def _qualifiers(words: list[_Word]) -> set[str]:
    """Which of several things a statement begins with, such as a sister or a second address."""
    # "I work at" tells of no work address.
    links, following = _listed("prepositions") | _listed("links"), [*(word.text for word in words[1:5]), ""]
    pairs = zip(words[:4], following, strict=False)
    return {word.stem for word, after in pairs if word.text in _listed("qualifiers") and after not in links}


@word_cache(_CACHED_READINGS)
def _words(text: str, spoken: int) -> list[_Word]:
    found, words = _find_texts(text), list[_Word]()
    for place, word in enumerate(found):
        is_number = _is_number(word) or word in _number_words()
        before = set(found[max(0, place - 2) : place])
        words.append(
            _Word(
                text=word,
                stem=stem(word, spoken),
                is_content=is_number or not (word in _listed("fillers") or is_stop_word(word, spoken)),
                is_number=is_number,
                is_definite=before.isdisjoint(_listed("indefinite")),
                follows_preposition=not before.isdisjoint(_listed("prepositions")),
                before=words[-1].stem if words else "",
            )
        )
    return words


def _find_texts(text: str) -> list[str]:
    words = (fold(match[0]).replace("’", "'") for match in _RIVALS.word.finditer(text[:_MAX_CHARACTERS]))
    return [word.removesuffix("'s") for word in words]


@word_cache(_CACHED_READINGS)
def _attribute_values(text: str, attribute: str, spoken: int) -> dict[str, frozenset[str]]:
    """The attributes that a statement gives a value to, each with the words that may be it."""
    found, holder = dict[str, frozenset[str]](), _RIVALS.holder.match(text)
    keyed = (row for row in _RIVALS.tables["keyed_attributes"] if row.name == attribute)
    for row in (*_RIVALS.tables["attributes"], *keyed):
        if match := row.pattern.search(text):
            groups = {group: fold(value) for group, value in match.groupdict().items() if value}
            value = groups.pop("value", "")
            rest = f"{text[: match.start()]} {text[match.end() :]}"
            words = [value] if value else [word.stem for word in _words(rest, spoken) if word.is_content]
            # Where Anna's sister lives is not where Anna lives.
            is_of_other = holder is not None and not match.start() <= holder.start("what") < match.end()
            others = [fold(holder["what"])] if holder and is_of_other else []
            found[" ".join([row.name, *map(stem, [*groups.values(), *others])])] = frozenset(words)
    return found


@cache
def _listed(name: str) -> frozenset[str]:
    return frozenset(map(fold, _RIVALS.words[name]))


@cache
def _number_words() -> frozenset[str]:
    """Words that count or date, and are no name of a thing."""
    return frozenset(map(fold, [*MONTHS, *WEEKDAYS, *NUMBER_VALUES, *NUMBER_WORDS])) - {"a", "an"}


@cache
def _opposites() -> list[tuple[str, str]]:
    pairs = (pair.split("/") for pair in _RIVALS.content["words"]["opposites"].split())
    return [(fold(one), fold(other)) for one, other in pairs]
