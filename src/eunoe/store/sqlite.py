"""The embedded store: one SQLite file in WAL mode, safe with many threads and processes."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from eunoe.errors import (
    DamagedStoreError,
    InputError,
    NewerStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)
from eunoe.store import file_bytes
from eunoe.store.migrations import APPLICATION_ID, MIGRATIONS
from eunoe.store.sql import OUTSIDE, NoConnection, SqlStore

TIMEOUT_SECONDS: Final = 120.0
"""How long a writer waits for others. A batch of thousands of memories takes seconds, not minutes."""

_LOCK_SECONDS: Final = 5
"""How long SQLite itself waits for a lock before it is asked again."""
_CHECKPOINT_POLL_SECONDS: Final = 0.01
_FULL_DISK_CODES: Final = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
"""A quota or a limit on file sizes fails a write, a disk that is full at opening fails to grow shared memory."""


class SqliteStore(SqlStore):
    """A store in one file. Each thread has a connection of its own; writers queue, readers never wait."""

    _index_hint = " INDEXED BY {}"

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True, timeout: float = TIMEOUT_SECONDS) -> None:
        super().__init__()
        # SQLite puts the log beside the file itself, not beside a link to it.
        self.path = Path(os.path.realpath(path))
        self.target = str(path)
        self.schema = len(MIGRATIONS)
        self._durable = durable
        self._timeout = timeout
        self._writer = threading.RLock()
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._refusal = ""
        self._file: file_bytes.FileKey | None = None
        _stores.add(self)
        try:
            with self._typed_errors():
                _check_is_store(self.path)
                self._migrate()
                self._file = file_bytes.hold(self.path)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise StoreError(f"{self.target} cannot be opened: {error.strerror}") from error
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        if self._block.connection is not OUTSIDE:
            yield  # inside another block of this thread: part of it
            return
        # The first read takes the snapshot; it may have to wait for another process to recover the file.
        with self._typed_errors(), self._transaction("BEGIN", "PRAGMA user_version", end="ROLLBACK"):
            yield

    @contextmanager
    def writing(self, timeout: float | None = None) -> Iterator[None]:
        with self._typed_errors(), self._writer_turn(timeout):
            if self._block.connection is not OUTSIDE:
                raise StoreError("a write cannot begin inside another block of the same thread: end that one first")
            with self._transaction("BEGIN IMMEDIATE", end="COMMIT", timeout=timeout):
                self._check_file_in_place()
                yield

    def scrub(self, timeout: float | None = None) -> None:
        timeout = self._timeout if timeout is None else timeout
        with self._typed_errors(), self._writer_turn(timeout):
            connection = self._connection()
            self._empty_log(connection, timeout)
            if file_bytes.has_leftovers(self._read_blocks(), connection.execute("PRAGMA page_size").fetchone()[0]):
                self._retry(connection, "VACUUM", timeout)
                self._empty_log(connection, timeout)

    def _empty_log(self, connection: sqlite3.Connection, timeout: float) -> None:
        """Move everything from the write-ahead log into the file."""
        deadline = time.monotonic() + timeout
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > deadline:
                raise StoreBusyError(
                    f"the write-ahead log of {self.target} cannot be emptied: another process keeps reading. "
                    "Try again when it ends"
                )
            time.sleep(_CHECKPOINT_POLL_SECONDS)

    def find_traces(self, texts: Sequence[str]) -> dict[str, list[str]]:
        traces: dict[str, list[str]] = {}
        with self.reading():
            for text, place in self._table_traces(texts):
                traces.setdefault(text, []).append(place)
        # SQLite writes text as UTF-8, so the bytes of a deleted text would stand in the file as they are.
        for path in self._files():
            blocks = self._read_blocks() if path == self.path else _read_log(path)
            for text in file_bytes.find_in_blocks(blocks, texts):
                traces.setdefault(text, []).append(f"file {path.name}")
        return traces

    def _table_traces(self, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
        execute = self._connection().execute
        for (table,) in execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            for column in execute(f'PRAGMA table_info("{table}")').fetchall():
                values = execute(f'SELECT "{column[1]}" FROM "{table}"')
                for text in file_bytes.find_in_values(map(_value_bytes, values), texts):
                    yield text, f"{table}.{column[1]}"

    def close(self) -> None:
        with self._writer:
            self._refusal = f"{self.target} was closed: open it again"
            for connection in list(self._connections):
                connection.close()
            self._connections.clear()
            if self._file:
                file_bytes.release(self._file)
                self._file = None

    def _size(self) -> int:
        return sum(map(_file_size, self._files()))

    def _files(self) -> list[Path]:
        return [self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-journal"))]

    def _read_blocks(self) -> Iterator[bytes]:
        if self._file is None:
            raise StoreError(self._refusal)
        return file_bytes.read_blocks(self._file, self.path)

    def _migrate(self) -> None:
        with self.reading():
            done = self._connection().execute("PRAGMA user_version").fetchone()[0]
        if done == len(MIGRATIONS):
            return
        with self.writing():
            connection = self._connection()
            _check_stamp(self.path, connection)
            done = connection.execute("PRAGMA user_version").fetchone()[0]  # another process may have been quicker
            for migration in MIGRATIONS[done:]:
                migration(connection)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _connection(self) -> sqlite3.Connection:
        if self._refusal:
            raise StoreError(self._refusal)
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            self._local.connection = connection = self._connect()
            self._local.closer = _ConnectionCloser(connection, self._connections)
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            self._retry(connection, "PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA cache_size = -16000")  # KiB; a stream of 10,000 memories is read from it
            connection.execute("PRAGMA wal_autocheckpoint = 4000")  # pages; an fsync of the file every 16 MB
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _transaction(self, *begin: str, end: str, timeout: float | None = None) -> Iterator[None]:
        connection = self._connection()
        try:
            for sql in begin:
                self._retry(connection, sql, timeout)
            self._block.connection = connection
            yield
            self._block.connection.execute(end)
        finally:
            self._block.connection = OUTSIDE
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @contextmanager
    def _writer_turn(self, timeout: float | None) -> Iterator[None]:
        """Let the writers of this process queue, and SQLite wait for others no longer than there is time."""
        if not self._writer.acquire(timeout=-1 if timeout is None else timeout):
            raise StoreBusyError(f"{self.target} is held by another thread that writes: try again")
        try:
            if timeout is None:
                yield
                return
            connection = self._connection()
            connection.execute(f"PRAGMA busy_timeout = {int(min(timeout, _LOCK_SECONDS) * 1000)}")
            try:
                yield
            finally:
                connection.execute(f"PRAGMA busy_timeout = {_LOCK_SECONDS * 1000}")
        finally:
            self._writer.release()

    def _check_file_in_place(self) -> None:
        """Refuse to write into a file that was deleted or put aside: it would be acknowledged and lost."""
        with suppress(FileNotFoundError):
            stat = os.stat(self.path)
            if self._file in (None, (stat.st_dev, stat.st_ino)):
                return
        raise StoreError(f"{self.target} was deleted or replaced while it was open: open it again")

    def _retry(self, connection: sqlite3.Connection, sql: str, timeout: float | None = None) -> None:
        """Ask again when SQLite gives up on a lock; a caller should not have to know."""
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        while True:
            try:
                connection.execute(sql)
                return
            except sqlite3.OperationalError as error:
                is_locked = _error_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not is_locked or time.monotonic() > deadline:
                    raise

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise (StoreError(self._refusal) if self._refusal else _store_error(error, self.target)) from error
        except UnicodeEncodeError as error:
            raise InputError(f"{error.object!r} is no text: half of a surrogate pair cannot be written") from error


_stores: Final[WeakSet[SqliteStore]] = WeakSet()


def _refuse_in_child() -> None:
    """Keep a forked process from using a connection of its parent, even in a block that is open."""
    for store in _stores:
        store._refusal = f"{store.target} was opened before the process forked: open it again in the child"
        if store._block.connection is not OUTSIDE:
            store._block.connection = NoConnection(store._refusal)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_refuse_in_child)


class _ConnectionCloser:
    """Closes the connection of a thread when the thread ends."""

    def __init__(self, connection: sqlite3.Connection, connections: list[sqlite3.Connection]) -> None:
        self._connection = connection
        self._connections = connections
        connections.append(connection)

    def __del__(self) -> None:
        with suppress(ValueError):
            self._connections.remove(self._connection)
        self._connection.close()


def _check_is_store(path: Path) -> None:
    """Refuse what is not ours before SQLite has a chance to touch it."""
    if path.is_dir():
        raise NotAStoreError(f"{path} is a folder: name a file in it, such as {path / 'memory.db'}")
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist: make it first")
    if not _file_size(path):
        _check_writable(path.parent if not path.exists() else path)
        return
    # First as if nobody used it, which leaves nothing beside a file that is none of our business.
    _check_header(path, "immutable=1")
    if _file_size(path.with_name(f"{path.name}-wal")):
        _check_header(path, "mode=ro")
    _check_writable(path)
    _check_writable(path.parent)


def _check_header(path: Path, mode: str) -> None:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_LOCK_SECONDS)
    try:
        connection.execute("BEGIN")  # one snapshot: another process may be making the file right now
        _check_stamp(path, connection)
    except sqlite3.DatabaseError as error:
        # Seen while another process moves pages about, a sound file may look damaged: the real opening will tell.
        if _error_code(error) == sqlite3.SQLITE_NOTADB:
            raise
    finally:
        connection.close()


def _check_stamp(path: Path, connection: sqlite3.Connection) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        if application or version or connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise NotAStoreError(f"{path} is another program's SQLite database; it was left as it is")
    elif version > len(MIGRATIONS):
        raise NewerStoreError(
            f"{path} was written by a newer Eunoe (schema {version}, this one knows {len(MIGRATIONS)}): "
            "upgrade with pip install -U eunoe"
        )


def _read_log(path: Path) -> Iterator[bytes]:
    with suppress(FileNotFoundError), path.open("rb") as file:
        yield from iter(lambda: file.read(file_bytes.BLOCK_BYTES), b"")


def _file_size(path: Path) -> int:
    """0 if there is no such file: another process that ends takes its log with it at any moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_writable(path: Path) -> None:
    # Root may write anywhere, so the permission bits are asked too: a file marked read-only was marked on purpose.
    is_marked = path.is_file() and not path.stat().st_mode & 0o222
    if is_marked or not os.access(path, os.W_OK):
        raise ReadOnlyStoreError(f"{path} is read-only: make it writable or copy the store elsewhere")


def _value_bytes(row: tuple[Any]) -> bytes:
    value = row[0]
    return value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else b""


def _error_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _store_error(error: sqlite3.Error, target: str) -> StoreError:
    match _error_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusyError(f"{target} is held by another writer for too long: try again, or end that process")
        case sqlite3.SQLITE_FULL:
            return StoreFullError(f"no room left for {target}: the write was rolled back; free some space")
        case sqlite3.SQLITE_IOERR if getattr(error, "sqlite_errorcode", 0) in _FULL_DISK_CODES:
            return StoreFullError(f"no room left for {target}: the write was rolled back; free some space or a quota")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return ReadOnlyStoreError(f"{target} cannot be opened for writing ({error})")
        case sqlite3.SQLITE_NOTADB:
            return NotAStoreError(f"{target} is not a Eunoe store; it was left as it is: name another file")
        case sqlite3.SQLITE_CORRUPT:
            return DamagedStoreError(f"{target} is damaged ({error}): restore a copy, or export what can be read")
        case _:
            return StoreError(f"{target}: {error}")
