"""The database of keyword memories as other programs have it, read without touching it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError, StoreBusyError

_COMPANIONS: Final = ("", "-wal", "-journal")
_ATTEMPTS: Final = 5
"""A file that changes while it is copied is copied again."""


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
    embeddings: int = 0

    @property
    def digest(self) -> str:
        """By which it is recognised as it was read or written."""
        return sha256(repr((self.rows, self.hashes)).encode()).hexdigest()


def read_database(path: Path, id: str) -> Database:
    """Read what belongs to a discussion. The file and its folder stay as they are."""
    try:
        with _copy(path) as copy, closing(sqlite3.connect(copy)) as connection:
            _check(connection, path)
            return _read(connection, id)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def read_rows(connection: sqlite3.Connection, id: str) -> list[Row]:
    """The memories of a discussion, in the order of their ids."""
    query = "SELECT id, memory_text, date_added, metadata_json FROM memories WHERE discussion_id = ? ORDER BY id"
    rows = connection.execute(query, [id])
    return [Row(number, _as_text(text), _as_text(date), _as_text(fields)) for number, text, date, fields in rows]


def read_hashes(connection: sqlite3.Connection, id: str, tables: set[str]) -> Iterator[LoggedHash]:
    """The tracker comes first: where there is a log too, that is the younger of the two."""
    if "vector_memory_tracker" in tables:
        columns = "last_checked_message_hash, last_updated"
        rows = connection.execute(f"SELECT {columns} FROM vector_memory_tracker WHERE discussion_id = ?", [id])
        yield from (LoggedHash(_as_text(hash), _as_text(time)) for hash, time in rows if hash)
    if "vector_memory_hash_log" in tables:
        query = "SELECT message_hash, timestamp FROM vector_memory_hash_log WHERE discussion_id = ? ORDER BY id"
        yield from (LoggedHash(_as_text(hash), _as_text(time)) for hash, time in connection.execute(query, [id]))


def _read(connection: sqlite3.Connection, id: str) -> Database:
    tables = _tables(connection)
    hashes = tuple(read_hashes(connection, id, tables))
    if "memories" not in tables:
        return Database(hashes=hashes)
    rows = tuple(read_rows(connection, id))
    (total,) = connection.execute("SELECT count(*) FROM memories").fetchone()
    return Database(rows, hashes, total - len(rows), _count_embeddings(connection, id, tables))


def _count_embeddings(connection: sqlite3.Connection, id: str, tables: set[str]) -> int:
    if "memory_embeddings" not in tables:
        return 0
    query = "SELECT count(*) FROM memory_embeddings JOIN memories ON id = memory_id WHERE discussion_id = ?"
    return int(connection.execute(query, [id]).fetchone()[0])


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _check(connection: sqlite3.Connection, path: Path) -> None:
    fault = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if fault != "ok":
        raise InputError(f"{path} is damaged: {fault}")
    if (tables := _tables(connection)) and "memories" not in tables and not tables & {"vector_memory_tracker"}:
        raise InputError(f"{path} is no database of memories: its tables are {', '.join(sorted(tables))}")


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


def _as_text(value: Any) -> str:
    return "" if value is None else value.decode() if isinstance(value, bytes) else str(value)
