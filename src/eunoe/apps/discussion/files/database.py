"""The database of keyword memories as other programs have it: read without touching it, written as their own."""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.apps.discussion.files.layout import Layout, digest, parse_json
from eunoe.apps.discussion.model import KeywordMemory
from eunoe.errors import InputError, StoreBusyError
from eunoe.model.arguments import check_metadata, parse_time

_COMPANIONS: Final = ("", "-wal", "-journal")
_ATTEMPTS: Final = 5
"""A file that changes while it is copied is copied again."""
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
_TEXT_COLUMNS: Final = ("memory_text_unweighted", "memory_text")
"""What the text is called in the full-text index: now, and in databases of the first version."""


_PROGRESS: Final[Mapping[Layout, tuple[str, str, str, int]]] = {
    "flat": (
        "vector_memory_tracker",
        "last_checked_message_hash, last_updated",
        "discussion_id TEXT PRIMARY KEY, last_checked_message_hash TEXT, last_updated DATETIME",
        1,
    ),
    "folders": (
        "vector_memory_hash_log",
        "message_hash, timestamp",
        "id INTEGER PRIMARY KEY AUTOINCREMENT, discussion_id TEXT NOT NULL, message_hash TEXT NOT NULL, "
        "timestamp DATETIME NOT NULL",
        10,
    ),
}
"""The table that says how far the chat was read: its name, its columns, its schema, and how many hashes it holds."""
_REQUIRED: Final = ("title", "summary", "entities", "key_phrases")
_LISTS: Final = ("entities", "key_phrases", "topics")
_ROW: Final = "file_row"
"""The field of `extra` with the row that a memory was read from."""


class Row(NamedTuple):
    """One row of `memories`."""

    id: int
    """0 if it has none yet."""
    text: str
    date: str
    metadata: str
    """JSON, or what stands in its place; empty if nothing does."""


class LoggedHash(NamedTuple):
    """A message up to which the chat was read."""

    hash: str
    time: str


@dataclass(frozen=True, slots=True)
class Database:
    """What a database holds of one discussion."""

    rows: tuple[Row, ...] = ()
    hashes: tuple[LoggedHash, ...] = ()
    """The newest last."""
    foreign: int = 0
    """So many rows belong to other discussions."""

    @property
    def digest(self) -> str:
        """By which its memories are recognised as they were read or written."""
        return digest(repr(sorted(row[1:] for row in self.rows)))


def read_database(path: Path, id: str) -> Database:
    """Read what belongs to a discussion. The file and its folder stay as they are."""
    try:
        with _copy(path) as copy, closing(sqlite3.connect(copy)) as connection:
            fault = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if fault != "ok":
                raise InputError(f"{path} is damaged: {fault}")
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and not tables & {"memories", "vector_memory_tracker"}:
                raise InputError(f"{path} is no database of memories: its tables are {', '.join(sorted(tables))}")
            hashes = tuple(_read_hashes(connection, id, tables))
            if "memories" not in tables:
                return Database(hashes=hashes)
            rows = tuple(_read_rows(connection, id))
            (total,) = connection.execute("SELECT count(*) FROM memories").fetchone()
            return Database(rows, hashes, total - len(rows))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


@contextmanager
def _copy(path: Path) -> Iterator[Path]:
    """A copy of a database with what its log holds, so that nothing is locked, and no file appears beside it."""
    for _ in range(_ATTEMPTS):
        with tempfile.TemporaryDirectory() as folder:
            copy, before = Path(folder) / path.name, _stamps(path)
            for companion in before:
                shutil.copyfile(f"{path}{companion}", f"{copy}{companion}")
            if _stamps(path) == before:
                yield copy
                return
    raise StoreBusyError(f"{path} is being written: try again")


def _stamps(path: Path) -> dict[str, tuple[int, int]]:
    """When each of the files was written, and how large it is."""
    files = {companion: Path(f"{path}{companion}") for companion in _COMPANIONS}
    stats = {companion: file.stat() for companion, file in files.items() if file.exists()}
    return {companion: (stat.st_mtime_ns, stat.st_size) for companion, stat in stats.items()}


def _read_rows(connection: sqlite3.Connection, id: str) -> list[Row]:
    query = "SELECT id, memory_text, date_added, metadata_json FROM memories WHERE discussion_id = ? ORDER BY id"
    return [Row(number, *map(_as_text, others)) for number, *others in connection.execute(query, [id])]


def _read_hashes(connection: sqlite3.Connection, id: str, tables: Iterable[str]) -> Iterator[LoggedHash]:
    """The tracker comes first: where there is a log too, that is the younger of the two."""
    for table, columns, keys, _ in _PROGRESS.values():
        if table in tables:
            order = " ORDER BY id" if keys.startswith("id ") else ""
            rows = connection.execute(f"SELECT {columns} FROM {table} WHERE discussion_id = ?{order}", [id])
            yield from (LoggedHash(_as_text(hash), _as_text(time)) for hash, time in rows if hash)


def _as_text(value: Any) -> str:
    return "" if value is None else value.decode() if isinstance(value, bytes) else str(value)


def write_database(path: Path, id: str, database: Database, layout: Layout) -> None:
    """Bring a database up to date in one step.

    It is changed in place, since another program may have it open. What belongs to other discussions stays, and so do
    vectors of memories that did not change.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")  # what was forgotten is not to be read from free pages
            connection.execute("BEGIN IMMEDIATE")
            _write(connection, id, database, layout)
            connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise StoreBusyError(f"{path} is held by another program: try again") from None
        raise InputError(f"{path} cannot be written: {error}") from None


def _write(connection: sqlite3.Connection, id: str, database: Database, layout: Layout) -> None:
    table, named, schema, most = _PROGRESS[layout]
    for statement in filter(str.strip, _SCHEMA.split(";")):
        connection.execute(statement)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({schema})")
    old = {row.id: row for row in _read_rows(connection, id)}
    taken = {row[0] for row in connection.execute("SELECT id FROM memories WHERE discussion_id != ?", [id])}
    rows = number_rows(database.rows, old, taken)
    changed = [row for row in rows if row.id not in old or old[row.id] != row]
    outdated = {*(old.keys() - {row.id for row in rows}), *(row.id for row in changed)}
    for number in outdated:
        connection.execute("DELETE FROM memories WHERE id = ?", [number])
        connection.execute("DELETE FROM memories_fts WHERE rowid = ?", [number])
        connection.execute("DELETE FROM memory_embeddings WHERE memory_id = ?", [number])
    connection.executemany(
        "INSERT INTO memories (id, discussion_id, memory_text, date_added, metadata_json) VALUES (?, ?, ?, ?, ?)",
        [(row.id, id, row.text, row.date, row.metadata or None) for row in changed],
    )
    known = {column[1] for column in connection.execute("PRAGMA table_info(memories_fts)")}
    columns = [*_REQUIRED, *[name for name in _TEXT_COLUMNS if name in known][:1]]
    connection.executemany(
        f"INSERT INTO memories_fts (rowid, {', '.join(columns)}) VALUES (?{', ?' * len(columns)})",
        [(row.id, *_searched_fields(row)[: len(columns)]) for row in changed],
    )
    if old.keys() & outdated:
        connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('optimize')")  # drops words of rows gone
    kept = tuple(database.hashes[-most:])
    if tuple(_read_hashes(connection, id, {table})) != kept:
        connection.execute(f"DELETE FROM {table} WHERE discussion_id = ?", [id])
        statement = f"INSERT INTO {table} (discussion_id, {named}) VALUES (?, ?, ?)"
        connection.executemany(statement, [(id, *each) for each in kept])


def number_rows(rows: Sequence[Row], old: Mapping[int, Row], taken: Iterable[int] = ()) -> list[Row]:
    """Give each row an id: its own one if that is free, that of the same row in the database, or a new one."""
    used = set(taken)
    last = max([*used, *old, *(row.id for row in rows)], default=0)
    own: dict[int, int] = {}
    for place, row in enumerate(rows):
        if row.id and row.id not in used:
            own[place] = row.id
            used.add(row.id)
    known: dict[tuple[Any, ...], list[int]] = {}
    for number in sorted(old.keys() - used, reverse=True):
        known.setdefault(old[number][1:], []).append(number)
    numbered = []
    for place, row in enumerate(rows):
        if place not in own:
            same = known.get(row[1:])
            own[place] = same.pop() if same else (last := last + 1)
        numbered.append(row._replace(id=own[place]))
    return numbered


def _searched_fields(row: Row) -> list[str]:
    """What the full-text index holds of a row: lists joined by blanks, without quotation marks."""
    try:
        fields = json.loads(row.metadata or "{}")
    except ValueError:
        fields = {}
    values = [fields.get(name) if isinstance(fields, dict) else None for name in _REQUIRED]
    words = [" ".join(map(str, each)).replace('"', "") if isinstance(each, list) else _as_text(each) for each in values]
    return [*words, row.text]


def read_row(row: Row) -> tuple[KeywordMemory | None, str]:
    """The memory that a row holds, and what is odd about it. None: it has no words."""
    fields, fault = _parse_metadata(row)
    if not (text := _row_text(row, fields)):
        return None, f"row {row.id} holds no words: it is left out"
    time = _parse_date(row.date)
    lists = {name: fields[name] if isinstance(fields.get(name), list) else [] for name in _LISTS}
    odd = [name for name in _LISTS if not isinstance(fields.get(name, []), list)]
    faults = [fault] if fault else [f"has no {name}" for name in _REQUIRED if name not in fields]
    faults += [f"has an odd {name}" for name in odd] + ["has no date"] * (time is None)
    memory = KeywordMemory(
        title=_as_words(fields.get("title")),
        summary=text,
        entities=tuple(map(_as_words, lists["entities"])),
        key_phrases=tuple(map(_as_words, lists["key_phrases"])),
        topics=tuple(map(_as_words, lists["topics"])),
        sentiment=_as_words(fields.get("sentiment")),
        extra={_ROW: list(row)},
        time=time,
    )
    return memory, f"row {row.id} {', '.join(faults)}: it is kept as it is" if faults else ""


def write_row(memory: KeywordMemory) -> Row:
    """The row that a memory becomes: that which it was read from, if it says the same. Its id is 0 if it has none."""
    row, fields = Row(0, "", "", ""), dict[str, Any]()
    if _ROW in memory.extra:
        row = Row(*memory.extra[_ROW])
        fields, _ = _parse_metadata(row)
        if _row_text(row, fields) == memory.summary:
            return row
    named = {name: getattr(memory, name) for name in (*_REQUIRED, "sentiment", "topics")}
    fields |= {name: value for name, value in named.items() if value or name in _REQUIRED}
    fields |= {name: value for name, value in memory.extra.items() if name != _ROW}
    date = row.date or (memory.moment.isoformat() if memory.moment else "")
    return Row(row.id, memory.summary, date, json.dumps(fields))


def _row_text(row: Row, fields: Mapping[str, Any]) -> str:
    words = [row.text, _as_words(fields.get("summary")), _as_words(fields.get("title"))]
    return next(filter(str.strip, words), "")


def _parse_metadata(row: Row) -> tuple[dict[str, Any], str]:
    try:
        fields = parse_json(row.metadata, "metadata_json") if row.metadata else None
        return (dict(check_metadata(fields)), "") if isinstance(fields, dict) else ({}, "has no metadata")
    except InputError:
        return {}, "has metadata that is no JSON"


def _parse_date(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except InputError:
        return None


def _as_words(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
