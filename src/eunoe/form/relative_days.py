"""Days that are named by how far away they are, such as "tomorrow", with the date that they stand for."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from eunoe.text.dates import DAY_SECONDS, DateRange, find_date_ranges

_YEAR_SECONDS: Final = 366 * DAY_SECONDS
_WEEK_SECONDS: Final = 7 * DAY_SECONDS
_LAST: Final = ("last", "past", "previous", "letzt", "vorig", "vergangen", "afgelopen")
_ONE_DAY: Final = ("the day", "this morning", "this afternoon", "this evening", "last night")
"""How names of a day begin that have several words."""
_ARTICLE: Final = r"(?:(?:the|den|der|dem|de|le|el|il|of|in) )?"
_GAP: Final = re.compile(rf"[\s,(]*{_ARTICLE}", re.IGNORECASE)
"""What may stand between a weekday and its date."""
_DAY_NUMBER: Final = re.compile(rf"[\s,(]+{_ARTICLE}\d\d?(?:st|nd|rd|th|º|\.|/)", re.IGNORECASE)
"""A date without its month, or with the month as a number."""


def add_dates(text: str, said: datetime | None, is_plan: bool) -> str:
    """Return a text with the date behind each day that it names only from the day on which it was said.

    In a plan a weekday is the next one, unless its date is named beside it; elsewhere it may be either, and is left
    as it is.

    >>> add_dates("I fly to Oslo tomorrow.", datetime(2026, 5, 8, tzinfo=UTC), is_plan=True)
    'I fly to Oslo tomorrow (2026-05-09).'
    """
    if said is None:
        return text
    now = said.timestamp()
    found = {each.span: each for each in find_date_ranges(text, now, (now, now + _YEAR_SECONDS))}
    for (start, end), day in sorted(found.items(), reverse=True):
        is_open = is_plan and not _has_date_beside(text, (start, end), found)
        if moment := _read_day(day, text[start:end], now, is_open):
            text = f"{text[:end]} ({moment:%Y-%m-%d}){text[end:]}"
    return text


def _has_date_beside(text: str, span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    """Whether the words beside a weekday say which one is meant: "Saturday the 12th of April", "Saturday next week"."""
    if _DAY_NUMBER.match(text, span[1]):
        return True
    for start, end in others:
        gap = text[span[1] : start] if start >= span[1] else text[end : span[0]]
        has_number = any(map(str.isdecimal, text[start:end]))
        if (start, end) != span and _GAP.fullmatch(gap) and (has_number or "," not in gap):
            return True
    return False


def _read_day(day: DateRange, words: str, now: float, is_open: bool) -> datetime | None:
    """The day that is meant; None for one that has its date, or is longer than a day, or may be another one."""
    if day.end - day.start > DAY_SECONDS or any(map(str.isdecimal, words)):
        return None
    if " " not in words or words.lower().startswith(_ONE_DAY):
        return datetime.fromtimestamp(day.start, UTC)
    start = day.start + (_WEEK_SECONDS if day.end <= now else 0.0)
    is_next = now < start <= now + _WEEK_SECONDS and not words.lower().startswith(_LAST)
    return datetime.fromtimestamp(start, UTC) if is_open and is_next else None
