"""Days that are named by how far away they are, such as "tomorrow", with the date that they stand for."""

from datetime import UTC, datetime
from typing import Final

from eunoe.text.dates import DAY_SECONDS, DateRange, find_date_ranges

_YEAR_SECONDS: Final = 366 * DAY_SECONDS
_WEEK_SECONDS: Final = 7 * DAY_SECONDS
_LAST: Final = ("last", "past", "previous", "letzt", "vorig", "vergangen", "afgelopen")
_ONE_DAY: Final = ("the day", "this morning", "this afternoon", "this evening", "last night")
"""How names of a day begin that have several words."""


def add_dates(text: str, said: datetime | None, is_plan: bool) -> str:
    """Return a text with the date behind each day that it names only from the day on which it was said.

    In a plan a weekday is the next one; elsewhere it may be either, and is left as it is.

    >>> add_dates("I fly to Oslo tomorrow.", datetime(2026, 5, 8, tzinfo=UTC), is_plan=True)
    'I fly to Oslo tomorrow (2026-05-09).'
    """
    if said is None:
        return text
    now = said.timestamp()
    found = {each.span: each for each in find_date_ranges(text, now, (now, now + _YEAR_SECONDS))}
    for (start, end), day in sorted(found.items(), reverse=True):
        if moment := _read_day(day, text[start:end], now, is_plan):
            text = f"{text[:end]} ({moment:%Y-%m-%d}){text[end:]}"
    return text


def _read_day(day: DateRange, words: str, now: float, is_plan: bool) -> datetime | None:
    """The day that is meant; None for one that has its date, or is longer than a day, or may be another one."""
    if day.end - day.start > DAY_SECONDS or any(map(str.isdecimal, words)):
        return None
    if " " not in words or words.lower().startswith(_ONE_DAY):
        return datetime.fromtimestamp(day.start, UTC)
    start = day.start + (_WEEK_SECONDS if day.end <= now else 0.0)
    is_next = now < start <= now + _WEEK_SECONDS and not words.lower().startswith(_LAST)
    return datetime.fromtimestamp(start, UTC) if is_plan and is_next else None
