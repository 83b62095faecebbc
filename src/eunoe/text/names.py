# ruff: noqa: RUF001
"""What may be a name in a sentence, and how likely it is one: capitalised words, quoted titles, identifiers, files."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from eunoe.text.dates import MONTHS, WEEKDAYS
from eunoe.text.languages import stop_words_and_english
from eunoe.text.name_model import GIVEN_NAMES, NEVER_A_NAME, NameModel, load_name_model, plain_word, read_surroundings
from eunoe.text.normalize import fold
from eunoe.text.scripts import SPACELESS_NAMES
from eunoe.text.word_files import load_groups, load_words, word_set

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
            if start >= end and not word[0].islower() and self._may_begin(start):
                end = self._without_pronoun(start, self._end_of_run(start))
                for first, last, score in self._trimmed(start, end):
                    yield from self._parts(first, last, score)

    def _may_begin(self, place: int) -> bool:
        return is_capitalised(self._words[place]) and self._tokens[place][1] not in self._code

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
        while not self._ends_name(last):
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
        if plain_word(word) in _DAYS_AND_MONTHS and self._is_date(last, after):
            return False
        if is_capitalised(word):
            return True
        # Part of a larger number, as in 21,500, is no part of a name.
        is_number = (
            word[0].isdecimal() and "/" not in word and self._sentence[self._tokens[after][2] :][:1] not in (",", "%")
        )
        return is_number and after == last + 1

    def _is_date(self, last: int, after: int) -> bool:
        """Say whether a day or a month is a date rather than part of a name, as it is in "Black Friday"."""
        if self._words[after].endswith("."):
            return True
        if plain_word(self._words[after]) in MONTHS:
            return self._words[after + 1 : after + 2] != [] and self._words[after + 1][0].isdecimal()
        return not self._model.level(plain_word(self._words[last]))

    def _ends_name(self, place: int) -> bool:
        word = self._words[place]
        if not word.endswith("."):
            return False
        return not _INITIALS.fullmatch(word) and plain_word(word) not in _ABBREVIATED_TITLES

    def _trimmed(self, start: int, end: int) -> Iterator[tuple[int, int, float]]:
        """Yield a run without the words in front that are hardly part of its name; and with them, where they may be."""
        if self._surroundings.is_shouted:
            yield from self._likely_parts(start, end)
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

    def _likely_parts(self, start: int, end: int) -> Iterator[tuple[int, int, float]]:
        for is_likely, places in groupby(range(start, end), lambda place: self._score(place) >= LIKELY):
            part = list(places)
            if is_likely:
                yield part[0], part[-1] + 1, max(map(self._score, part))

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
