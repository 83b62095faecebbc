"""Whether texts bear out what is claimed: by its names, its numbers, its dates and its content words.

Names and numbers leave no choice: a claim has none that its sources do not have. Of its other words enough must be
theirs, so that a paraphrase passes and a sentence about something else does not.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Final, NamedTuple

from eunoe.form.content_words import content_words
from eunoe.form.data_files import PatternFile
from eunoe.form.date_evidence import find_date_spans, is_dated
from eunoe.form.numbers import all_values, find_numbers
from eunoe.text.analyzer import stem, word_cache
from eunoe.text.languages import ENGLISH, LANGUAGES, detect_language, is_stop_word
from eunoe.text.normalize import fold
from eunoe.text.scripts import SPACELESS
from eunoe.text.word_files import load_words

_MIN_SHARE: Final = 0.5
"""Share of what a claim says that the sources must have."""
_LIKENESS_BY_SHARE: Final = ((0.2, 0.35), (0.0, 0.45))
"""Less is enough where vectors bear it out too: from a share on, how close they must be. The cosine of facts and the
turns that they were made from is above 0.37 for 95 %, of facts and other turns for less than 2 %."""
_ROOT_CHARACTERS: Final = 5
"""What the members of one family of words have in common."""
_MAX_CHARACTERS: Final = 2000
"""What is longer is no statement that can be compared."""
_JUDGED_SOURCES: Final = 3
"""Sources by which the language is told."""
_LOOK_BACK_CHARACTERS: Final = 8
_LOOK_AHEAD_CHARACTERS: Final = 20
"""How much around a word tells whether it begins a sentence."""
_MAX_ANSWER_WORDS: Final = 2
"""Content words of an answer such as "Yes, please."."""
_MAX_SOURCE_CHARACTERS: Final = 60_000
"""How much of a source is read: more than a chunk holds, unless a single message is longer."""
_CACHED_TEXTS: Final = 512
"""More than the turns of a chunk and those before it."""
_GERMAN: Final = LANGUAGES.index("german")
"""Where every noun has a capital, so that a capital makes no name."""
_SPACELESS: Final = re.compile(rf"[{SPACELESS}]")
_SENTENCE_OPENERS: Final = load_words("sentence_openers")
_PATTERNS: Final = PatternFile("evidence")


class Source(NamedTuple):
    """Something that was said, by whom and when."""

    text: str
    names: tuple[str, ...] = ()
    """What the speaker is called."""
    time: datetime | None = None
    others: tuple[str, ...] = ()
    """What those are called to whom it may be said."""


class Claim(NamedTuple):
    """What is claimed, as it is compared."""

    spoken: int
    strict: dict[str, frozenset[str]]
    """Names and numbers, each with the forms that it may have."""
    dates: tuple[tuple[int, int], ...]
    """Where its dates stand."""
    content: frozenset[str]
    """The roots of its other words."""


class Finding(NamedTuple):
    """What sources have of a claim."""

    missing: frozenset[str]
    """Names, numbers and dates that they do not have."""
    found: frozenset[str]
    """Names, numbers and content words that they have. Names of speakers, and years, tell nothing."""
    share: float
    """How much of these they have; 1 if it has none."""
    size: int = 0
    """How many of these it has."""

    @property
    def is_enough(self) -> bool:
        return not self.missing and bool(self.found) and self.share >= _MIN_SHARE

    def is_enough_if_like(self, likeness: float) -> bool:
        """Whether it is enough together with vectors that are as close; they cannot stand for a name or a number."""
        is_like = any(self.share >= share and likeness >= least for share, least in _LIKENESS_BY_SHARE)
        return is_like and not self.missing


def is_borne_out(claim: str, sources: Sequence[str | Source]) -> bool:
    """Return whether the sources together say what is claimed: all its names and numbers, and enough of its words."""
    return compare(claim, sources).is_enough


def compare(claim: str, sources: Sequence[str | Source]) -> Finding:
    """Return what sources have of a claim. Of one that is too long to be compared they have nothing."""
    if len(claim) > _MAX_CHARACTERS:
        return Finding(frozenset(["its length"]), frozenset(), 0.0)
    given = [_cut(each if isinstance(each, Source) else Source(each)) for each in sources]
    own = read_claim(claim, find_language(claim, given))
    roots = frozenset[str]().union(*(read_roots(source.text, own.spoken) for source in given))
    speakers, years = _speakers(given), _years_around(given)
    telling = {item for item, wanted in own.strict.items() if wanted.isdisjoint(speakers | years)}
    forms = _all_forms(own, telling, given)
    strict = {item for item, wanted in own.strict.items() if not wanted.isdisjoint(forms | years)}
    dates, dated = _compare_dates(claim, own, given, forms)
    content, size = own.content & roots, len(own.content) + len(telling)
    share = (len(content) + len(strict & telling)) / size if size else 1.0
    missing = (own.strict.keys() - strict) | (dates - dated)
    return Finding(frozenset(missing), frozenset((strict & telling) | content), share, size)


def _speakers(given: Sequence[Source]) -> frozenset[str]:
    return _name_words(tuple(name for source in given for name in (*source.names, *source.others)))


def _years_around(given: Sequence[Source]) -> frozenset[str]:
    moments = [source.time for source in given if source.time]
    return frozenset(str(moment.year + step) for moment in moments for step in (-1, 0, 1))


def _all_forms(own: Claim, telling: Collection[str], given: Sequence[Source]) -> frozenset[str]:
    """The forms of all that the sources say. Who speaks counts only where they say something of the claim: otherwise
    one who said something else would be named for it."""
    telling_sources = [source for source in given if _tells(own, telling, source)]
    named = (_named_in(source, own.spoken) for source in telling_sources or given)
    return frozenset[str]().union(*(read_forms(source.text) for source in given), *named)


def _tells(own: Claim, telling: Collection[str], source: Source) -> bool:
    """Whether a source says something of the claim, or so little that it answers what another says."""
    forms, roots = read_forms(source.text), read_roots(source.text, own.spoken)
    has_some = not own.content.isdisjoint(roots) or len(roots) <= _MAX_ANSWER_WORDS
    return has_some or any(not own.strict[item].isdisjoint(forms) for item in telling)


def _named_in(source: Source, spoken: int) -> frozenset[str]:
    """The forms of the names of who speaks, and of who may be spoken to where somebody is."""
    words = _PATTERNS.words["address"]
    names = (*source.names, *(() if words.isdisjoint(read_forms(source.text)) else source.others))
    return _word_forms(_name_words(names), spoken)


def _compare_dates(claim: str, own: Claim, given: Sequence[Source], forms: frozenset[str]) -> tuple[set[str], set[str]]:
    """The dates of a claim, and those of them that follow from the sources."""
    said = [(source.text, source.time) for source in given]
    dated = {claim[slice(*span)] for span in own.dates if is_dated(claim, span, said, forms)}
    return {claim[slice(*span)] for span in own.dates}, dated


def count_common(claim: str, source: Source) -> int:
    """Return how many names, numbers and content words of a claim a source has, roughly and quickly."""
    source = _cut(source)
    own = read_claim(claim, find_language(claim, [source]))
    forms = read_forms(source.text) | _named_in(source, own.spoken)
    strict = sum(not wanted.isdisjoint(forms) for wanted in own.strict.values())
    return strict + len(own.content & read_roots(source.text, own.spoken))


class _Word(NamedTuple):
    text: str
    start: int
    end: int


def _cut(source: Source) -> Source:
    return source._replace(text=source.text[:_MAX_SOURCE_CHARACTERS])


def find_language(claim: str, given: Sequence[Source]) -> int:
    """The language of a claim, which is that of its sources; alone, it is too short to tell."""
    texts = (source.text[:_MAX_CHARACTERS] for source in given[:_JUDGED_SOURCES])
    return detect_language(" ".join([claim, *texts]))


@word_cache(_CACHED_TEXTS)
def read_claim(claim: str, spoken: int) -> Claim:
    dates = find_date_spans(claim)
    strict: dict[str, frozenset[str]] = {}
    spans = list(dates)
    for number in find_numbers(claim, spoken == ENGLISH):
        if not number.is_loose and not _is_within(number.start, dates):
            strict[claim[number.start : number.end]] = number.values
            spans.append((number.start, number.end))
    words = [word for word in _find_words(claim) if not _is_within(word.start, spans)]
    plain = list[str]()
    for word in words:
        if _is_name(word, claim, spoken):
            strict[word.text] = _name_forms(word.text, spoken)
        else:
            plain.append(word.text)
    strict |= {match[0]: frozenset([match[0]]) for match in _PATTERNS.katakana.finditer(claim)}
    content = _roots(" ".join(plain), spoken) - _report_roots()
    return Claim(spoken, strict, dates, content)


def _is_within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _find_words(text: str) -> Iterator[_Word]:
    for match in _PATTERNS.token.finditer(text):
        yield _Word(match[0], match.start(), match.end())


def _is_name(word: _Word, text: str, spoken: int) -> bool:
    """Whether a word is written like a name or a code; the first of a sentence only if it does not merely begin it."""
    bare = _PATTERNS.possessive.sub("", word.text)
    folded = fold(bare)
    if any(map(str.isdecimal, bare)):
        return not _SPACELESS.search(bare)
    if not bare[:1].isupper() or folded in _PATTERNS.words["roles"] or _is_small_word(folded, spoken):
        return False
    if bare != word.text or (bare.isupper() and len(bare) > 1):
        return True
    if _PATTERNS.sentence_end.search(text, max(0, word.start - _LOOK_BACK_CHARACTERS), word.start):
        return _acts(folded, text[word.end : word.end + _LOOK_AHEAD_CHARACTERS])
    return spoken != _GERMAN


def _is_small_word(folded: str, spoken: int) -> bool:
    """Whether it says nothing in its language, as "I" and "It's"."""
    start = folded.replace("’", "'").partition("'")[0]
    return is_stop_word(folded, spoken) or is_stop_word(start, spoken)


def _acts(first: str, after: str) -> bool:
    """Whether the first word of a sentence seems to be somebody's name."""
    return first not in _SENTENCE_OPENERS and not first.endswith("ing") and not _PATTERNS.no_name_follows.match(after)


def _name_forms(name: str, spoken: int) -> frozenset[str]:
    bare = fold(_PATTERNS.possessive.sub("", name))
    return frozenset([bare, stem(bare, spoken), *_inflections(bare, spoken)])


def _inflections(word: str, spoken: int) -> list[str]:
    """What the cases of a name have in common in languages that have them."""
    if spoken == ENGLISH or len(word) < 4:
        return []
    return [f"~{word}", f"~{word[:-1]}", *([f"~{word[:-2]}"] if len(word) > 5 else [])]


@word_cache(_CACHED_TEXTS)
def _name_words(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(fold(_PATTERNS.possessive.sub("", word.text)) for name in names for word in _find_words(name))


@word_cache(_CACHED_TEXTS)
def read_forms(text: str) -> frozenset[str]:
    """The forms of all words and numbers of a text."""
    spoken = detect_language(text)
    words = [fold(_PATTERNS.possessive.sub("", word.text)) for word in _find_words(text)]
    parts = [part for word in words if not word.isalnum() for part in re.split(r"[^\w]", word)]
    runs = (match[0] for match in _PATTERNS.katakana.finditer(text))
    return _word_forms((*words, *parts), spoken) | all_values(text, spoken == ENGLISH) | frozenset(runs)


def _word_forms(words: Iterable[str], spoken: int) -> frozenset[str]:
    return frozenset(form for word in words for form in (word, stem(word, spoken), *_inflections(word, spoken)))


@word_cache(_CACHED_TEXTS)
def read_roots(text: str, spoken: int) -> frozenset[str]:
    return _roots(text, spoken) | _roots(text, detect_language(text))


def _roots(text: str, spoken: int) -> frozenset[str]:
    """The roots of content words; in scripts without spaces pairs of characters."""
    terms = [term for term in content_words(text, spoken) if not term.isdecimal()]
    several = [term for term in terms if len(term) > 1 or not _SPACELESS.match(term)]
    return frozenset(term[:_ROOT_CHARACTERS] for term in several or terms)


@cache
def _report_roots() -> frozenset[str]:
    return frozenset(stem(fold(word))[:_ROOT_CHARACTERS] for word in _PATTERNS.words["report"])
