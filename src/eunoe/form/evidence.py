"""Whether texts bear out what is claimed: by its names, its numbers, its dates and its content words.

Names and numbers leave no choice: a claim has none that its sources do not have. Of its other words enough must be
theirs, so that a paraphrase passes and a sentence about something else does not.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.text.analyzer import stem, terms, word_cache
from eunoe.text.dates import DAY_SECONDS, MONTHS, NUMBER_VALUES, TIME_UNITS, WEEKDAYS, find_date_ranges
from eunoe.text.languages import ENGLISH, LANGUAGES, detect_language, is_stop_word
from eunoe.text.normalize import SPACELESS, fold, load_words

_MIN_SHARE: Final = 0.5
"""Share of what a claim says that the sources must have."""
_LIKENESS_BY_SHARE: Final = ((0.2, 0.35), (0.0, 0.45))
"""Less is enough where vectors bear it out too: from a share on, how close they must be. The cosine of facts and the
turns that they were made from is above 0.37 for 95 %, of facts and other turns for less than 2 %."""
_ROOT_CHARACTERS: Final = 5
"""What the members of one family of words have in common; stems alone part compounds from what they are made of."""
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

_PUNCTUATION: Final = ".,;:!?"
_OPENING: Final = "\"'([*_“„«"
_CLOSING: Final = "\"')]*_”»"
_SENTENCE_ENDS: Final = (*".!?:…", "")
_MIN_NAMES: Final = 5
"""Fewer names and numbers than this say little about a text."""

_NUMBERS: Final = PatternFile("numbers")
_HOURS: Final = 12
_AND: Final = frozenset({"and", "und", "et", "y", "e", "en"})
_MULTIPLIERS: Final = frozenset({100.0, 1000.0, 1_000_000.0})

_YEAR_SECONDS: Final = 366 * DAY_SECONDS
_SLACK_SECONDS: Final = 10 * DAY_SECONDS
"""A day may be named for a time of so many days ("next week"); of a longer one, only a part as long."""
_UNIT_DAYS: Final = {"day": 1.0, "week": 7.0, "weekend": 7.0, "month": 30.44, "quarter": 91.3, "year": 365.25}
_COUNT_SLACK: Final = 0.25
"""By how much of itself a count of weeks, months or years may be off."""
_MAX_YEARS_APART: Final = 1
_COUNTED: Final = TIME_UNITS.keys() | NUMBER_VALUES.keys()
_DATE_PART: Final = re.compile(r"\d+|[^\W\d_]+")
_PERIOD: Final = re.compile(
    rf"\b(\d{{1,3}}|{'|'.join(NUMBER_VALUES)}) ({'|'.join(sorted(TIME_UNITS, key=len, reverse=True))})s?\b"
)
"""A count of days, weeks, months or years."""

Span = tuple[int, int]
Range = tuple[float, float]


def content_words(text: str, spoken: int | None = None) -> frozenset[str]:
    """Return the words of a text that say something, as stems of its own language or of the one given; in scripts
    without spaces its characters and their pairs."""
    tongue = detect_language(text) if spoken is None else spoken
    chunks = [chunk for chunk in text.split() if not is_stop_word(fold(chunk.strip(_PUNCTUATION)), tongue)]
    return frozenset(term for chunk in chunks for term in terms(chunk, tongue))


def covered_share(text: str, sources: Sequence[str]) -> float:
    """Return how much of a text's content the sources have together; all of it if it has none."""
    content = content_words(text)
    # Numbers are put anew into dates and sums, and any two texts share single characters of scripts without spaces.
    wanted = {term for term in content if not term.isdecimal() and _is_telling(term)} or content
    roots = {term[:_ROOT_CHARACTERS] for term in _all_content(sources, detect_language(text))}
    return sum(term[:_ROOT_CHARACTERS] in roots for term in wanted) / len(wanted) if wanted else 1.0


def kept_share(old: str, untrue: Sequence[str], new: str) -> float:
    """Return how much of what an old text says a new one has: of its content, or of its names and numbers if that is
    more. What is not true any more does not count."""
    spoken = detect_language(old)
    kept, gone = _all_content([new], spoken), _all_content(untrue, spoken)
    content, names = content_words(old) - gone, names_and_numbers(old) - gone
    parts = [content] if len(names) < _MIN_NAMES else [content, names]
    return max((len(part & kept) / len(part) for part in parts if part), default=1.0)


def names_and_numbers(text: str) -> frozenset[str]:
    """Return what no other word can stand for: what holds a digit, or a capital letter that no sentence begins with."""
    spoken = detect_language(text)
    chunks = [
        chunk
        for before, chunk in pairwise(["", *text.split()])
        if any(map(str.isdecimal, chunk))
        or (chunk.lstrip(_OPENING)[:1].isupper() and before.rstrip(_CLOSING)[-1:] not in _SENTENCE_ENDS)
    ]
    return frozenset(term for chunk in chunks for term in terms(chunk, spoken))


def language_or_script(text: str) -> int:
    """Return the number of a text's language; -1 for scripts without spaces."""
    letters = sum(map(str.isalpha, text))
    return -1 if 2 * len(_SPACELESS.findall(text)) > letters else detect_language(text)


def _is_telling(term: str) -> bool:
    return len(term) > 1 or not _SPACELESS.match(term)


def _all_content(texts: Iterable[str], spoken: int) -> frozenset[str]:
    """The content words of all texts, each in its own language and in the one given."""
    spoken_in = ((text, tongue) for text in texts for tongue in {detect_language(text), spoken})
    return frozenset[str]().union(*(content_words(text, tongue) for text, tongue in spoken_in))


class Number(NamedTuple):
    """A number and where it stands."""

    start: int
    end: int
    values: frozenset[str]
    """The forms that say the same: 1,200 may be 1200 or 1.2."""
    is_loose: bool
    """Whether it is a word that may be used without counting, as "one" and "second"."""


class _Part(NamedTuple):
    """A word or digits, and the number that it stands for if it does."""

    text: str
    start: int
    end: int
    value: float | None


def find_numbers(text: str, is_english: bool = True) -> list[Number]:
    """Return the numbers of a text, in digits or in words; words that belong together are one."""
    found, run = list[Number](), list[_Part]()
    for part in _number_parts(text, is_english):
        if run and not _goes_on(text, run, part):
            found += _read_run(run)
            run = []
        if part.value is not None or (run and part.text in _AND):
            run.append(part)
        elif any(map(str.isdecimal, part.text)):
            found.append(Number(part.start, part.end, _digit_values(part.text), False))
    return [*found, *_read_run(run)]


def all_values(text: str, is_english: bool = True) -> frozenset[str]:
    """Return every value that a text may be said to name, those of the parts of a number among them."""
    parts = [_number_text(part.value) for part in _number_parts(text, is_english) if part.value is not None]
    values = [number.values for number in find_numbers(text, is_english)]
    for match in _NUMBERS.part_of_hour.finditer(fold(text)):  # "half past four", "quarter to five"
        value = _word_values().get(match[2]) if not match[2].isdecimal() else float(match[2])
        if value is not None and value <= 2 * _HOURS:
            is_past = "past" in match[0]
            minutes = 30 if match[1] == "half" else 15 if is_past else 45
            values.append(_clock_values(f"{int(value) - (0 if is_past else 1)}:{minutes}"))
    return frozenset(parts).union(*values)


def _number_parts(text: str, is_english: bool) -> Iterator[_Part]:
    words = _word_values()
    for match in _NUMBERS.part.finditer(text):
        word = fold(match[0])
        if word.isdecimal():
            value: float | None = float(word[:15])
        elif _NUMBERS.han.fullmatch(word):  # Chinese characters, up to the thousands
            value = digit = 0.0
            for sign in map(words.__getitem__, word):
                value, digit = (value + max(digit, 1.0) * sign, 0.0) if sign >= 10 else (value, sign)
            value += digit
        else:
            value = None if is_english and word in _NUMBERS.words["not_english"] else words.get(word)
        yield _Part(word, match.start(), match.end(), value)


def _goes_on(text: str, run: list[_Part], part: _Part) -> bool:
    """Whether a part belongs to the number before it: "eighteen hundred and fifty", "thirty-five", "40k"."""
    between = text[run[-1].end : part.start]
    if between.strip(" -") or len(between) > 1:
        return False
    before = next(known.value or 0.0 for known in reversed(run) if known.value is not None)
    if part.text in _AND or part.value is None:
        return part.text in _AND and before in _MULTIPLIERS
    if part.value in _MULTIPLIERS:
        return before > 0
    # Units are added to tens, anything less to hundreds.
    is_completed = (before in range(20, 100, 10) and 0 < part.value < 10) or (
        before in _MULTIPLIERS and part.value < before
    )
    return not part.text.isdecimal() and is_completed


def _read_run(run: Iterable[_Part]) -> list[Number]:
    parts = [(part, part.value) for part in run if part.value is not None]
    if not parts:
        return []
    total = current = 0.0
    for part, value in parts:
        if value < 100 or part.text.isdecimal():
            current += value
        elif value == 100:
            current = max(current, 1.0) * value
        else:
            total, current = total + max(current, 1.0) * value, 0.0
    first = parts[0][0].text
    # A character that counts is also a part of other words.
    is_loose = len(parts) == 1 and (first in _loose_words() or bool(_NUMBERS.han.match(first)))
    is_plain = len(parts) == 1 and first.isdecimal()
    text = (first.lstrip("0") or "0") if is_plain else _number_text(total + current)
    return [Number(parts[0][0].start, parts[-1][0].end, frozenset([text]), is_loose)]


def _digit_values(digits: str) -> frozenset[str]:
    """What digits with signs between them may mean."""
    if _NUMBERS.clock.fullmatch(digits):
        return _clock_values(digits)
    values = {digits}
    if _NUMBERS.thousands.fullmatch(digits):
        values.add(digits.replace(",", "").replace(".", ""))
    if digits.count(",") + digits.count(".") == 1 and digits.replace(",", "").replace(".", "").isdecimal():
        values.add(_number_text(float(digits.replace(",", "."))))
    return frozenset(values)


def _clock_values(time: str) -> frozenset[str]:
    """A time of day by either half of the day, and as an hour where it has no minutes."""
    hour, _, minute = time.partition(":")
    hours = {int(hour), (int(hour) + _HOURS) % (2 * _HOURS), int(hour) % _HOURS or _HOURS}
    return frozenset([f"{one}:{minute}" for one in hours] + [str(one) for one in hours if minute == "00"])


def _number_text(value: float) -> str:
    return f"{value:.10g}" if value < 1e10 else str(int(value))


@cache
def _loose_words() -> frozenset[str]:
    return frozenset(map(fold, _NUMBERS.words["loose"]))


@cache
def _word_values() -> Mapping[str, float]:
    rows = _NUMBERS.content["values"].items()
    return {fold(word): float(value) for value, words in rows for word in words.split()}


@word_cache(_CACHED_TEXTS)
def _find_date_spans(claim: str) -> tuple[Span, ...]:
    """Where dates stand in a claim."""
    now = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
    found = find_date_ranges(claim, now, (now, now + _YEAR_SECONDS))
    return tuple(dict.fromkeys(one.span for one in found))


def _is_dated(claim: str, span: Span, given: Sequence["Source"], forms: Collection[str]) -> bool:
    """Whether a date of a claim is that of a source, follows from it and from when it was said, or stands in the
    sources part by part. `forms` has their words and numbers."""
    times = [source.time for source in given if source.time]
    for source in given:
        if source.time:
            day = int(source.time.timestamp() // DAY_SECONDS)
            known = _said_ranges(source.text, day)
            for start, end in _claimed_ranges(claim, day).get(span, ()):
                longest = max(end - start, _SLACK_SECONDS)
                if any(start < last and first < end and last - first <= longest for first, last in known):
                    return True
    return all(_is_date_part_said(part, times, forms) for part in _DATE_PART.findall(fold(claim[slice(*span)])))


@word_cache(_CACHED_TEXTS)
def _claimed_ranges(claim: str, day: int) -> dict[Span, list[Range]]:
    now = day * DAY_SECONDS
    ranges: dict[Span, list[Range]] = {}
    for start, end, span in find_date_ranges(claim, now, (now - _YEAR_SECONDS, now + _YEAR_SECONDS)):
        ranges.setdefault(span, []).append((start, end))
    return ranges


@word_cache(_CACHED_TEXTS)
def _said_ranges(text: str, day: int) -> tuple[Range, ...]:
    """The times that a text speaks of, its own day among them; a weekday is the last one or the next."""
    now = day * DAY_SECONDS
    found = find_date_ranges(text, now, (now - _YEAR_SECONDS, now + _YEAR_SECONDS))
    ranges = [(now, now + DAY_SECONDS), *((start, end) for start, end, _ in found)]
    folded, today = fold(text), datetime.fromtimestamp(now, UTC)
    for word in set(_DATE_PART.findall(folded)):
        weekday = WEEKDAYS.get(word, WEEKDAYS.get(word.removesuffix("s")))
        if weekday is not None:
            first = now + (weekday - today.weekday()) * DAY_SECONDS
            ranges += [(first + days * DAY_SECONDS, first + (days + 1) * DAY_SECONDS) for days in (-7, 0, 7)]
    for match in _PERIOD.finditer(folded):
        count = int(match[1]) if match[1].isdecimal() else NUMBER_VALUES[match[1]]
        seconds = count * _UNIT_DAYS[TIME_UNITS[match[2]]] * DAY_SECONDS
        slack = 0.0 if TIME_UNITS[match[2]] == "day" else max(_COUNT_SLACK * seconds, 3 * DAY_SECONDS)
        ranges += [(moment - slack, moment + slack + DAY_SECONDS) for moment in (now - seconds, now + seconds)]
    return tuple(ranges)


def _is_date_part_said(part: str, times: Sequence[datetime], forms: Collection[str]) -> bool:
    """Whether a part of a date stands in the texts; its year and month may be near those of the day they were said."""
    if part in forms or stem(part) in forms or part.lstrip("0") in forms:
        return True
    if part.isdecimal():
        is_near = any(abs(int(part) - time.year) <= _MAX_YEARS_APART for time in times)
        return len(part) == 4 and (part[2:] in forms or is_near)
    if part in MONTHS:
        is_near = any((MONTHS[part] - time.month) % 12 in (0, 1, 11) for time in times)
        return is_near or any(MONTHS.get(form) == MONTHS[part] for form in forms)
    return part in WEEKDAYS or part not in _COUNTED


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
    dates: tuple[Span, ...]
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
    speakers = _name_words(tuple(name for source in given for name in (*source.names, *source.others)))
    years = {str(source.time.year + step) for source in given if source.time for step in (-1, 0, 1)}
    telling = {item for item, wanted in own.strict.items() if wanted.isdisjoint(speakers | years)}
    # Who speaks counts only where they say something of the claim: otherwise one who said something else would be
    # named for it.
    speaking = [source for source in given if _tells(own, telling, source)] or given
    forms = frozenset[str]().union(
        *(read_forms(source.text) for source in given), *(_named_in(source, own.spoken) for source in speaking)
    )
    strict = {item for item, wanted in own.strict.items() if not wanted.isdisjoint(forms | years)}
    dates = {claim[slice(*span)] for span in own.dates}
    dated = {claim[slice(*span)] for span in own.dates if _is_dated(claim, span, given, forms)}
    content, size = own.content & roots, len(own.content) + len(telling)
    share = (len(content) + len(strict & telling)) / size if size else 1.0
    missing = (own.strict.keys() - strict) | (dates - dated)
    return Finding(frozenset(missing), frozenset((strict & telling) | content), share, size)


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


def count_common(claim: str, source: Source) -> int:
    """Return how many names, numbers and content words of a claim a source has, roughly and quickly."""
    source = _cut(source)
    own = read_claim(claim, find_language(claim, [source]))
    forms = read_forms(source.text) | _named_in(source, own.spoken)
    strict = sum(not wanted.isdisjoint(forms) for wanted in own.strict.values())
    return strict + len(own.content & read_roots(source.text, own.spoken))


def _cut(source: Source) -> Source:
    return source._replace(text=source.text[:_MAX_SOURCE_CHARACTERS])


def find_language(claim: str, given: Sequence[Source]) -> int:
    """The language of a claim, which is that of its sources; alone, it is too short to tell."""
    texts = (source.text[:_MAX_CHARACTERS] for source in given[:_JUDGED_SOURCES])
    return detect_language(" ".join([claim, *texts]))


@word_cache(_CACHED_TEXTS)
def read_claim(claim: str, spoken: int) -> Claim:
    dates = _find_date_spans(claim)
    strict: dict[str, frozenset[str]] = {}
    spans, plain = list(dates), list[str]()
    for number in find_numbers(claim, spoken == ENGLISH):
        if not number.is_loose and not _is_within(number.start, dates):
            strict[claim[number.start : number.end]] = number.values
            spans.append((number.start, number.end))
    for word in _PATTERNS.token.finditer(claim):
        if not _is_within(word.start(), spans):
            if _is_name(word, spoken):
                strict[word[0]] = _word_forms([fold(_PATTERNS.possessive.sub("", word[0]))], spoken)
            else:
                plain.append(word[0])
    strict |= {match[0]: frozenset([match[0]]) for match in _PATTERNS.katakana.finditer(claim)}
    return Claim(spoken, strict, dates, _roots(" ".join(plain), spoken) - _report_roots())


def _is_within(place: int, spans: Sequence[Span]) -> bool:
    return any(start <= place < end for start, end in spans)


def _is_name(word: re.Match[str], spoken: int) -> bool:
    """Whether a word is written like a name or a code; the first of a sentence only if it does not merely begin it."""
    bare = _PATTERNS.possessive.sub("", word[0])
    folded = fold(bare)
    if any(map(str.isdecimal, bare)):
        return not _SPACELESS.search(bare)
    if not bare[:1].isupper() or folded in _PATTERNS.words["roles"] or is_stop_word(folded, spoken):
        return False
    if is_stop_word(folded.replace("’", "'").partition("'")[0], spoken):  # as in "It's"
        return False
    if bare != word[0] or (bare.isupper() and len(bare) > 1):
        return True
    text, start, end = word.string, word.start(), word.end()
    if not _PATTERNS.sentence_end.search(text, max(0, start - _LOOK_BACK_CHARACTERS), start):
        return spoken != _GERMAN
    is_opener = folded in _SENTENCE_OPENERS or folded.endswith("ing")
    return not is_opener and not _PATTERNS.no_name_follows.match(text[end : end + _LOOK_AHEAD_CHARACTERS])


@word_cache(_CACHED_TEXTS)
def _name_words(names: tuple[str, ...]) -> frozenset[str]:
    words = (match[0] for name in names for match in _PATTERNS.token.finditer(name))
    return frozenset(fold(_PATTERNS.possessive.sub("", word)) for word in words)


@word_cache(_CACHED_TEXTS)
def read_forms(text: str) -> frozenset[str]:
    """The forms of all words and numbers of a text."""
    spoken = detect_language(text)
    words = [fold(_PATTERNS.possessive.sub("", match[0])) for match in _PATTERNS.token.finditer(text)]
    parts = [part for word in words if not word.isalnum() for part in re.split(r"[^\w]", word)]
    runs = (match[0] for match in _PATTERNS.katakana.finditer(text))
    return _word_forms((*words, *parts), spoken) | all_values(text, spoken == ENGLISH) | frozenset(runs)


def _word_forms(words: Iterable[str], spoken: int) -> frozenset[str]:
    """Words, their stems, and what the cases of a name have in common in languages that have them."""
    forms = set[str]()
    for word in words:
        forms |= {word, stem(word, spoken)}
        if spoken != ENGLISH and len(word) >= 4:
            forms |= {f"~{word}", f"~{word[:-1]}", *([f"~{word[:-2]}"] if len(word) > 5 else [])}
    return frozenset(forms)


@word_cache(_CACHED_TEXTS)
def read_roots(text: str, spoken: int) -> frozenset[str]:
    return _roots(text, spoken) | _roots(text, detect_language(text))


def _roots(text: str, spoken: int) -> frozenset[str]:
    """The roots of content words; in scripts without spaces pairs of characters."""
    found = [term for term in content_words(text, spoken) if not term.isdecimal()]
    return frozenset(term[:_ROOT_CHARACTERS] for term in list(filter(_is_telling, found)) or found)


@cache
def _report_roots() -> frozenset[str]:
    return frozenset(stem(fold(word))[:_ROOT_CHARACTERS] for word in _PATTERNS.words["report"])
