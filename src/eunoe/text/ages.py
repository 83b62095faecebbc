"""How long ago something was, in words."""

from __future__ import annotations

from datetime import datetime
from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_SPANS: Final = (
    (_HOUR, _MINUTE, "minute"),
    (_DAY, _HOUR, "hour"),
    (7 * _DAY, _DAY, "day"),
    (28 * _DAY, 7 * _DAY, "week"),
    (365 * _DAY, 30.4375 * _DAY, "month"),
)
"""Below so many seconds, the unit of so many seconds is told."""
_AT_ONCE: Final = 5 * _MINUTE
"""A clock that runs a little behind does not make a memory a plan."""


def age(then: datetime, now: datetime) -> str:
    """How long before `now` it was, or how long it is still to go.

    >>> from datetime import timedelta
    >>> today = datetime(2024, 5, 7)
    >>> age(today - timedelta(days=3), today), age(today + timedelta(days=15), today)
    ('3 days ago', 'in 2 weeks')
    """
    seconds = (now - then).total_seconds()
    if -_AT_ONCE < seconds < _MINUTE:
        return "just now"
    told = _told(abs(seconds))
    return f"{told} ago" if seconds > 0 else f"in {told}"


def dated(then: datetime, now: datetime) -> str:
    """The day itself and how long ago it was.

    >>> dated(datetime(2024, 5, 4), datetime(2024, 5, 7))
    '2024-05-04, 3 days ago'
    """
    return f"{then.date().isoformat()}, {age(then, now)}"


def _told(seconds: float) -> str:
    unit, name = next(((unit, name) for below, unit, name in _SPANS if seconds < below), (365 * _DAY, "year"))
    count = max(1, int(seconds // unit))
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
