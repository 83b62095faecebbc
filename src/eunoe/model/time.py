"""Moments: read from what users have, kept as whole microseconds, given back in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from eunoe.errors import InputError

TimeLike = datetime | str | int | float

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(value: TimeLike, name: str = "time") -> datetime:
    """Reads a datetime, an ISO 8601 text or seconds since 1970. Without a zone it is taken as UTC.

    >>> moment("2024-05-07T18:30")
    datetime.datetime(2024, 5, 7, 18, 30, tzinfo=datetime.timezone.utc)
    """
    try:
        found = _read(value)
        if found is not None:
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InputError(f"cannot read {name} {value!r}: give a datetime, ISO 8601 text or seconds since 1970")


def optional(value: TimeLike | None, name: str = "time") -> datetime | None:
    return None if value is None else moment(value, name)


def now() -> datetime:
    return datetime.now(UTC)


def micros(value: datetime) -> int:
    return (value - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def _read(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return datetime.fromisoformat(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _EPOCH + timedelta(seconds=value)
    return None
