"""The database of keyword memories, written so that other programs read it as their own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from eunoe.apps.discussion.files.database import Database, LoggedHash, Row, read_hashes, read_rows
from eunoe.apps.discussion.files.keyword_rows import RowContent, row_content
from eunoe.apps.discussion.files.layout import Layout
from eunoe.errors import InputError, StoreBusyError
from eunoe.files import replacing

_BUSY_SECONDS: Final = 10.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY, discussion_id TEXT NOT NULL, memory_text TEXT NOT NULL, date_added TEXT NOT NULL,
    metadata_json TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS memories_fts USING fts5(
    title, summary, entities, key_phrases, memory_text_unweighted, tokenize='porter');
CREATE TABLE IF NOT EXISTS memory_embeddings (
    memory_id INTEGER, model TEXT, dim INTEGER, vector BLOB, PRIMARY KEY (memory_id, model));
"""
_SEARCHED: Final = ("title", "summary", "entities", "key_phrases")
_TEXT_COLUMNS: Final = ("memory_text_unweighted", "memory_text")
"""What the text is called in the full-text index: now, and in databases of the first version."""
_PROGRESS: Final[dict[Layout, str]] = {
    "folders": """CREATE TABLE IF NOT EXISTS vector_memory_hash_log (
        id INTEGER PRIMARY KEY AUTOINCREMENT, discussion_id TEXT NOT NULL, message_hash TEXT NOT NULL,
        timestamp DATETIME NOT NULL);""",
    "flat": """CREATE TABLE IF NOT EXISTS vector_memory_tracker (
        discussion_id TEXT PRIMARY KEY, last_checked_message_hash TEXT, last_updated DATETIME);""",
}
"""The table that says how far the chat was read."""
_PROGRESS_COLUMNS: Final[dict[Layout, tuple[str, str, int]]] = {
    "folders": ("vector_memory_hash_log", "message_hash, timestamp", 10),
    "flat": ("vector_memory_tracker", "last_checked_message_hash, last_updated", 1),
}
"""Its name, its columns, and how many hashes it holds."""


def write_database(path: Path, id: str, database: Database, layout: Layout) -> None:
    """Bring a database up to date in one step; a new one appears when it is complete.

    A database that is there is changed in place, since another program may have it open. What belongs to other
    discussions stays, and so do vectors of memories that did not change.
    """
    try:
        if path.exists():
            _change(path, id, database, layout)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            _change(Path(file.name), id, database, layout)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise StoreBusyError(f"{path} is held by another program: try again") from None
        raise InputError(f"{path} cannot be written: {error}") from None


def _change(path: Path, id: str, database: Database, layout: Layout) -> None:
    with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")  # what was forgotten is not to be read from free pages
        connection.execute("BEGIN IMMEDIATE")
        _write(connection, id, database, layout)
        connection.execute("COMMIT")


def _write(connection: sqlite3.Connection, id: str, database: Database, layout: Layout) -> None:
    for statement in filter(str.strip, [*_SCHEMA.split(";"), _PROGRESS[layout]]):
        connection.execute(statement)
    old = {row.id: row for row in read_rows(connection, id)}
    rows = number_rows(database.rows, old, _taken_ids(connection, id))
    gone = old.keys() - {row.id for row in rows}
    changed = [row for row in rows if row.id not in old or row_content(old[row.id]) != row_content(row)]
    for number in [*gone, *(row.id for row in changed)]:
        connection.execute("DELETE FROM memories WHERE id = ?", [number])
        connection.execute("DELETE FROM memories_fts WHERE rowid = ?", [number])
        connection.execute("DELETE FROM memory_embeddings WHERE memory_id = ?", [number])
    connection.executemany(
        "INSERT INTO memories (id, discussion_id, memory_text, date_added, metadata_json) VALUES (?, ?, ?, ?, ?)",
        [(row.id, id, row.text, row.date, row.metadata or None) for row in changed],
    )
    known = {column[1] for column in connection.execute("PRAGMA table_info(memories_fts)")}
    columns = [*_SEARCHED, *[name for name in _TEXT_COLUMNS if name in known][:1]]
    connection.executemany(
        f"INSERT INTO memories_fts (rowid, {', '.join(columns)}) VALUES (?{', ?' * len(columns)})",
        [(row.id, *searched_fields(row)[: len(columns)]) for row in changed],
    )
    if old.keys() & {*gone, *(row.id for row in changed)}:
        connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('optimize')")  # drops words of rows gone
    _write_hashes(connection, id, database.hashes, layout)


def _write_hashes(connection: sqlite3.Connection, id: str, hashes: Sequence[LoggedHash], layout: Layout) -> None:
    table, columns, count = _PROGRESS_COLUMNS[layout]
    kept = tuple(hashes[-count:])
    if tuple(read_hashes(connection, id, {table})) != kept:
        rows = [(id, each.hash, each.time) for each in kept]
        connection.execute(f"DELETE FROM {table} WHERE discussion_id = ?", [id])
        connection.executemany(f"INSERT INTO {table} (discussion_id, {columns}) VALUES (?, ?, ?)", rows)


def number_rows(rows: Iterable[Row], old: dict[int, Row], taken: Iterable[int] = ()) -> list[Row]:
    """Give each row an id: its own one if that is free, that of the same row in the database, or a new one."""
    rows, used = list(rows), set(taken)
    last = max([*used, *old, *(row.id for row in rows)], default=0)
    own: dict[int, int] = {}
    for place, row in enumerate(rows):
        if row.id and row.id not in used:
            own[place] = row.id
            used.add(row.id)
    known: dict[RowContent, list[int]] = {}
    for number in sorted(old.keys() - used, reverse=True):
        known.setdefault(row_content(old[number]), []).append(number)
    numbered = []
    for place, row in enumerate(rows):
        if place not in own:
            same = known.get(row_content(row))
            own[place] = same.pop() if same else (last := last + 1)
        numbered.append(row._replace(id=own[place]))
    return numbered


def searched_fields(row: Row) -> tuple[str, str, str, str, str]:
    """What the full-text index holds of a row: lists joined by blanks, without quotation marks."""
    try:
        fields = json.loads(row.metadata or "{}")
    except ValueError:
        fields = {}
    fields = fields if isinstance(fields, dict) else {}
    title, summary, entities, phrases = (_words(fields.get(name)) for name in _SEARCHED)
    return title, summary, entities, phrases, row.text


def _words(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)).replace('"', "")
    return "" if value is None else str(value)


def _taken_ids(connection: sqlite3.Connection, id: str) -> set[int]:
    return {row[0] for row in connection.execute("SELECT id FROM memories WHERE discussion_id != ?", [id])}
