"""The schema of a new file.

The first one that a process makes goes through all migrations. Every later one gets the finished schema at once, which
takes SQLite a third of the time.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from eunoe.store.migrations import Migration, add_cursor_key


class _Schema(NamedTuple):
    tables: list[str]
    rows: list[tuple[str, list[tuple[Any, ...]]]]
    """What each table holds from the beginning, but for the secret of cursors, which every store makes for itself."""
    triggers: list[str]


_known: dict[tuple[Migration, ...], _Schema] = {}


def apply_migrations(connection: sqlite3.Connection, migrations: Sequence[Migration], done: int) -> None:
    """Take a file that has been through the first ones through the others."""
    key = tuple(migrations)
    if not done and key in _known:
        _write(connection, _known[key])
        return
    for migration in migrations[done:]:
        migration(connection)
    if not done:
        connection.execute("DELETE FROM meta WHERE name = 'cursor_key'")
        _known[key] = _read(connection)
        add_cursor_key(connection)


def _read(connection: sqlite3.Connection) -> _Schema:
    sql = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
    objects = connection.execute(sql).fetchall()
    names = [name for kind, name, _ in objects if kind == "table"]
    held = [(name, connection.execute(f"SELECT * FROM {name}").fetchall()) for name in names]
    return _Schema(
        [sql for kind, _, sql in objects if kind != "trigger"],
        [(name, rows) for name, rows in held if rows],
        [sql for kind, _, sql in objects if kind == "trigger"],
    )


def _write(connection: sqlite3.Connection, schema: _Schema) -> None:
    for statement in schema.tables:
        connection.execute(statement)
    for name, rows in schema.rows:
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    for statement in schema.triggers:  # last: the sums that they keep have been written
        connection.execute(statement)
    add_cursor_key(connection)
