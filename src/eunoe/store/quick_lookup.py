"""Looking records up by their ids in a single statement of SQLite."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from eunoe.model.record import Record
from eunoe.store.codec import row_checksum
from eunoe.store.tables import ITEMS

_COLUMNS: Final = ", ".join(ITEMS.columns)
_VALUES: Final = len(ITEMS.values)
_ID: Final = ITEMS.columns.index("id")
_STREAM: Final = ITEMS.columns.index("stream")
_MAX_STREAMS: Final = 10_000


class StreamIds(dict[str, int]):
    """The numbers of streams by the texts of their scopes. A stream that was once stored keeps its number for ever."""

    def add(self, scope: str, stream: int) -> None:
        if len(self) >= _MAX_STREAMS:
            self.clear()
        self[scope] = stream


@cache
def items_by_ids(count: int) -> str:
    """The statement for so many ids. It tells the schema last: another process may have changed it since."""
    schema = "(SELECT user_version FROM pragma_user_version)"
    return f"SELECT {_COLUMNS}, {schema} FROM items WHERE stream = ? AND id IN ({', '.join('?' * count)})"


def decode_sound(rows: Sequence[tuple[Any, ...]], stream: int, ids: Sequence[str], schema: int) -> list[Record] | None:
    """The records of rows, if these are all that were asked for, each as it was written; otherwise None."""
    if len(rows) != len(ids):
        return None
    for row in rows:
        is_sound = row_checksum(row[:_VALUES]) == row[_VALUES]
        if not is_sound or row[-1] != schema or row[_STREAM] != stream or row[_ID] not in ids:
            return None
    return ITEMS.decode([row[:-1] for row in rows])
