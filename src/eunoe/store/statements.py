"""The statements of a block: how a store runs them, and what they find."""

import threading
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, NoReturn, Protocol

from eunoe.errors import StoreError
from eunoe.store.conditions import Condition, where_clauses
from eunoe.store.contract import Store

_NO_LIMIT: Final = 2**63 - 1


class Cursor(Protocol):
    """What comes back from a statement, as in the Python database API."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What runs the statements of a block, with `?` for their values."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object: ...


class NoConnection:
    """Refuses every statement, and says why."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def execute(self, *_: object) -> NoReturn:
        raise StoreError(self._reason)

    executemany = execute


OUTSIDE: Final = NoConnection("a store is used inside `with store.reading()` or `with store.writing()`")


class Block(threading.local):
    """The connection of the block that a thread has open."""

    connection: Connection = OUTSIDE


class Statements(Store):
    """A store that runs SQL, inside a block of its thread."""

    _index_hint: ClassVar[str] = ""
    """What follows a table's name where a certain index should be used, with `{}` for that index."""

    def __init__(self) -> None:
        self._block = Block()

    def _find(
        self,
        select: str,
        conditions: Sequence[Condition],
        order: str = "",
        limit: int | None = None,
        before: Sequence[Any] = (),
        offset: int = 0,
    ) -> list[Any]:
        """Rows that meet the conditions. `before` are the values that stand in front of them."""
        execute = self._block.connection.execute
        limit = _NO_LIMIT if offset and limit is None else limit  # SQLite has no OFFSET without LIMIT
        end = (f" ORDER BY {order}" if order else "") + ("" if limit is None else " LIMIT ?")
        last = () if limit is None else (limit,)
        if offset:
            end, last = f"{end} OFFSET ?", (*last, offset)
        return [
            row
            for where, values in where_clauses(conditions)
            for row in execute(f"{select} WHERE {where}{end}", (*before, *values, *last)).fetchall()
        ]

    def _delete(self, table: str, conditions: Sequence[Condition]) -> int:
        execute = self._block.connection.execute
        clauses = where_clauses(conditions)
        return sum(execute(f"DELETE FROM {table} WHERE {where}", values).rowcount for where, values in clauses)
