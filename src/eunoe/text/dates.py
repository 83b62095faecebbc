"""Dates in a text, found by rules: each rule is a pattern and a function that reads what it matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from eunoe.text.normalize import load_table, load_words


def _load_numbers(name: str) -> dict[str, int]:
    return {word: int(value) for word, value in load_table(name).items()}


MONTHS: Final = _load_numbers("months")
_UNAMBIGUOUS_MONTHS: Final = load_words("unambiguous_months")
"""The others are months only beside a number or after one of _MONTH_PREPOSITIONS."""
_MONTH_PREPOSITIONS: Final = load_words("month_prepositions")
WEEKDAYS: Final = _load_numbers("weekdays")
SEASONS: Final = _load_numbers("seasons")
"""The first of a season's three months, in the northern year."""
HOLIDAYS: Final = {name: tuple(map(int, value.split())) for name, value in load_table("holidays").items()}
"""Month, first day and number of days."""
DAY_OFFSETS: Final = _load_numbers("day_offsets")
"""Days from today."""
NUMBER_VALUES: Final = _load_numbers("number_values")
TIME_UNITS: Final = load_table("time_units")
NUMBER_WORDS: Final = load_words("number_words")
TIME_WORDS: Final = load_words("time_words") | (
    (MONTHS.keys() | WEEKDAYS.keys() | SEASONS.keys() | TIME_UNITS.keys()) - {"may", "march", "mar", "fall", "estate"}
)

DAY_SECONDS: Final = 86_400.0
_MAX_CHARACTERS: Final = 2000
_MAX_YEARS: Final = 30
"""A date without its year stands for as many dates at most."""
_FIRST_MOMENT: Final = -62_135_596_800.0
"""The first that a datetime can hold."""

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR_OF_AGE: Final = 365 * _DAY
_UNITS: Final = (
    (_HOUR, _MINUTE, "minute"),
    (_DAY, _HOUR, "hour"),
    (7 * _DAY, _DAY, "day"),
    (28 * _DAY, 7 * _DAY, "week"),
    (_YEAR_OF_AGE, 30.4375 * _DAY, "month"),
    (float("inf"), _YEAR_OF_AGE, "year"),
)
"""Ages below so many seconds are given in the unit of so many seconds."""
_CLOCK_SKEW_SECONDS: Final = 5 * _MINUTE
"""A clock that runs a little behind does not make a memory a plan."""


class DateRange(NamedTuple):
    """A half-open range of time in epoch seconds, and the span of the text it was read from."""

    start: float
    end: float
    span: tuple[int, int]


def find_date_ranges(
    text: str, now: float, span: tuple[float, float] | None = None, zone: tzinfo = UTC
) -> tuple[DateRange, ...]:
    """Return the ranges that a text names.

    A date without its year ("in May") stands for each such date within `span`, by default the year before `now`.
    """
    lowered = text[:_MAX_CHARACTERS].lower().replace("’", "'")
    if not _DIGIT.search(lowered) and _DATE_WORDS.isdisjoint(_WORD.findall(lowered)):
        return ()
    clock = _Clock(now, span or (now - 366 * DAY_SECONDS, now), zone)
    ranges = [
        DateRange(max(start, _FIRST_MOMENT), end, match.span())
        for match in _date_pattern().finditer(lowered)
        for start, end in _readers[str(match.lastgroup)](match, clock)
        if end > start
    ]
    return tuple(_combine(text.lower(), ranges))


class _Clock:
    """Now, and the years that a date without a year may fall in."""

    def __init__(self, now: float, span: tuple[float, float], zone: tzinfo) -> None:
        self.zone = zone
        self.now, first, last = (
            datetime.fromtimestamp(min(max(stamp, -60_000_000_000.0), 250_000_000_000.0), zone)
            for stamp in (now, *span)
        )
        self._years = range(max(first.year, last.year - _MAX_YEARS), max(first.year, last.year) + 1)

    def years(self, phrase: str) -> Iterable[int]:
        """Return the year that a phrase names, or all that it may mean."""
        year = re.search(_YEAR + r"\b", phrase)
        return [int(year[0])] if year else self._years

    def day(self, moment: datetime, days: float = 1) -> _Span:
        start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        return start.timestamp(), (start + timedelta(days=days)).timestamp()

    def date(self, year: int, month: int, day: int, days: float = 1) -> _Spans:
        """Yield nothing for a date that does not exist."""
        try:
            yield self.day(datetime(year, month, day, tzinfo=self.zone), days)
        except (ValueError, OverflowError):
            return

    def months(self, year: int, month: int, count: int = 1) -> _Span:
        first = year * 12 + month - 1
        places = [(min(max(place // 12, 1), 9998), place % 12 + 1) for place in (first, first + count)]
        start, end = (datetime(*place, 1, tzinfo=self.zone).timestamp() for place in places)
        return start, end

    def latest(self, spans: Iterable[_Span]) -> list[_Span]:
        """Return the last of the spans that has begun."""
        return sorted(span for span in spans if span[0] < self.now.timestamp())[-1:]

    def before(self, count: int, unit: str) -> datetime:
        days = {"day": 1.0, "week": 7.0, "weekend": 7.0, "month": 30.44, "quarter": 91.3, "year": 365.25}[unit]
        return max(self.now, datetime(1000, 1, 1, tzinfo=self.zone)) - timedelta(days=days * min(count, 900))


_Span: TypeAlias = tuple[float, float]
_Spans: TypeAlias = Iterator[_Span]
_Reader: TypeAlias = Callable[[re.Match[str], _Clock], _Spans]


def _either(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_ORDINALS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_FOREIGN_NUMBERS: Final = {"zwei": 2, "deux": 2, "dos": 2, "drei": 3, "trois": 3, "tres": 3}
_MONTH: Final = _either(MONTHS)
_WEEKDAY: Final = _either(WEEKDAYS)
_UNIT: Final = _either(TIME_UNITS)
_ORDINAL: Final = _either(_ORDINALS)
_COUNT: Final = r"\d{1,3}|" + _either(NUMBER_VALUES)
_YEAR: Final = r"(?:19|20)\d\d"
_PART: Final = r"early|mid|late|beginning|start|end"
_MONTH_DAY: Final = r"3[01]|[12]\d|0?[1-9]"
_LAST: Final = (
    "last|past|previous|letzte[nrsm]?|vergangene[nrsm]?|vorige[nrsm]?|afgelopen|vorige|dernier|dernière|pasad[oa]|"
    "scors[oa]|passad[oa]"
)
_SEASON_PREPOSITIONS: Final = ("in ", "over ", "during ", "by ", "since ", "until ", "the ", "im ", "en ")

_DIGIT: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"[^\W\d_]+")
_DATE_WORDS: Final = frozenset(
    max(_WORD.findall(name), key=len)
    for names in (MONTHS, SEASONS, HOLIDAYS, DAY_OFFSETS, WEEKDAYS, TIME_UNITS, (f"{unit}s" for unit in TIME_UNITS))
    for name in names
)
"""A text with neither a digit nor one of these words names no date."""

_patterns: Final[list[str]] = []
_readers: Final[dict[str, _Reader]] = {}


@cache
def _date_pattern() -> re.Pattern[str]:
    """All rules in one, the first that matches. Compiled when first needed: it takes longer than most recalls."""
    return re.compile(rf"(?<![\w/.-])(?:{'|'.join(_patterns)})")


def _rule(pattern: str) -> Callable[[_Reader], _Reader]:
    def register(reader: _Reader) -> _Reader:
        _patterns.append(f"(?P<{reader.__name__}>{pattern})")
        _readers[reader.__name__] = reader
        return reader

    return register


@_rule(rf"(?:{_YEAR})[-/.](?:0?[1-9]|1[0-2])[-/.](?:{_MONTH_DAY})(?![\d]|[./-]\d)")
def _iso_date(match: re.Match[str], clock: _Clock) -> _Spans:
    year, month, day = map(int, re.split(r"[-/.]", match[0]))
    yield from clock.date(year, month, day)


@_rule(rf"(?:\d\d?[./]\d\d?[./](?:{_YEAR}|\d\d))(?![\d]|[./-]\d)")
def _numeric_date(match: re.Match[str], clock: _Clock) -> _Spans:
    first, second, year = map(int, re.split(r"[./]", match[0]))
    year += 2000 if year < 100 else 0
    for day, month in {(first, second), (second, first)} if "/" in match[0] else {(first, second)}:
        yield from clock.date(year, month, day)


@_rule(rf"(?:{_ORDINAL}|last) (?:week|weekend) (?:of|in) (?:{_MONTH})\b(?:,? (?:{_YEAR})\b)?")
def _week_of_month(match: re.Match[str], clock: _Clock) -> _Spans:
    week = _ORDINALS.get(match[0].split()[0])
    for year in clock.years(match[0]):
        start, end = clock.months(year, MONTHS[_find_word(match[0], MONTHS)])
        begin = end - 7 * DAY_SECONDS if week is None else start + (week - 1) * 7 * DAY_SECONDS
        yield begin, min(begin + 7 * DAY_SECONDS, end)


@_rule(
    rf"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|er|º|\.)?(?: of| de| di)? ?(?:{_MONTH})\b"
    rf"(?:(?:,| of| de| del)? ?(?:{_YEAR})\b)?"
    rf"|(?:{_MONTH})\.? (?:the )?(?:{_MONTH_DAY})(?:st|nd|rd|th)?(?![\d:%])(?:,? (?:{_YEAR})\b)?"
)
def _day_of_month(match: re.Match[str], clock: _Clock) -> _Spans:
    days = re.findall(r"\d+", re.sub(_YEAR + r"\b", "", match[0]))
    months = re.findall(rf"(?:{_MONTH})\b", match[0])
    for year in clock.years(match[0]) if days else ():
        yield from clock.date(year, MONTHS[months[0]], int(days[0]))


@_rule(rf"(?:(?:{_PART})(?:(?: of| in)? |-))?(?:{_MONTH})\b(?:(?:,| of| de| del)? ?(?:{_YEAR})\b)?")
def _month(match: re.Match[str], clock: _Clock) -> _Spans:
    name = _find_word(match[0], MONTHS)
    part = re.match(rf"(?:{_PART})\b", match[0])
    before = match.string[: match.start()]
    if not part and not re.search(_YEAR, match[0]) and name not in _UNAMBIGUOUS_MONTHS:
        preposition = "".join(before.split()[-1:]).strip("(,")
        if preposition not in _MONTH_PREPOSITIONS:
            return
    months = (clock.months(year, MONTHS[name]) for year in clock.years(match[0]))
    spans = [_portion(*month, part[0] if part else "") for month in months]
    yield from clock.latest(spans) if re.search(rf"\b(?:{_LAST}) $", before) else spans


@_rule(
    rf"(?:(?:{_LAST}|this|next|in|over|during|by|since|until|im|en|en el|en la|in) )?(?:the )?"
    rf"(?:{_either(SEASONS)})\b(?:(?: of| de| von)? (?:{_YEAR})\b)?(?: (?:{_LAST})\b)?"
)
def _season(match: re.Match[str], clock: _Clock) -> _Spans:
    phrase = match[0]
    name = _find_word(phrase, SEASONS)
    if not re.search(rf"{_YEAR}|\b(?:{_LAST}|this|next)\b", phrase) and (
        name in {"fall", "estate", "lente"} or not phrase.startswith(_SEASON_PREPOSITIONS)
    ):
        return
    spans = [clock.months(year, SEASONS[name], 3) for year in clock.years(phrase)]
    if SEASONS[name] == 12:
        spans += [clock.months(year, 1, 2) for year in clock.years(phrase)]
    yield from clock.latest(spans) if re.search(rf"\b(?:{_LAST})\b", phrase) else spans


@_rule(rf"(?:q[1-4]|(?:{_ORDINAL}) quarter)\b(?:(?: of|,)? ?(?:{_YEAR})\b)?")
def _quarter(match: re.Match[str], clock: _Clock) -> _Spans:
    number = int(match[0][1]) if match[0][0] == "q" else _ORDINALS[_find_word(match[0], _ORDINALS)]
    for year in clock.years(match[0]) if number < 5 else ():
        yield clock.months(year, number * 3 - 2, 3)


@_rule(rf"(?:{_either(HOLIDAYS)})(?![\w'])(?: (?:{_YEAR})\b)?")
def _holiday(match: re.Match[str], clock: _Clock) -> _Spans:
    month, day, days = HOLIDAYS[re.sub(rf" (?:{_YEAR})$", "", match[0])]
    for year in clock.years(match[0]):
        yield from clock.date(year, month, day, days)


@_rule(rf"(?:{_either(DAY_OFFSETS)})\b")
def _day_from_today(match: re.Match[str], clock: _Clock) -> _Spans:
    yield clock.day(clock.now + timedelta(days=DAY_OFFSETS[match[0]]))


@_rule(
    rf"(?:about |around |almost )?(?:a )?(?:{_COUNT})(?: of)? (?:{_UNIT})s? (?:ago|earlier|back)\b"
    rf"|(?:vor|hace|il y a|há) (?:{_COUNT}|eine[mrn]?|zwei|drei|un|une|una|deux|dos|trois|tres) (?:{_UNIT})\b"
)
def _some_time_ago(match: re.Match[str], clock: _Clock) -> _Spans:
    count, unit = _count_and_unit(match[0])
    slack = {"day": 0.0, "week": 3.0, "weekend": 3.0, "month": 12.0, "quarter": 30.0, "year": 120.0}[unit]
    yield clock.day(clock.before(count, unit) - timedelta(days=slack), 1 + 2 * slack)


@_rule(rf"(?:the |these )?(?:last|past|previous) (?:{_COUNT})(?: of)? (?:{_UNIT})s?\b")
def _recent_time(match: re.Match[str], clock: _Clock) -> _Spans:
    yield clock.before(*_count_and_unit(match[0])).timestamp(), clock.now.timestamp() + DAY_SECONDS


@_rule(rf"(?:{_LAST}|this|next) (?:{_UNIT})\b|(?:{_UNIT}) (?:{_LAST})\b")
def _last_or_next_unit(match: re.Match[str], clock: _Clock) -> _Spans:
    words = match[0].split()
    unit = next(TIME_UNITS[word] for word in words if word in TIME_UNITS)
    step = {"this": 0, "next": 1}.get(words[0], -1)
    now = clock.now
    if unit == "day":
        yield clock.day(now + timedelta(days=step))
    elif unit in {"week", "weekend"}:
        monday = now + timedelta(days=7 * step - now.weekday())
        yield clock.day(monday, 7) if unit == "week" else clock.day(monday + timedelta(days=5), 2)
    elif unit == "year":
        yield clock.months(now.year + step, 1, 12)
    else:
        size = 3 if unit == "quarter" else 1
        yield clock.months(now.year, (now.month - 1) // size * size + 1 + step * size, size)


@_rule(rf"(?:(?:{_LAST}|this|next|on) )(?:{_WEEKDAY})\b|(?:{_WEEKDAY}) (?:{_LAST})\b")
def _weekday(match: re.Match[str], clock: _Clock) -> _Spans:
    words = match[0].split()
    weekday = next(WEEKDAYS[word] for word in words if word in WEEKDAYS)
    today = clock.now.weekday()
    days_back = (today - weekday) % 7
    days = {"next": 7 - days_back, "this": weekday - today}.get(words[0], -(days_back or 7))
    yield clock.day(clock.now + timedelta(days=days))


@_rule(
    r"(?:in|during|since|of|from|to|until|till|by|before|after|year|early|mid|late|and|en|em|nel)"
    rf" (?:{_YEAR})(?![\w-])|(?:{_YEAR})(?=\s*[?.!]?\s*$)"
)
def _year(match: re.Match[str], clock: _Clock) -> _Spans:
    words = match[0].split()
    yield _portion(*clock.months(int(words[-1]), 1, 12), words[0])


def _find_word(phrase: str, words: Iterable[str]) -> str:
    phrase_words: list[str] = _WORD.findall(phrase)
    return next(word for word in phrase_words if word in words)


def _portion(start: float, end: float, part: str) -> _Span:
    third = (end - start) / 3
    if part in {"early", "beginning", "start"}:
        return start, start + third
    if part == "mid":
        return start + third, end - third
    return (end - third, end) if part in {"late", "end"} else (start, end)


def _count_and_unit(phrase: str) -> tuple[int, str]:
    words = re.findall(r"[^\W_]+", phrase)
    unit = next(
        TIME_UNITS.get(word) or TIME_UNITS[word[:-1]] for word in words if {word, word[:-1]} & TIME_UNITS.keys()
    )
    numbers = NUMBER_VALUES | _FOREIGN_NUMBERS
    return max(int(word) if word.isdecimal() else numbers.get(word, 0) for word in words) or 1, unit


_BETWEEN: Final = re.compile(r"\s*(?:and|to|until|till|-|–|und|bis|et|au|y|e|a|al|en|tot)\s*")
_BESIDE: Final = re.compile(r"(?:the )?(day|week|weekend|month)s? (before|after|of) (?:the )?$")


def _combine(text: str, ranges: list[DateRange]) -> Iterator[DateRange]:
    """Yield the ranges, with "between A and B" made one and "the week before A" moved."""
    joined: set[tuple[int, int]] = set()
    for left, right in pairwise(dict.fromkeys(item.span for item in ranges)):
        before = text[: left[0]].split()[-1:]
        if before in (["between"], ["from"], ["zwischen"], ["entre"]) and _BETWEEN.fullmatch(text[left[1] : right[0]]):
            joined |= {left, right}
            yield from _join(*([item for item in ranges if item.span == side] for side in (left, right)))
    for item in ranges:
        if item.span not in joined:
            yield _move(item, text[: item.span[0]])


def _join(left: list[DateRange], right: list[DateRange]) -> Iterator[DateRange]:
    """Yield a range from the last start before each end to that end."""
    first_by_end: dict[float, DateRange] = {}
    for first in left:
        ends = [last.end for last in right if last.end > first.start]
        if ends:
            first_by_end[min(ends)] = first
    for end, first in first_by_end.items():
        yield DateRange(first.start, end, (first.span[0], right[0].span[1]))


def _move(item: DateRange, before: str) -> DateRange:
    beside = _BESIDE.search(before)
    if not beside or item.end - item.start > 32 * DAY_SECONDS or beside[2] == "of":
        return item
    size = {"day": 1, "week": 7, "weekend": 7, "month": 31}[beside[1]] * DAY_SECONDS
    span = (beside.start(), item.span[1])
    if beside[2] == "before":
        return DateRange(item.start - size, item.start, span)
    return DateRange(item.end, item.end + size, span)


def describe_age(then: datetime, now: datetime) -> str:
    """Say how long before `now` it was, or how long it is still to go.

    >>> from datetime import timedelta
    >>> today = datetime(2024, 5, 7)
    >>> describe_age(today - timedelta(days=3), today), describe_age(today + timedelta(days=15), today)
    ('3 days ago', 'in 2 weeks')
    """
    seconds = (now - then).total_seconds()
    if -_CLOCK_SKEW_SECONDS < seconds < _MINUTE:
        return "just now"
    unit, name = next((unit, name) for below, unit, name in _UNITS if abs(seconds) < below)
    count = max(1, int(abs(seconds) // unit))
    age = f"{count} {name}" if count == 1 else f"{count} {name}s"
    return f"{age} ago" if seconds > 0 else f"in {age}"


def date_and_age(then: datetime, now: datetime) -> str:
    """Return the day itself and how long ago it was.

    >>> date_and_age(datetime(2024, 5, 4), datetime(2024, 5, 7))
    '2024-05-04, 3 days ago'
    """
    return f"{then.date().isoformat()}, {describe_age(then, now)}"


def is_day_over(plan: str, said: str, now: datetime) -> bool:
    """Return whether a plan names a day that was to come when it was said, on the ISO date given, and is over.

    >>> is_day_over("I'm flying on 12 May.", "2024-05-07", datetime(2024, 6, 1, tzinfo=UTC))
    True
    """
    try:
        start = datetime.fromisoformat(said).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return False
    ranges = find_date_ranges(plan, start, (start, start + 366 * DAY_SECONDS))
    ends = list[float]()
    for first, last, _ in ranges:  # a weekday in a plan is the next one, not the last
        is_past_day = start - 7 * DAY_SECONDS <= first < start and last - first <= DAY_SECONDS
        ends.append(last + 7 * DAY_SECONDS if is_past_day else last)
    ends = [end for end in ends if end > start]
    return bool(ends) and min(ends) <= now.timestamp()
