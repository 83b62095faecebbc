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

_PUNCTUATION: Final = ".,;:!?"
_OPENING: Final = "\"'([*_“„«"
_CLOSING: Final = "\"')]*_”»"
_SENTENCE_ENDS: Final = (*".!?:…", "")
_MIN_NAMES: Final = 5
"""Fewer names and numbers than this say little about a text."""
_ROOT_CHARACTERS: Final = 5
"""What the members of one family of words have in common; stems alone part compounds from what they are made of."""
_SPACELESS: Final = re.compile(rf"[{SPACELESS}]")


def content_words(text: str, spoken: int | None = None) -> frozenset[str]:
    """Return the words of a text that say something, as stems of its own language or of the one given; in scripts
    without spaces its characters and their pairs."""
    tongue = detect_language(text) if spoken is None else spoken
    chunks = [chunk for chunk in text.split() if not is_stop_word(fold(chunk.strip(_PUNCTUATION)), tongue)]
    return frozenset(term for chunk in chunks for term in terms(chunk, tongue))


def covered_share(text: str, sources: Sequence[str]) -> float:
    """Return how much of a text's content the sources have together; all of it if it has none."""
    wanted = _without_common_parts(content_words(text))
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
    """Return what no other word can stand for."""
    spoken = detect_language(text)
    chunks = [chunk for before, chunk in pairwise(["", *text.split()]) if _is_name_or_number(before, chunk)]
    return frozenset(term for chunk in chunks for term in terms(chunk, spoken))


def language_or_script(text: str) -> int:
    """Return the number of a text's language; -1 for scripts without spaces."""
    letters = sum(map(str.isalpha, text))
    return -1 if 2 * len(_SPACELESS.findall(text)) > letters else detect_language(text)


def _is_name_or_number(before: str, chunk: str) -> bool:
    """Whether it holds a digit, or a capital letter that no sentence begins with."""
    if any(map(str.isdecimal, chunk)):
        return True
    return chunk.lstrip(_OPENING)[:1].isupper() and before.rstrip(_CLOSING)[-1:] not in _SENTENCE_ENDS


def _without_common_parts(terms: frozenset[str]) -> frozenset[str]:
    """Without numbers, which dates and sums are put into anew, and single characters of scripts without spaces, which
    any two texts share; all of them if nothing else is there."""
    return (
        frozenset(term for term in terms if not term.isdecimal() and (len(term) > 1 or not _SPACELESS.match(term)))
        or terms
    )


def _all_content(texts: Iterable[str], spoken: int) -> frozenset[str]:
    """The content words of all texts, each in its own language and in the one given."""
    spoken_in = ((text, tongue) for text in texts for tongue in {detect_language(text), spoken})
    return frozenset[str]().union(*(content_words(text, tongue) for text, tongue in spoken_in))


_NUMBERS: Final = PatternFile("numbers")
_HOURS: Final = 12
_AND: Final = frozenset({"and", "und", "et", "y", "e", "en"})
_MULTIPLIERS: Final = frozenset({100.0, 1000.0, 1_000_000.0})


class Number(NamedTuple):
    """A number and where it stands."""

    start: int
    end: int
    values: frozenset[str]
    """The forms that say the same: 1,200 may be 1200 or 1.2."""
    is_loose: bool
    """Whether it is a word that may be used without counting, as "one" and "second"."""


class _Part(NamedTuple):
    text: str
    start: int
    end: int
    value: float | None


def find_numbers(text: str, is_english: bool = True) -> list[Number]:
    """Return the numbers of a text; words that belong together are one."""
    found, run = list[Number](), list[_Part]()
    for part in _parts(text, is_english):
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
    parts = [_number_text(part.value) for part in _parts(text, is_english) if part.value is not None]
    whole = (number.values for number in find_numbers(text, is_english))
    return frozenset(parts).union(*whole, *map(_clock_values, _clock_times(text)))


def _parts(text: str, is_english: bool) -> Iterator[_Part]:
    words = _word_values()
    for match in _NUMBERS.part.finditer(text):
        word = fold(match[0])
        if word.isdecimal():
            value: float | None = float(word[:15])
        elif _NUMBERS.han.fullmatch(word):
            value = _read_han(word)
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
    return not part.text.isdecimal() and _completes(before, part.value)


def _completes(before: float, value: float) -> bool:
    """Whether a number word is added to the one before it: units to tens, anything less to hundreds."""
    return (before in range(20, 100, 10) and 0 < value < 10) or (before in _MULTIPLIERS and value < before)


def _read_run(run: Iterable[_Part]) -> list[Number]:
    parts = [part for part in run if part.value is not None]
    if not parts:
        return []
    first = parts[0].text
    # A character that counts is also a part of other words.
    is_loose = len(parts) == 1 and (first in _loose_words() or bool(_NUMBERS.han.match(first)))
    is_plain = len(parts) == 1 and first.isdecimal()
    value = (first.lstrip("0") or "0") if is_plain else _number_text(_add_up(parts))
    return [Number(parts[0].start, parts[-1].end, frozenset([value]), is_loose)]


def _add_up(parts: Iterable[_Part]) -> float:
    total = current = 0.0
    for part in parts:
        value = part.value or 0.0
        if value < 100 or part.text.isdecimal():
            current += value
        elif value == 100:
            current = max(current, 1.0) * value
        else:
            total, current = total + max(current, 1.0) * value, 0.0
    return total + current


def _digit_values(digits: str) -> frozenset[str]:
    """What digits with signs between them may mean."""
    if _NUMBERS.clock.fullmatch(digits):
        return _clock_values(digits)
    values = {digits}
    if _NUMBERS.thousands.fullmatch(digits):
        values.add(digits.replace(",", "").replace(".", ""))
    if digits.count(",") + digits.count(".") == 1 and ":" not in digits:
        values.add(_number_text(float(digits.replace(",", "."))))
    return frozenset(values)


def _clock_values(time: str) -> frozenset[str]:
    """A time of day by either half of the day, and as an hour where it has no minutes."""
    hour, _, minute = time.partition(":")
    hours = {int(hour), (int(hour) + _HOURS) % (2 * _HOURS), int(hour) % _HOURS or _HOURS}
    return frozenset([f"{one}:{minute}" for one in hours] + [str(one) for one in hours if minute == "00"])


def _clock_times(text: str) -> Iterator[str]:
    """Times told as "half past four" and "quarter to five"."""
    for match in _NUMBERS.part_of_hour.finditer(fold(text)):
        value = _word_values().get(match[2]) if not match[2].isdecimal() else float(match[2])
        if value is not None and value <= 2 * _HOURS:
            is_past = "past" in match[0]
            minutes = 30 if match[1] == "half" else 15 if is_past else 45
            yield f"{int(value) - (0 if is_past else 1)}:{minutes}"


def _read_han(word: str) -> float:
    """A number in Chinese characters, up to the thousands."""
    total, digit = 0.0, 0.0
    for sign in word:
        value = _word_values()[sign]
        if value >= 10:
            total, digit = total + max(digit, 1.0) * value, 0.0
        else:
            digit = value
    return total + digit


def _number_text(value: float) -> str:
    return f"{value:.10g}" if value < 1e10 else str(int(value))


@cache
def _loose_words() -> frozenset[str]:
    return frozenset(map(fold, _NUMBERS.words["loose"]))


@cache
def _word_values() -> Mapping[str, float]:
    rows = _NUMBERS.content["values"].items()
    return {fold(word): float(value) for value, words in rows for word in words.split()}


_YEAR_SECONDS: Final = 366 * DAY_SECONDS
_SLACK_SECONDS: Final = 10 * DAY_SECONDS
"""A day may be named for a time of so many days ("next week"); of a longer one, only a part as long."""
_UNIT_DAYS: Final = {"day": 1.0, "week": 7.0, "weekend": 7.0, "month": 30.44, "quarter": 91.3, "year": 365.25}
_COUNT_SLACK: Final = 0.25
"""By how much of itself a count of weeks, months or years may be off."""
_MAX_YEARS_APART: Final = 1
_CACHED_TEXTS: Final = 512
_COUNTED: Final = TIME_UNITS.keys() | NUMBER_VALUES.keys()
_PARTS: Final = re.compile(r"\d+|[^\W\d_]+")
_PERIOD: Final = re.compile(
    rf"\b(\d{{1,3}}|{'|'.join(NUMBER_VALUES)}) ({'|'.join(sorted(TIME_UNITS, key=len, reverse=True))})s?\b"
)
"""A count of days, weeks, months or years."""

Span = tuple[int, int]
Range = tuple[float, float]
Said = tuple[str, datetime | None]
"""A text and when it was said."""


@word_cache(_CACHED_TEXTS)
def find_date_spans(claim: str) -> tuple[Span, ...]:
    """Return where dates stand in a claim."""
    now = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
    found = find_date_ranges(claim, now, (now, now + _YEAR_SECONDS))
    return tuple(dict.fromkeys(one.span for one in found))


def is_dated(claim: str, span: Span, said: Sequence[Said], forms: Collection[str]) -> bool:
    """Return whether a date of a claim is that of a text, follows from one, or stands in them part by part.

    `forms` has the words and numbers of the texts.
    """
    times = [time for _, time in said if time]
    if any(time and _follows(claim, span, text, time) for text, time in said):
        return True
    return all(_is_said(part, times, forms) for part in _PARTS.findall(fold(claim[slice(*span)])))


def _follows(claim: str, span: Span, text: str, time: datetime) -> bool:
    day = int(time.timestamp() // DAY_SECONDS)
    wanted, known = _claimed_ranges(claim, day).get(span, ()), _said_ranges(text, day)
    return any(_fits(one, other) for one in wanted for other in known)


def _fits(claimed: Range, said: Range) -> bool:
    is_common = claimed[0] < said[1] and said[0] < claimed[1]
    return is_common and said[1] - said[0] <= max(claimed[1] - claimed[0], _SLACK_SECONDS)


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
    return ((now, now + DAY_SECONDS), *((start, end) for start, end, _ in found), *_other_ranges(fold(text), now))


def _other_ranges(text: str, now: float) -> Iterator[Range]:
    today = datetime.fromtimestamp(now, UTC)
    for word in set(_PARTS.findall(text)):
        weekday = WEEKDAYS.get(word, WEEKDAYS.get(word.removesuffix("s")))
        if weekday is not None:
            first = now + (weekday - today.weekday()) * DAY_SECONDS
            yield from ((first + 7 * week * DAY_SECONDS, first + (7 * week + 1) * DAY_SECONDS) for week in (-1, 0, 1))
    for match in _PERIOD.finditer(text):
        count = int(match[1]) if match[1].isdecimal() else NUMBER_VALUES[match[1]]
        seconds = count * _UNIT_DAYS[TIME_UNITS[match[2]]] * DAY_SECONDS
        slack = 0.0 if TIME_UNITS[match[2]] == "day" else max(_COUNT_SLACK * seconds, 3 * DAY_SECONDS)
        for moment in (now - seconds, now + seconds):
            yield moment - slack, moment + slack + DAY_SECONDS


def _is_said(part: str, times: Sequence[datetime], forms: Collection[str]) -> bool:
    """Whether a part of a date stands in the texts; its year and month may be those of the day they were said."""
    if part in forms or stem(part) in forms or part.lstrip("0") in forms:
        return True
    if part.isdecimal():
        return len(part) == 4 and _is_near_year(part, times, forms)
    if part in MONTHS:
        return _is_near_month(MONTHS[part], times) or any(MONTHS.get(form) == MONTHS[part] for form in forms)
    return part in WEEKDAYS or part not in _COUNTED


def _is_near_year(year: str, times: Sequence[datetime], forms: Collection[str]) -> bool:
    return year[2:] in forms or any(abs(int(year) - time.year) <= _MAX_YEARS_APART for time in times)


def _is_near_month(month: int, times: Sequence[datetime]) -> bool:
    """Whether it is the month in which something was said, the one before or the one after."""
    return any((month - time.month) % 12 in (0, 1, 11) for time in times)


_MIN_SHARE: Final = 0.5
"""Share of what a claim says that the sources must have."""
_LIKENESS_BY_SHARE: Final = ((0.2, 0.35), (0.0, 0.45))
"""Less is enough where vectors bear it out too: from a share on, how close they must be. The cosine of facts and the
turns that they were made from is above 0.37 for 95 %, of facts and other turns for less than 2 %."""
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
"""More than the turns of a chunk and those before it."""
_GERMAN: Final = LANGUAGES.index("german")
"""Where every noun has a capital, so that a capital makes no name."""
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
