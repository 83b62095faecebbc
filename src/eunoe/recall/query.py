"""A question, read against a stream: what it looks for, whom it names, which times it means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from eunoe.index.lexical import Group
from eunoe.index.stream import StreamIndex
from eunoe.text import analyzer, dates
from eunoe.text.dates import DateRange
from eunoe.text.languages import ENGLISH, FRAME_WORDS, detect_language, stop_words

Near = tuple[tuple[str, float], ...]

MAX_GROUPS: Final = 48
MAX_CHARS: Final = 20_000
_FRAME_WEIGHT: Final = 0.4
_DATE_WEIGHT: Final = 0.3
_PART_WEIGHT: Final = 0.5
_MIN_NICKNAME: Final = 3
_USUAL_LENGTH: Final = 48
_FRAMES: Final = frozenset(analyzer.stem(word) for word in FRAME_WORDS)
_WHEN: Final = re.compile(
    r"\b(?:when|what (?:date|year|month|day|time|age)|which (?:date|year|month|day|week)|how (?:long|old|often|soon)|"
    r"how many (?:days|weeks|months|years|hours)|date of|on what|by what date|since when|until when|"
    r"wann|wie lange|quand|cuándo|cuando|quando|wanneer|когда)\b|何時|いつ|什么时候|언제"
)
_AMOUNT: Final = re.compile(
    r"\b(?:how (?:many|much|old|far|long|big|tall|large|high|heavy|often)|what (?:number|size|price|percentage|share|"
    r"score|rate|budget|amount)|price|cost|number of|budget|amount|total|"
    r"wie ?viele?|combien|cuánt[oa]s?|quant[oaie]|quanto|hoeveel|сколько)\b|いくつ|多少|얼마"
)


@runtime_checkable
class Synonyms(Protocol):
    """Finds words of like meaning."""

    def similar_words(self, words: Sequence[str]) -> list[Near]:
        """For each folded word, others with how alike they are, above 0 and below 1, the best first."""


class Word(NamedTuple):
    """One word of a question and the forms it may have in an index."""

    label: str
    forms: tuple[str, ...]
    weight: float
    plain: str = ""
    """The folded word, where other words can be near it."""
    whole: str = ""
    """The piece of the question that it was taken from."""
    identifier: bool = False


class Question(NamedTuple):
    """A question, read once for all indexes."""

    text: str
    words: tuple[Word, ...]
    stops: tuple[Word, ...]
    when: bool
    amount: bool
    now: float


class Plan(NamedTuple):
    """A question read against one index."""

    groups: tuple[Group, ...]
    exact: tuple[int, ...]
    """Which of the groups are identifiers that the index knows."""
    named: tuple[Group, ...]
    speakers: frozenset[int]
    names: frozenset[str]
    ranges: tuple[DateRange, ...]
    when: bool
    amount: bool


def read(query: str, languages: Iterable[int], now: float) -> Question:
    """Splits a question into words, each under every language it may be kept in."""
    cut = query[:MAX_CHARS]
    spoken = detect_language(cut)
    forms = tuple(sorted({ENGLISH, spoken, *languages}))
    words: dict[str, Word] = {}
    stops: dict[str, Word] = {}
    empty = stop_words(spoken)
    for chunk in cut.split():
        for word in _usual_words(chunk, forms) if len(chunk) <= _USUAL_LENGTH else _words(chunk, forms):
            target = stops if word.plain in empty else words
            target.setdefault(word.label, word)
    lowered = cut.lower()
    return Question(
        text=cut,
        words=tuple(words.values())[:MAX_GROUPS],
        stops=tuple(stops.values())[:MAX_GROUPS],
        when=bool(_WHEN.search(lowered)),
        amount=bool(_AMOUNT.search(lowered)),
        now=now,
    )


@analyzer.word_cache(4096)
def _usual_words(chunk: str, languages: tuple[int, ...]) -> tuple[Word, ...]:
    return tuple(_words(chunk, languages))


def _words(chunk: str, languages: Sequence[int]) -> Iterator[Word]:
    found = analyzer.split_token(chunk)
    for whole in found.exact_terms:
        yield Word(whole, (whole,), 1.0, whole=chunk, identifier=analyzer.is_identifier(whole))
    for word in found.words:
        weight = _PART_WEIGHT if found.exact_terms else 1.0
        if analyzer.stem(word) in _FRAMES:
            weight *= _FRAME_WEIGHT
        yield Word(word, tuple(dict.fromkeys([analyzer.stem(word, each) for each in languages])), weight, word, chunk)
    for run in found.spaceless_runs:
        for pair in analyzer.character_pairs(run):
            yield Word(pair, (pair,), 1.0, whole=chunk)


def plan(question: Question, index: StreamIndex, synonyms: Synonyms | None) -> Plan:
    """Finds a question's words, people and times in an index."""
    speakers, called = _speakers(question, index)
    ranges = dates.find_date_ranges(question.text, question.now, index.layout.span)
    dated = {word for found in ranges for word in analyzer.folded_words(question.text[slice(*found.span)])}
    content = [word for word in question.words if word.plain not in called] if called else question.words
    words = content or question.words or question.stops
    near = iter(synonyms.similar_words([word.plain for word in words if word.plain])) if synonyms else iter(())
    groups = [
        _group(word, index, next(near, ()) if word.plain else (), _DATE_WEIGHT if word.plain in dated else 1.0)
        for word in words
    ]
    named = [_group(word, index, (), 1.0) for word in question.words if word.plain in called] if called else ()
    return Plan(
        groups=tuple(groups),
        exact=_exact(words, groups),
        named=tuple(named),
        speakers=speakers,
        names=frozenset(called),
        ranges=ranges,
        when=question.when,
        amount=question.amount,
    )


def _exact(words: Sequence[Word], groups: Sequence[Group]) -> tuple[int, ...]:
    """The longest known identifiers: of a path that is known as a whole, its file name is no identifier of its own."""
    chosen: list[int] = []
    for number, word in enumerate(words):
        if word.identifier and groups[number].exact and not any(word.label in words[each].label for each in chosen):
            chosen.append(number)
    return tuple(chosen)


def without_names(query: str, indexes: Iterable[StreamIndex]) -> str:
    """The question without the names of those who speak in the streams: the text to embed.

    Everyone's turns are about the speakers, so that a name pulls a vector towards greetings and away from the matter.
    """
    names = {name for index in indexes for name in index.layout.names}
    kept = [
        chunk for chunk in query.split() if not (words := analyzer.folded_words(chunk)) or not names.issuperset(words)
    ]
    return " ".join(kept) if any(analyzer.folded_words(chunk) for chunk in kept) else query


def _speakers(question: Question, index: StreamIndex) -> tuple[frozenset[int], set[str]]:
    """The speakers that a question names, and the words it names them by."""
    owners = index.layout.names
    codes: set[int] = set()
    called: set[str] = set()
    for plain in (word.plain for word in question.words if word.plain) if owners else ():
        known = owners.get(plain) or _nicknamed(plain, question.text, owners)
        if known:
            codes |= known
            called.add(plain)
    return frozenset(codes), called


def _nicknamed(word: str, query: str, owners: dict[str, set[int]]) -> set[int]:
    """Whom a capitalised short form means, when it can mean one speaker only."""
    if len(word) < _MIN_NICKNAME or word.capitalize() not in query:
        return set()
    longer = [codes for name, codes in owners.items() if name.startswith(word)]
    return longer[0] if len(longer) == 1 else set()


def _group(word: Word, index: StreamIndex, near: Near, factor: float) -> Group:
    known = index.lexical.vocabulary
    fits = {known[form]: 1.0 for form in word.forms if form and form in known}
    exact = len(fits)
    if near:
        others = _forms(near, index.lexical.languages)
        for form in others.keys() & known.keys():
            fits.setdefault(known[form], others[form])
    return Group(word.label, tuple(fits), tuple(fits.values()), exact, word.weight * factor, word.whole)


def exactly(word: Word, index: StreamIndex) -> Group:
    """A word as it is, in an index."""
    return _group(word, index, (), 1.0)


def fits(words: Sequence[Word], languages: frozenset[int], synonyms: Synonyms | None) -> list[dict[str, float]]:
    """For each word the terms that count as it, and how well each does (1 is exact)."""
    near = iter(synonyms.similar_words([word.plain for word in words if word.plain]) if synonyms else ())
    found = []
    for word in words:
        others = _forms(next(near, ()), languages) if word.plain else {}
        found.append(dict(others) | {form: 1.0 for form in word.forms if form})
    return found


@analyzer.word_cache(4096)
def _forms(near: Near, languages: frozenset[int]) -> dict[str, float]:
    """Stems of near words, each with its best fit."""
    forms: dict[str, float] = {}
    for other, fit in near:
        for language in languages:
            forms.setdefault(analyzer.stem(other, language), fit)
    return forms


def plain(question: Question, index: StreamIndex) -> tuple[Group, ...]:
    """The question's words, names and all, as they are."""
    words = question.words or question.stops
    return tuple(_group(word, index, (), 1.0) for word in words)
