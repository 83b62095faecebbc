"""What may be a name in a sentence, and how likely it is one: capitalised words, quoted titles, identifiers, files.

A logistic regression says how likely a word with a capital is part of a name, by marks that it has or has not: where
it stands in its sentence, how it is written, how common it is in small letters, the words before and after it.
`training/names.py` makes its file.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import groupby
from math import exp
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.text.dates import MONTHS, WEEKDAYS
from eunoe.text.languages import LANGUAGES, stop_words_and_english
from eunoe.text.normalize import SPACELESS_NAMES, fold, load_groups, load_words, word_set

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

LIKELY: Final = 0.5
"""What is at least so likely a name is shown as one."""
LEAST_LIKELY: Final = 0.1
"""What is less likely a name is none. Between the two recall may still need it, as it needs the title of a film."""

_MAX_LINKS: Final = 3
_MAX_QUOTED_WORDS: Final = 10
_TIGHT_LINKS: Final = word_set("of de la von van der den du des di da del della dos das le el al bin ibn zu zum av och")
"""Small words within one name."""
_LOOSE_LINKS: Final = word_set("and & in on at to for the y")
"""Small words within one name or between two."""
LINKS: Final = _TIGHT_LINKS | _LOOSE_LINKS
_LINKS_BETWEEN_NAMES: Final = word_set("and & in on at y")
_TITLES: Final = load_groups("titles")
PERSON_TITLES: Final = _TITLES["person"]
"""Of people: a name begins with one, or with several."""
_ABBREVIATED_TITLES: Final = PERSON_TITLES | _TITLES["part"]
_COMPANY_WORDS: Final = _TITLES["company"]
"""What the name of a company may end with after "&"."""
DATE_WORDS: Final = word_set(
    "of bc ad am pm st nd rd th century mon tue tues wed weds thu thur thurs fri sat sun sept"
    " mondays tuesdays wednesdays thursdays fridays saturdays sundays"
).union(MONTHS, WEEKDAYS)
_DAYS_AND_MONTHS: Final = frozenset(MONTHS) | frozenset(WEEKDAYS)
_LETTER: Final = re.compile(r"[^\W\d_]")
TOKEN: Final = re.compile(r"[^\W_]+(?:[.'’&\-_/@+#][^\W_]+)*\.?|[^\w\s]|_")
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.)+")
_FIRST_PERSON: Final = re.compile(r"I['’´`](?:d|ll|m|ve)")
"""Written with a capital wherever it stands, and no name."""
_QUOTE: Final = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』]{2,80})[\"”“»」』]")
_QUOTE_WORD: Final = re.compile(r"[^\W_][^\s]*")
_COMPOUND: Final = re.compile(r"\w(?:[\w./-]*\w)?")
"""Words and what stands between them without a blank."""
_IDENTIFIER_JOINT: Final = re.compile(
    r"(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2}|\d[^\W\d]|[^\W\d]\d|_[^\W_]|\w/\w|\w\.(?=[a-z]))(?=.)", re.DOTALL
)
"""What tells an identifier from words, with something after it."""
_NEVER_IN_A_NAME: Final = re.compile(r"_|[^\W\d_]-?\d|\w[/\\@]\w|\w\.[a-z]|\w\w\.\w\w")
"""What has one of these is called by it as a whole, unlike a person."""
_CAMEL_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MEASURE: Final = re.compile(r"\d[\d.,/-]*[^\W\d_]{1,4}|\d[\w./-]*(?:-[a-z]+)+")
"""A number with a unit, or in a word such as 20th-century."""
_FILE_ENDINGS: Final = load_words("file_endings")
_SPACELESS_NAME: Final = re.compile(SPACELESS_NAMES)

_IS_CODE, _MAY_BE_CODE, _IS_HARDLY_CODE = 0.95, 0.7, 0.2
_IS_TITLE, _MAY_BE_TITLE = 0.9, 0.3
_IS_SPACELESS: Final = 0.6

_Token = tuple[str, int, int]
"""A word, its start and its end."""

_MAX_NAME_CHARACTERS: Final = 120
"""No name is longer; comparing takes time with the product of the lengths."""
_MAX_COMPARED: Final = 50
"""So many that share most pairs of letters are compared letter by letter."""
_MAX_WORDS: Final = 6
_MIN_WORD_CHARACTERS: Final = 4
"""Shorter words, such as "the" and "von", stand in too many names."""
_MIN_SHARED_PAIRS: Final = 0.3
_MIN_RATIO: Final = 0.7


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
        return 1 / (1 + exp(-sum(self._weights.get(mark, 0.0) for mark in marks)))

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
    word, letters = plain_word(token), token.rstrip(".")
    if len(letters) == 1:
        shape = "1"
    elif letters.isalpha():
        shape = "A" if letters.isupper() else "C" if letters[1:].islower() else "X"
    elif any(map(str.isdecimal, letters)):
        shape = "D"
    else:
        shape = "B" if letters.isupper() else "H"
    return word, shape, word in GIVEN_NAMES, token[-2:-1] in _APOSTROPHES


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


# ruff: noqa: RUF001


class NameCandidate(NamedTuple):
    """What may be a name, as written, where it starts, and how likely it is one, 0 to 1."""

    name: str
    start: int
    score: float


def find_names(sentence: str, lowercase: frozenset[str], language: int) -> Iterator[NameCandidate]:
    """Yield quoted titles, runs of capitalised words and their parts, identifiers, and runs of scripts without case."""
    yield from _quoted_titles(sentence)
    model = load_name_model()
    code = list(_identifiers(sentence, model))
    places = {place for name, start, score in code if score == _IS_CODE for place in range(start, start + len(name))}
    yield from _ScoredWords(sentence, _read_tokens(sentence), places, lowercase, language).names()
    yield from code
    for match in _SPACELESS_NAME.finditer(sentence):
        yield NameCandidate(match[0], match.start(), _IS_SPACELESS)


def _read_tokens(sentence: str) -> list[_Token]:
    """The tokens of a sentence; the name of a company such as "Lowe & Sons" is one."""
    if "&" not in sentence:
        return [(match[0], *match.span()) for match in TOKEN.finditer(sentence)]
    tokens: list[_Token] = []
    for match in TOKEN.finditer(sentence):
        token = match[0], match.start(), match.end()
        if len(tokens) > 1 and tokens[-1][0] == "&" and plain_word(token[0]) in _COMPANY_WORDS:
            del tokens[-1]
            start = tokens.pop()[1]
            token = sentence[start : match.end()], start, match.end()
        tokens.append(token)
    return tokens


def _quoted_titles(sentence: str) -> Iterator[NameCandidate]:
    for quote in _QUOTE.finditer(sentence):
        words = quote[1].strip(" ,.")
        if words[:1].isalnum() and not words[0].islower() and len(words.split()) <= _MAX_QUOTED_WORDS:
            small = any(word[0].islower() and word not in LINKS for word in _QUOTE_WORD.findall(words))
            is_title = " " in words and not small and words[-1] not in "!?"
            yield NameCandidate(words, quote.start(1), _IS_TITLE if is_title else _MAY_BE_TITLE)


def _identifiers(sentence: str, model: NameModel) -> Iterator[NameCandidate]:
    for match in _COMPOUND.finditer(sentence):
        name = match[0]
        if name.isalpha() and name[1:].islower():
            continue
        if _IDENTIFIER_JOINT.search(name) and _LETTER.search(name):
            after = sentence[match.end() : match.end() + 1]
            is_called = after == "`" or (after == "(" and "." in name)
            yield NameCandidate(name, match.start(), _IS_CODE if is_called else _identifier_score(name, model))


def _identifier_score(name: str, model: NameModel) -> float:
    if "_" in name or name.count("/") > 1:
        return _IS_CODE
    words = [word for word in re.split(r"[\W\d_]+", name.lower()) if word]
    if "/" in name and name.replace("/", "").isalpha():
        return _IS_HARDLY_CODE
    if "/" in name or "." in name:
        if name.rpartition(".")[2] in _FILE_ENDINGS:
            return _IS_CODE
        return _IS_HARDLY_CODE if all(map(model.level, words)) else _MAY_BE_CODE
    if any(map(str.isdecimal, name)):
        return 0.0 if _MEASURE.fullmatch(name) else _MAY_BE_CODE
    if model.level(name.lower()) == NEVER_A_NAME:
        return 0.0
    parts = _CAMEL_PART.findall(name)
    is_code = len(parts) > 1 and all(part.isupper() or (len(part) > 2 and model.level(part.lower())) for part in parts)
    return _IS_CODE if is_code else _MAY_BE_CODE


def is_identifier(name: str) -> bool:
    """Say whether a name has what only identifiers, files, paths and versions have.

    >>> is_identifier("memory.write"), is_identifier("J.R.R. Tolkien")
    (True, False)
    """
    return bool(_NEVER_IN_A_NAME.search(name))


def is_capitalised(word: str) -> bool:
    first = word[0]
    return (first.isupper() or first.istitle()) and not (first == "I" and _FIRST_PERSON.fullmatch(word))


class _ScoredWords:
    """The words of one sentence, and how likely each with a capital is part of a name."""

    def __init__(
        self, sentence: str, tokens: Sequence[_Token], code: set[int], lowercase: frozenset[str], language: int
    ) -> None:
        self._sentence, self._tokens, self._code = sentence, tokens, code
        self._words = [token[0] for token in tokens]
        self._stop_words = stop_words_and_english(language)
        self._surroundings = read_surroundings(self._words, lowercase, language)
        self._model = load_name_model()
        self._scores: dict[int, float] = {}

    def names(self) -> Iterator[NameCandidate]:
        end = 0
        for start, word in enumerate(self._words):
            is_code = self._tokens[start][1] in self._code
            if start >= end and not word[0].islower() and is_capitalised(word) and not is_code:
                end = self._without_pronoun(start, self._end_of_run(start))
                for first, last, score in self._trimmed(start, end):
                    yield from self._parts(first, last, score)

    def _without_pronoun(self, start: int, end: int) -> int:
        """Where a run ends without an "I" that goes on with what somebody does, as in "Friday I went"."""
        if (
            end - start < 2
            or self._words[end - 1] != "I"
            or not self._words[end : end + 1]
            or not self._words[end][0].islower()
        ):
            return end
        before = plain_word(self._words[end - 2])
        return end - 1 if before in DATE_WORDS or (end - start == 2 and self._model.level(before)) else end

    def _score(self, place: int) -> float:
        if place not in self._scores:
            is_word = is_capitalised(self._words[place])
            score = self._model.score(self._words, place, self._surroundings) if is_word else 0.0
            # Of German nouns too little was learned to leave one out.
            self._scores[place] = max(score, LEAST_LIKELY) if self._surroundings.is_german else score
        return self._scores[place]

    def _end_of_run(self, last: int) -> int:
        words = self._words
        while not words[last].endswith(".") or (
            _INITIALS.fullmatch(words[last]) or plain_word(words[last]) in _ABBREVIATED_TITLES
        ):
            after = last + 1
            while after < len(words) and after - last <= _MAX_LINKS and words[after] in LINKS:
                after += 1
            if after == len(words) or not self._goes_on(last, after):
                break
            last = after
        return last + 1

    def _goes_on(self, last: int, after: int) -> bool:
        """Say whether a name goes on with a word: not with another's title, a day or a month, or an identifier."""
        word = self._words[after]
        if self._tokens[after][1] in self._code or (_is_title(word) and not _is_title(self._words[last])):
            return False
        if plain_word(word) in _DAYS_AND_MONTHS:
            # It is a date rather than part of a name, as it is in "Black Friday".
            if word.endswith("."):
                return False
            if plain_word(word) not in MONTHS:
                is_date = not self._model.level(plain_word(self._words[last]))
            else:
                is_date = self._words[after + 1 : after + 2] != [] and self._words[after + 1][0].isdecimal()
            if is_date:
                return False
        if is_capitalised(word):
            return True
        # Part of a larger number, as in 21,500, is no part of a name.
        is_number = (
            word[0].isdecimal() and "/" not in word and self._sentence[self._tokens[after][2] :][:1] not in (",", "%")
        )
        return is_number and after == last + 1

    def _trimmed(self, start: int, end: int) -> Iterator[tuple[int, int, float]]:
        """Yield a run without the words in front that are hardly part of its name; and with them, where they may be."""
        if self._surroundings.is_shouted:
            for is_likely, places in groupby(range(start, end), lambda place: self._score(place) >= LIKELY):
                part = list(places)
                if is_likely:
                    yield part[0], part[-1] + 1, max(map(self._score, part))
            return
        first = start
        # Only where a sentence may begin does a capital not tell a name from a stop word.
        if start == 0 or not self._words[start - 1][0].isalnum():
            while first < end and self._is_hardly_first(first, end, first == start):
                first += 1
            if start < first and end - start > 1 and self._may_be_title(start, end):
                yield start, end, max(_MAY_BE_TITLE, self._score(start))
        if first < end:
            score = self._score(first)
            yield first, end, score if score >= LIKELY or end - first == 1 else max(score, self._score(end - 1))
        elif end == start + 1:
            yield start, end, self._score(start)

    def _may_be_title(self, start: int, end: int) -> bool:
        """Say whether a run may be a title, with words in front that are hardly part of a name."""
        if fold(self._words[start]) in self._stop_words:
            return end - start > 2 and is_capitalised(self._words[start + 1])
        return True

    def _is_hardly_first(self, place: int, end: int, is_start: bool) -> bool:
        word = self._words[place]
        folded = fold(word)
        if (folded in self._stop_words and folded not in GIVEN_NAMES) or word in LINKS or word[0].isdecimal():
            return True
        if self._surroundings.is_german:
            return place < end - 1 and self._score(place) < LIKELY
        is_rare = end - place > 1 and not self._model.level(plain_word(word))
        return is_start and not is_rare and not _is_title(word) and self._score(place) < LIKELY

    def _parts(self, first: int, end: int, score: float) -> Iterator[NameCandidate]:
        """Yield a run and what its links join. Names beside each other, or a name and its place, are not one name."""
        run = self._tokens[first:end]
        words = self._words[first:end]
        if _LINKS_BETWEEN_NAMES.isdisjoint(words) and not (
            "to" in words and self._words[first - 1 : first] == ["from"]
        ):
            yield self._candidate(run, score)
        if len(run) > 1 and words[-1][0].isdecimal() and LINKS.isdisjoint(words):
            yield self._candidate(run[:-1], score)
        for part in _split_at_links(run, _LOOSE_LINKS) if not LINKS.isdisjoint(words) else ():
            for smaller in (part, *_split_at_links(part, _TIGHT_LINKS)):
                # "Sons" of "Lowe & Sons" is a word, and no name by itself.
                word = plain_word(smaller[0][0])
                is_word = len(smaller) == 1 and self._model.level(word) > 1 and word not in GIVEN_NAMES
                yield self._candidate(smaller, min(score, _MAY_BE_TITLE) if is_word else score)

    def _candidate(self, part: Sequence[_Token], score: float) -> NameCandidate:
        start = part[0][1]
        return NameCandidate(self._sentence[start : part[-1][2]], start, score)


def _is_title(word: str) -> bool:
    return plain_word(word) in PERSON_TITLES


def _split_at_links(run: Sequence[_Token], links: frozenset[str]) -> Iterator[Sequence[_Token]]:
    for is_link, tokens in groupby(run, lambda token: token[0] in links):
        part = [] if is_link else list(tokens)
        while part and part[0][0] in LINKS:
            del part[0]
        while part and part[-1][0] in LINKS:
            del part[-1]
        if part:
            yield part


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
    words, others = ([w for w in each.split() if len(w) >= _MIN_WORD_CHARACTERS][:_MAX_WORDS] for each in (name, other))
    pairs = [(name, other, 1.0), *((mine, theirs, 0.9) for mine in words for theirs in others)]
    return max(factor * SequenceMatcher(None, a, b, autojunk=False).ratio() for a, b, factor in pairs)
