"""The days that plans name."""

from datetime import UTC, datetime
from typing import Final

from eunoe.text.dates import find_date_ranges

_DAY_SECONDS: Final = 86_400.0
_YEAR_SECONDS: Final = 366 * _DAY_SECONDS
_WEEK_SECONDS: Final = 7 * _DAY_SECONDS


def is_day_over(plan: str, said: str, now: datetime) -> bool:
    """Return whether a plan names a day that was to come when it was said, on the ISO date given, and is over.

    >>> is_day_over("I'm flying on 12 May.", "2024-05-07", datetime(2024, 6, 1, tzinfo=UTC))
    True
    """
    try:
        start = datetime.fromisoformat(said).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return False
    ranges = find_date_ranges(plan, start, (start, start + _YEAR_SECONDS))
    ends = [end for end in (_planned_end(found.start, found.end, start) for found in ranges) if end > start]
    return bool(ends) and min(ends) <= now.timestamp()


def _planned_end(start: float, end: float, said: float) -> float:
    """The end of a range; a weekday in a plan is the next one, not the last."""
    is_past_day = said - _WEEK_SECONDS <= start < said and end - start <= _DAY_SECONDS
    return end + _WEEK_SECONDS if is_past_day else end
