"""Looking records up by their ids, and the version of a stream, in a single statement of SQLite."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from eunoe.model.atom import Record
from eunoe.store.codec import row_checksum
from eunoe.store.tables import ITEMS, STREAMS

_COLUMNS: Final = ", ".join(ITEMS.columns)
_VALUES: Final = len(ITEMS.values)
_ID: Final = ITEMS.columns.index("id")
_STREAM: Final = ITEMS.columns.index("stream")
_MAX_STREAMS: Final = 10_000
_SCHEMA: Final = "(SELECT user_version FROM pragma_user_version)"
"""A statement tells it last: another process may have changed it since."""
_STREAM_ID: Final = STREAMS.columns.index("id")
_VERSION: Final = STREAMS.columns.index("version")
STREAM_BY_ID: Final = f"SELECT {', '.join(STREAMS.columns)}, {_SCHEMA} FROM streams WHERE id = ?"


class StreamIds(dict[str, int]):
    """The numbers of streams by the texts of their scopes. A stream that was once stored keeps its number for ever."""

    def add(self, scope: str, stream: int) -> None:
        if len(self) >= _MAX_STREAMS:
            self.clear()
        self[scope] = stream


@cache
def items_by_ids(count: int) -> str:
    """The statement for so many ids."""
    return f"SELECT {_COLUMNS}, {_SCHEMA} FROM items WHERE stream = ? AND id IN ({', '.join('?' * count)})"


def decode_sound(rows: Sequence[tuple[Any, ...]], stream: int, ids: Sequence[str], schema: int) -> list[Record] | None:
    """The records of rows, if these are all that were asked for, each as it was written; otherwise None."""
    if len(rows) != len(ids):
        return None
    for row in rows:
        is_sound = row_checksum(row[:_VALUES]) == row[_VALUES]
        if not is_sound or row[-1] != schema or row[_STREAM] != stream or row[_ID] not in ids:
            return None
    return ITEMS.decode([row[:-1] for row in rows])


def sound_version(rows: Sequence[tuple[Any, ...]], stream: int, schema: int) -> int | None:
    """The version in the row of a stream, if that is as it was written; otherwise None."""
    for row in rows:
        if row_checksum(row[:-2]) == row[-2] and row[-1] == schema and row[_STREAM_ID] == stream:
            version: int = row[_VERSION]
            return version
    return None
