"""How long ago something was, in words."""

from datetime import datetime
from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
_UNITS: Final = (
    (_HOUR, _MINUTE, "minute"),
    (_DAY, _HOUR, "hour"),
    (7 * _DAY, _DAY, "day"),
    (28 * _DAY, 7 * _DAY, "week"),
    (_YEAR, 30.4375 * _DAY, "month"),
    (float("inf"), _YEAR, "year"),
)
"""Ages below so many seconds are given in the unit of so many seconds."""
_CLOCK_SKEW_SECONDS: Final = 5 * _MINUTE
"""A clock that runs a little behind does not make a memory a plan."""


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
