"""Documents as MongoDB's tools write them: mongoexport and bsondump, in every form of extended JSON."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from eunoe.errors import InputError
from eunoe.hosts.common import Problems

_VALUE_START: Final = re.compile(r"[^\s,\[\]]")
_NEXT_DOCUMENT: Final = re.compile(r"\n[ \t,]{0,4}(?=\{)")
_OBJECT_ID: Final = re.compile(r"[0-9a-f]{24}")
_UUID_TYPES: Final = (3, 4)
"""Subtypes of binary data that are UUIDs: as older drivers of Python wrote them, and the standard one."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DECODER: Final = json.JSONDecoder()


def read_values(path: Path, problems: Problems) -> Iterator[tuple[str, Any]]:
    """Read JSON values one after the other, in an array or not, on a line each or not, each with its place.

    After a broken one the reading goes on where the next document seems to begin.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason}") from error
    at, line, counted = 0, 1, 0
    while start := _VALUE_START.search(text, at):
        at = start.start()
        line += text.count("\n", counted, at)
        counted, place = at, f"{path.name}:{line}"
        following = _NEXT_DOCUMENT.search(text, at)
        end = following.end() if following else len(text)
        with problems.catch(place):
            value, end = _DECODER.raw_decode(text, at)
            yield place, value
        at = end


def unwrap(value: Any) -> Any:
    """Return a value out of extended JSON; what cannot be read stays as it is.

    >>> unwrap({"$numberLong": "7"}), unwrap({"$binary": {"base64": "b5YZ/4uG0BG0LQDAT8lk/w==", "subType": "04"}})
    (7, '6f9619ff-8b86-d011-b42d-00c04fc964ff')
    """
    with suppress(ValueError, TypeError, OverflowError):
        match value:
            case {"$oid": inner} | {"$uuid": inner} if len(value) == 1:
                return inner
            case {"$numberInt": inner} | {"$numberLong": inner} if len(value) == 1:
                return int(inner)
            case {"$numberDouble": inner} if len(value) == 1:
                return float(inner)
            case {"$binary": {"base64": data, "subType": kind}} | {"$binary": str(data), "$type": kind}:
                return str(UUID(bytes=b64decode(data))) if int(str(kind), 16) in _UUID_TYPES else value
    return value


def read_time(value: Any) -> datetime | None:
    """Read an ISO text, or `$date` with a text, a number of milliseconds, or such a number in a text."""
    try:
        inner = unwrap(value["$date"]) if isinstance(value, dict) and "$date" in value else unwrap(value)
        if isinstance(inner, str):
            time = datetime.fromisoformat(inner)
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        return _EPOCH + timedelta(milliseconds=inner) if isinstance(inner, int | float) else None
    except (ValueError, TypeError, OverflowError):
        return None


def object_id_time(id: str) -> datetime | None:
    """Return the moment that an id of MongoDB carries; None if it is another kind of id."""
    return _EPOCH + timedelta(seconds=int(id[:8], 16)) if _OBJECT_ID.fullmatch(id) else None
