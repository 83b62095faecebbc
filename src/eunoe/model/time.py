"""Times: read from what callers have, given back in UTC, and as whole microseconds for the store."""

from datetime import UTC, datetime, timedelta

from eunoe.errors import InputError
from eunoe.model.validation import show

TimeLike = datetime | str | int | float

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def parse_time(value: TimeLike, name: str = "time") -> datetime:
    """Read a datetime, an ISO 8601 text or seconds since 1970. Without a zone it is taken as UTC.

    >>> parse_time("2024-05-07T18:30")
    datetime.datetime(2024, 5, 7, 18, 30, tzinfo=datetime.timezone.utc)
    """
    try:
        time = _read(value)
        if time is not None:
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InputError(f"cannot read {name} {show(value)}: give a datetime, ISO 8601 text or seconds since 1970")


def parse_optional_time(value: TimeLike | None, name: str = "time") -> datetime | None:
    return None if value is None else parse_time(value, name)


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_micros(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _read(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return datetime.fromisoformat(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _EPOCH + timedelta(seconds=value)
    return None
