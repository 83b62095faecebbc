"""Dates in questions, by rule: text and a moment in, time ranges out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import pairwise
from typing import Final, TypeAlias

from eunoe.text.calendar import (
    DAYS_OFF,
    HOLIDAYS,
    LAST,
    MONTH_LEADS,
    MONTHS,
    NUMBERS,
    ORDINALS,
    SEASONS,
    SURE_MONTHS,
    UNITS,
    WEEKDAYS,
)

DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Range:
    """A half-open stretch of time in epoch seconds, and the words of the text it was read from."""

    start: float
    end: float
    words: tuple[int, int]


def parse(text: str, now: float, span: tuple[float, float] | None = None, zone: tzinfo = UTC) -> tuple[Range, ...]:
    """The ranges that `text` names.

    A date without its year ("in May") stands for each such date within `span`, by default the year before `now`.
    """
    lowered = text[:2000].lower().replace("’", "'")
    if not _DIGIT.search(lowered) and _HINTS.isdisjoint(_WORD.findall(lowered)):
        return ()
    clock = _Clock(now, span or (now - 366 * DAY, now), zone)
    found: list[Range] = []
    for match in _rules().finditer(lowered):
        rule = str(match.lastgroup)
        found += (
            Range(max(start, _FLOOR), end, match.span()) for start, end in _READERS[rule](match, clock) if end > start
        )
    return tuple(_joined(text.lower(), found))


_FLOOR: Final = -62_135_596_800.0
_MONTH: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY: Final = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
_SEASON: Final = "|".join(SEASONS)
_UNIT: Final = "|".join(sorted(UNITS, key=len, reverse=True))
_COUNT: Final = r"\d{1,3}|" + "|".join(NUMBERS)
_YEAR: Final = r"(?:19|20)\d\d"
_PART: Final = r"early|mid|late|beginning|start|end"
_D: Final = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|er|º|\.)?"


def _phrases(words: dict[str, object]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_RULES: Final = (
    r"(?<![\w/.-])(?:"
    + "|".join(
        f"(?P<{name}>{pattern})"
        for name, pattern in {
            "iso": rf"(?:{_YEAR})[-/.](?:0?[1-9]|1[0-2])[-/.](?:3[01]|[12]\d|0?[1-9])(?![\d]|[./-]\d)",
            "numeric": rf"(?:\d\d?[./]\d\d?[./](?:{_YEAR}|\d\d))(?![\d]|[./-]\d)",
            "nth": rf"(?:{'|'.join(ORDINALS)}|last) (?:week|weekend) (?:of|in) (?:{_MONTH})\b(?:,? (?:{_YEAR})\b)?",
            "day": rf"{_D}(?: of| de| di)? ?(?:{_MONTH})\b(?:(?:,| of| de| del)? ?(?:{_YEAR})\b)?",
            "monthday": rf"(?:{_MONTH})\.? (?:the )?(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?(?![\d:%])"
            rf"(?:,? (?:{_YEAR})\b)?",
            "month": rf"(?:(?:{_PART})(?:(?: of| in)? |-))?(?:{_MONTH})\b(?:(?:,| of| de| del)? ?(?:{_YEAR})\b)?",
            "season": rf"(?:(?:{LAST}|this|next|in|over|during|by|since|until|im|en|en el|en la|in) )?(?:the )?"
            rf"(?:{_SEASON})\b(?:(?: of| de| von)? (?:{_YEAR})\b)?(?: (?:{LAST})\b)?",
            "quarter": rf"(?:q[1-4]|(?:{'|'.join(ORDINALS)}) quarter)\b(?:(?: of|,)? ?(?:{_YEAR})\b)?",
            "holiday": rf"(?:{_phrases(dict(HOLIDAYS))})(?![\w'])(?: (?:{_YEAR})\b)?",
            "offset": rf"(?:{_phrases(dict(DAYS_OFF))})\b",
            "ago": rf"(?:about |around |almost )?(?:a )?(?:{_COUNT})(?: of)? (?:{_UNIT})s? (?:ago|earlier|back)\b"
            rf"|(?:vor|hace|il y a|há) (?:{_COUNT}|eine[mrn]?|zwei|drei|un|une|una|deux|dos|trois|tres) (?:{_UNIT})\b",
            "recent": rf"(?:the |these )?(?:last|past|previous) (?:{_COUNT})(?: of)? (?:{_UNIT})s?\b",
            "unit": rf"(?:{LAST}|this|next) (?:{_UNIT})\b|(?:{_UNIT}) (?:{LAST})\b",
            "weekday": rf"(?:(?:{LAST}|this|next|on) )(?:{_DAY})\b|(?:{_DAY}) (?:{LAST})\b",
            "year": r"(?:in|during|since|of|from|to|until|till|by|before|after|year|early|mid|late|and|en|em|nel)"
            rf" (?:{_YEAR})(?![\w-])|(?:{_YEAR})(?=\s*[?.!]?\s*$)",
        }.items()
    )
    + ")"
)


@cache
def _rules() -> re.Pattern[str]:
    """Compiled when first needed: it takes longer than most recalls."""
    return re.compile(_RULES)


_DIGIT: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"[^\W\d_]+")
_HINTS: Final = frozenset(
    word
    for names in (MONTHS, SEASONS, HOLIDAYS, DAYS_OFF, WEEKDAYS, UNITS, (f"{unit}s" for unit in UNITS))
    for name in names
    for word in (max(_WORD.findall(name), key=len),)
)
"""A text with neither a digit nor one of these words names no date."""


class _Clock:
    """Now, and the years that a date without a year may fall in."""

    def __init__(self, now: float, span: tuple[float, float], zone: tzinfo) -> None:
        self.zone = zone
        self.now = _moment(now, zone)
        first, last = (_moment(stamp, zone).year for stamp in span)
        self.years = range(max(first, last - 30), max(first, last) + 1)

    def day(self, moment: datetime, days: float = 1) -> tuple[float, float]:
        start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        return start.timestamp(), (start + timedelta(days=days)).timestamp()

    def date(self, year: int, month: int, day: int, days: float = 1) -> Iterator[tuple[float, float]]:
        try:
            yield self.day(datetime(year, month, day, tzinfo=self.zone), days)
        except (ValueError, OverflowError):
            return

    def months(self, year: int, month: int, count: int = 1) -> tuple[float, float]:
        first = year * 12 + month - 1
        start, end = ((min(max(n // 12, 1), 9998), n % 12 + 1) for n in (first, first + count))
        return (
            datetime(*start, 1, tzinfo=self.zone).timestamp(),
            datetime(*end, 1, tzinfo=self.zone).timestamp(),
        )


def _moment(stamp: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(min(max(stamp, -60_000_000_000.0), 250_000_000_000.0), zone)


_Spans: TypeAlias = Iterator[tuple[float, float]]


def _years(text: str, clock: _Clock) -> list[int]:
    year = re.search(_YEAR + r"\b", text)
    return [int(year[0])] if year else list(clock.years)


def _named(text: str, names: dict[str, int]) -> int:
    words = re.findall(r"[^\W\d_]+(?:-feira|')?", text)
    return next(names[word] for word in words if word in names)


def _iso(match: re.Match[str], clock: _Clock) -> _Spans:
    year, month, day = (int(part) for part in re.split(r"[-/.]", match[0]))
    yield from clock.date(year, month, day)


def _numeric(match: re.Match[str], clock: _Clock) -> _Spans:
    first, second, year = (int(part) for part in re.split(r"[./]", match[0]))
    year += 2000 if year < 100 else 0
    for day, month in {(first, second), (second, first)} if "/" in match[0] else {(first, second)}:
        yield from clock.date(year, month, day)


def _nth(match: re.Match[str], clock: _Clock) -> _Spans:
    month, word = _named(match[0], MONTHS), match[0].split()[0]
    for year in _years(match[0], clock):
        start, end = clock.months(year, month)
        week = ORDINALS.get(word, 0)
        begin = start + (week - 1) * 7 * DAY if week else end - 7 * DAY
        yield begin, min(begin + 7 * DAY, end)


def _day(match: re.Match[str], clock: _Clock) -> _Spans:
    text = re.sub(_YEAR + r"\b", "", match[0])
    digits = re.search(r"\d+", text)
    if digits is None:
        return
    for year in _years(match[0], clock):
        yield from clock.date(year, _named(match[0], MONTHS), int(digits[0]))


def _month(match: re.Match[str], clock: _Clock) -> _Spans:
    name = next(word for word in re.findall(r"[^\W\d_]+", match[0]) if word in MONTHS)
    part = re.match(rf"(?:{_PART})\b", match[0])
    dated = part or re.search(_YEAR, match[0])
    if not dated and name not in SURE_MONTHS and not _led(match):
        return
    spans = [_portion(*clock.months(year, MONTHS[name]), part[0] if part else "") for year in _years(match[0], clock)]
    last = re.search(rf"\b(?:{LAST}) $", match.string[: match.start()])
    yield from _latest(spans, clock) if last else spans


def _led(match: re.Match[str]) -> bool:
    before = match.string[: match.start()].split()
    return bool(before) and before[-1].strip("(,") in MONTH_LEADS


def _portion(start: float, end: float, part: str) -> tuple[float, float]:
    third = (end - start) / 3
    if part in {"early", "beginning", "start"}:
        return start, start + third
    if part == "mid":
        return start + third, end - third
    return (end - third, end) if part in {"late", "end"} else (start, end)


def _season(match: re.Match[str], clock: _Clock) -> _Spans:
    name = next(word for word in re.findall(r"[^\W\d_]+", match[0]) if word in SEASONS)
    year = re.search(_YEAR, match[0])
    relative = re.search(rf"\b(?:{LAST}|this|next)\b", match[0])
    if not year and not relative and (name in {"fall", "estate", "lente"} or not match[0].startswith(_LEADS)):
        return
    spans = [clock.months(each, SEASONS[name], 3) for each in _years(match[0], clock)]
    if SEASONS[name] == 12:
        spans += [clock.months(each, 1, 2) for each in _years(match[0], clock)]
    yield from _latest(spans, clock) if re.search(rf"\b(?:{LAST})\b", match[0]) else spans


def _latest(spans: list[tuple[float, float]], clock: _Clock) -> list[tuple[float, float]]:
    return sorted(span for span in spans if span[0] < clock.now.timestamp())[-1:]


_LEADS: Final = ("in ", "over ", "during ", "by ", "since ", "until ", "the ", "im ", "en ")


def _quarter(match: re.Match[str], clock: _Clock) -> _Spans:
    text = match[0]
    number = int(text[1]) if text[0] == "q" else _named(text, ORDINALS)
    for year in _years(text, clock) if number < 5 else []:
        yield clock.months(year, number * 3 - 2, 3)


def _holiday(match: re.Match[str], clock: _Clock) -> _Spans:
    name = re.sub(rf" (?:{_YEAR})$", "", match[0])
    month, day, days = HOLIDAYS[name]
    for year in _years(match[0], clock):
        yield from clock.date(year, month, day, days)


def _offset(match: re.Match[str], clock: _Clock) -> _Spans:
    yield clock.day(clock.now + timedelta(days=DAYS_OFF[match[0]]))


_FOREIGN_COUNTS: Final = {"zwei": 2, "deux": 2, "dos": 2, "drei": 3, "trois": 3, "tres": 3}


def _amount(text: str) -> tuple[int, str]:
    words = re.findall(r"[^\W_]+", text)
    unit = next(UNITS.get(word) or UNITS[word[:-1]] for word in words if word in UNITS or word[:-1] in UNITS)
    counts = [int(w) if w.isdecimal() else NUMBERS.get(w) or _FOREIGN_COUNTS.get(w, 0) for w in words]
    return max(counts) or 1, unit


def _back(clock: _Clock, count: int, unit: str) -> datetime:
    days = {"day": 1.0, "week": 7.0, "weekend": 7.0, "month": 30.44, "quarter": 91.3, "year": 365.25}[unit]
    return max(clock.now, datetime(1000, 1, 1, tzinfo=clock.zone)) - timedelta(days=days * min(count, 900))


def _ago(match: re.Match[str], clock: _Clock) -> _Spans:
    count, unit = _amount(match[0])
    centre = _back(clock, count, unit)
    slack = {"day": 0.0, "week": 3.0, "weekend": 3.0, "month": 12.0, "quarter": 30.0, "year": 120.0}[unit]
    yield clock.day(centre - timedelta(days=slack), 1 + 2 * slack)


def _recent(match: re.Match[str], clock: _Clock) -> _Spans:
    yield _back(clock, *_amount(match[0])).timestamp(), clock.now.timestamp() + DAY


def _unit(match: re.Match[str], clock: _Clock) -> _Spans:
    unit = next(UNITS[word] for word in match[0].split() if word in UNITS)
    step = {"this": 0, "next": 1}.get(match[0].split()[0], -1)
    now = clock.now
    if unit == "day":
        yield clock.day(now + timedelta(days=step))
    elif unit in {"week", "weekend"}:
        monday = now - timedelta(days=now.weekday()) + timedelta(days=7 * step)
        yield clock.day(monday, 7) if unit == "week" else clock.day(monday + timedelta(days=5), 2)
    elif unit == "year":
        yield clock.months(now.year + step, 1, 12)
    else:
        size = 3 if unit == "quarter" else 1
        yield clock.months(now.year, (now.month - 1) // size * size + 1 + step * size, size)


def _weekday(match: re.Match[str], clock: _Clock) -> _Spans:
    wanted = next(WEEKDAYS[word] for word in match[0].split() if word in WEEKDAYS)
    behind = (clock.now.weekday() - wanted) % 7
    if match[0].startswith("next"):
        yield clock.day(clock.now + timedelta(days=7 - behind))
    elif match[0].startswith("this"):
        yield clock.day(clock.now + timedelta(days=wanted - clock.now.weekday()))
    else:
        yield clock.day(clock.now - timedelta(days=behind or 7))


def _year(match: re.Match[str], clock: _Clock) -> _Spans:
    year = re.search(_YEAR, match[0])
    if year is not None:
        start, end = clock.months(int(year[0]), 1, 12)
        yield _portion(start, end, match[0].split()[0])


_READERS: Final[dict[str, Callable[[re.Match[str], _Clock], _Spans]]] = {
    "iso": _iso, "numeric": _numeric, "nth": _nth, "day": _day, "monthday": _day, "month": _month,
    "season": _season, "quarter": _quarter, "holiday": _holiday, "offset": _offset, "ago": _ago,
    "recent": _recent, "unit": _unit, "weekday": _weekday, "year": _year,
}  # fmt: skip

_BETWEEN: Final = re.compile(r"\s*(?:and|to|until|till|-|–|und|bis|et|au|y|e|a|al|en|tot)\s*")
_BESIDE: Final = re.compile(r"(?:the )?(day|week|weekend|month)s? (before|after|of) (?:the )?$")


def _joined(text: str, found: list[Range]) -> Iterator[Range]:
    """Ranges with "between A and B", "since A" and "the week before A" taken into account."""
    skip: set[tuple[int, int]] = set()
    for left, right in pairwise(dict.fromkeys(item.words for item in found)):
        before = text[: left[0]].split()[-1:]
        if before in (["between"], ["from"], ["zwischen"], ["entre"]) and _BETWEEN.fullmatch(text[left[1] : right[0]]):
            skip |= {left, right}
            yield from _stretch(
                [item for item in found if item.words == left], [item for item in found if item.words == right]
            )
    for item in found:
        if item.words not in skip:
            yield _shifted(text[: item.words[0]], item)


def _stretch(left: list[Range], right: list[Range]) -> Iterator[Range]:
    starts = {min(last.end for last in right if last.end > first.start): first for first in left if _ends(first, right)}
    for end, first in starts.items():
        yield Range(first.start, end, (first.words[0], right[0].words[1]))


def _ends(first: Range, right: list[Range]) -> bool:
    return any(last.end > first.start for last in right)


def _shifted(before: str, item: Range) -> Range:
    beside = _BESIDE.search(before)
    if not beside or item.end - item.start > 32 * DAY or beside[2] == "of":
        return item
    size = {"day": 1, "week": 7, "weekend": 7, "month": 31}[beside[1]] * DAY
    words = (beside.start(), item.words[1])
    if beside[2] == "before":
        return Range(item.start - size, item.start, words)
    return Range(item.end, item.end + size, words)
