"""Times from now on, as people write them: 30d, 12h, 45m, 30s, or a time."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from eunoe.errors import InputError
from eunoe.model.arguments import parse_time, show, utc_now

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_EXAMPLES: Final = "30d, 12h, 45m, 30s"
_DURATION: Final = re.compile(r"(\d{1,6})([smhdw])")


def parse_duration(text: str, name: str) -> timedelta:
    """
    >>> parse_duration("30d", "expires")
    datetime.timedelta(days=30)
    """
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise InputError(f"cannot read {name} {show(text)}: write {_EXAMPLES} or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def parse_end(text: str, name: str) -> datetime:
    """The moment a duration from now on ends, or one that is given."""
    try:
        if _DURATION.fullmatch(text.strip()):
            return utc_now() + parse_duration(text, name)
        return parse_time(text, name)
    except OverflowError:
        raise InputError(f"{name} {show(text)} is too far away") from None
    except InputError:
        raise InputError(f"cannot read {name} {show(text)}: write {_EXAMPLES}, or a time such as 2030-12-31") from None
