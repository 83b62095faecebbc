"""Whether a date in a claim follows from what was said, and from when it was said."""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from eunoe.text.analyzer import stem, word_cache
from eunoe.text.dates import DAY_SECONDS, MONTHS, NUMBER_VALUES, TIME_UNITS, WEEKDAYS, find_date_ranges
from eunoe.text.normalize import fold

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
