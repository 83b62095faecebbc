"""The embedded store: one SQLite file in WAL mode, safe with many threads and processes."""

import atexit
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeVar
from weakref import WeakSet

from eunoe.errors import DamagedStoreError, InputError, ReplacedStoreError, StoreBusyError, StoreError
from eunoe.files import NEW_FILE_MODE
from eunoe.model.arguments import utc_now
from eunoe.model.result import BackupReport, Damage
from eunoe.model.scope import Scope
from eunoe.store import sqlite_bytes
from eunoe.store.backup import write_backup
from eunoe.store.contract import CopyProgress, R, Reading, Writing
from eunoe.store.schema import APPLICATION_ID, CURSOR_KEY, SCHEMA, SQLITE, KeptIndexPart, ddl
from eunoe.store.sql import SqlReading, SqlWriting
from eunoe.store.sqlite_files import (
    BACKUP_VALUE,
    DAMAGE_ADVICE,
    STAMP_VALUE,
    Companions,
    FileReplacedError,
    FilesChangedError,
    FileStamp,
    OpenFiles,
    check_is_store,
    check_schema,
    check_version,
    error_code,
    file_size,
    renewed,
    rescue,
    store_error,
    tells_damage,
)
from eunoe.store.statements import ENDED, Connection, NoConnection, SqlStore


class ConnectionCloser:
    """Closes the connection of a thread when the thread ends."""

    def __init__(self, connection: sqlite3.Connection, connections: list[sqlite3.Connection]) -> None:
        self._connection = connection
        self._connections = connections
        connections.append(connection)

    def __del__(self) -> None:
        with suppress(ValueError):
            self._connections.remove(self._connection)
        self._connection.close()


Begun = TypeVar("Begun", bound=SqlReading)

_SQLITE_ERRORS: Final = (sqlite3.Error, FilesChangedError, UnicodeError)
TIMEOUT_SECONDS: Final = 120.0
"""How long a writer waits for others. A batch of thousands of memories takes seconds, not minutes."""

_INNER_STEP: Final = "a step of a store cannot begin another one: end it first, or do it in the same"
_LOCK_SECONDS: Final = 5
"""How long SQLite itself waits for a lock before it is asked again."""
_CHECKPOINT_POLL_SECONDS: Final = 0.01
_MARK_TRIES: Final = 5
"""A reader may be in the way of the first. Where one always is, it belongs to a process that has marked the file."""


class SqliteStore(SqlStore):
    """A store in one file. Each thread has a connection of its own; writers queue, readers never wait."""

    dialect = SQLITE
    keeps_indexes = True

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True, timeout: float = TIMEOUT_SECONDS) -> None:
        super().__init__()
        # SQLite puts the log beside the file itself, not beside a link to it.
        self.path = Path(os.path.realpath(path))
        self.target = str(path)
        self.schema = SCHEMA
        self._durable = durable
        self._timeout = timeout
        self._writer = threading.RLock()
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._refusal: StoreError | None = None
        self._files: OpenFiles | None = None
        self._companions: Companions | None = None
        self._mark_tries = _MARK_TRIES
        _stores.add(self)
        try:
            with self._typed_errors():
                self._open_file()
                self._migrate()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise StoreError(f"{self.target} cannot be opened: {error.strerror}") from error
            raise

    def read(self, scopes: Sequence[Scope], step: Callable[[Reading], R]) -> R:
        if outer := getattr(self._local, "step", None):
            if isinstance(outer, SqlWriting):
                raise StoreError(_INNER_STEP)
            # Who is told how far an export or a check is may look at the store: that is a step of its own.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(self.read, scopes, step).result()
        try:
            try:
                return step(self._begin(SqlReading, "BEGIN"))
            finally:
                self._end()
        except _SQLITE_ERRORS as error:
            raise self._typed(error) from error

    def write(self, scopes: Sequence[Scope], step: Callable[[Writing], R], *, timeout: float | None = None) -> R:
        if getattr(self._local, "step", None):
            raise StoreError(_INNER_STEP)
        with self._typed_errors(), self._writer_turn(timeout):
            try:
                writing = self._begin(SqlWriting, "BEGIN IMMEDIATE", timeout)
                connection = self._connection()
                before = connection.total_changes
                result = step(writing)
                has_changed = self._durable and connection.total_changes != before
                if has_changed:
                    writing.set_value(STAMP_VALUE, renewed(writing.get_value(STAMP_VALUE)))
                    if self._mark_tries and writing.get_value(BACKUP_VALUE):
                        writing.set_value(BACKUP_VALUE, "")  # from here on it is a store of its own
                writing.finish()
                writing.connection.execute("COMMIT")
            finally:
                self._end()
            if has_changed and self._mark_tries:
                self._mark_file()
        return result

    def _begin(self, kind: type[Begun], sql: str, timeout: float | None = None) -> Begun:
        """Begin a step. The first read takes the snapshot; it may have to wait for another process to recover the
        file."""
        connection = self._connection()
        self._retry(connection, sql, timeout)
        version = self._retry(connection, "PRAGMA user_version", timeout).fetchone()[0]
        self._look_at_files()
        check_version(self.target, version)
        self._local.step = step = kind(self, connection)
        return step

    def _end(self) -> None:
        """End the step of this thread; what was not committed has never happened."""
        if step := getattr(self._local, "step", None):
            step.connection = ENDED
            self._local.step = None
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        try:
            if connection and not self._refusal and connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:
            self._release_connection()

    def _mark_file(self) -> None:
        """Have the stamp of the first write in the file itself.

        A copy that was made before has another one, so that the log of this store is never taken for its own.
        """
        self._mark_tries -= 1
        with suppress(sqlite3.Error):  # what was written is durable all the same
            if not self._checkpoint("TRUNCATE")[0]:
                self._mark_tries = 0

    def scrub(self, timeout: float | None = None) -> None:
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        page_size = self.read((), lambda _: self._page_size())  # the files are looked at
        with self._typed_errors():
            self._empty_log(deadline)
            deleted = set(self.deleted)
            if sqlite_bytes.has_leftovers(self._read_blocks(), page_size, deleted):
                with self._writer_turn(_seconds_until(deadline)):
                    self._retry(self._connection(), "VACUUM", _seconds_until(deadline))
                self._empty_log(deadline)
            self.deleted -= deleted

    def _empty_log(self, deadline: float) -> None:
        """Move everything from the write-ahead log into the file. Who reads is waited for, and holds no writer up."""
        while True:
            busy, pages, done = self._checkpoint("PASSIVE")
            if not busy and pages == done:
                with self._writer_turn(_seconds_until(deadline)):
                    if not self._checkpoint("TRUNCATE")[0]:
                        return
            if time.monotonic() > deadline:
                raise StoreBusyError(
                    f"the write-ahead log of {self.target} cannot be emptied: another process keeps reading. "
                    "Try again when it ends"
                )
            time.sleep(_CHECKPOINT_POLL_SECONDS)

    def _checkpoint(self, mode: str) -> tuple[int, int, int]:
        """Move the log into the file without waiting for anybody: whether that was in vain, its pages, those moved."""
        connection = self._connection()
        patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            row: tuple[int, int, int] = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            return row
        finally:
            connection.execute(f"PRAGMA busy_timeout = {patience}")
            self._release_connection()

    def _page_size(self) -> int:
        size: int = self._connection().execute("PRAGMA page_size").fetchone()[0]
        return size

    def backup(self, target: Path, progress: CopyProgress | None = None) -> BackupReport:
        mark = partial(mark_copy, is_backup=True)
        return self.read((), lambda _: write_backup(self._connection(), target, mark, progress))

    def find_traces(self, texts: Sequence[str | bytes]) -> dict[str | bytes, list[str]]:
        traces: dict[str | bytes, list[str]] = {}

        def search_tables(_: Reading) -> int:
            for text, place in self._table_traces(texts):
                traces.setdefault(text, []).append(place)
            return self._page_size()

        page_size = self.read((), search_tables)
        # SQLite writes text as UTF-8, so the bytes of a deleted text would stand in the file as they are.
        for name, blocks in self._file_blocks():
            for text in sqlite_bytes.find_in_blocks(blocks, texts):
                traces.setdefault(text, []).append(f"file {name}")
        # Those too short to be searched for in a whole file are looked for where it should hold nothing.
        for text in sqlite_bytes.find_unused(self._read_blocks(), page_size, texts):
            if text not in traces:
                traces[text] = [f"unused bytes of {self.path.name}"]
        return traces

    def tells_damage(self, error: Exception) -> bool:
        is_unreadable = isinstance(error, MemoryError | UnicodeDecodeError)
        return is_unreadable or (isinstance(error, sqlite3.Error) and tells_damage(error))

    def structure_damage(self, connection: Connection) -> Iterator[Damage]:
        try:
            rows = connection.execute("PRAGMA integrity_check").fetchall()
        except Exception as error:
            if not self.tells_damage(error):
                raise
            rows = [(str(error),)]
        yield from (Damage("file", "", "", " ".join(text.split())) for (text,) in rows if text != "ok")

    def _table_traces(self, texts: Sequence[str | bytes]) -> Iterator[tuple[str | bytes, str]]:
        execute = self._connection().execute
        for (table,) in execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            for column in execute(f'PRAGMA table_info("{table}")').fetchall():
                values = execute(f'SELECT "{column[1]}" FROM "{table}"')
                for text in sqlite_bytes.find_in_values(map(_value_bytes, values), texts):
                    yield text, f"{table}.{column[1]}"

    def close(self) -> None:
        self.check_files()
        with self._writer:
            self._refusal = StoreError(f"{self.target} was closed: open it again")
            self._close_connections()
            if self._files:
                sqlite_bytes.release(self._files.key)
                self._files = None

    def check_files(self) -> None:
        """Save what can be saved if the files were replaced or taken away, so that closing does no harm."""
        if self._connections and not self._refusal:
            with suppress(StoreError), self._typed_errors():
                self._look_at_files()

    def _close_connections(self) -> None:
        for connection in list(self._connections):
            connection.close()
        self._connections.clear()

    def size(self) -> int:
        return sum(map(file_size, self._all_files()))

    def _all_files(self) -> list[Path]:
        return [self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-journal"))]

    def _file_blocks(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """The files of the database with words in them, by name, in blocks of bytes."""
        for path in self._all_files():
            yield path.name, self._read_blocks() if path == self.path else sqlite_bytes.read_file(path)

    def _read_blocks(self) -> Iterator[bytes]:
        if self._files is None:
            raise self._refusal or StoreError(f"{self.target} is not open")
        return sqlite_bytes.read_blocks(self._files.key)

    def _open_file(self) -> None:
        """Make the file if there is none, for its owner alone, and note which file it is."""
        check_is_store(self.path)
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, NEW_FILE_MODE))
        self._files = OpenFiles(self.path, sqlite_bytes.hold(self.path))
        # One that no thread uses: with the last one SQLite removes the log, while another thread may be opening it.
        self._connections.append(self._connect())

    def _migrate(self) -> None:
        if self.read((), lambda _: self._version()) < SCHEMA:
            self.write((), self._migrate_in_step)

    def _version(self) -> int:
        version: int = self._connection().execute("PRAGMA user_version").fetchone()[0]
        return version

    def _migrate_in_step(self, store: Writing) -> None:
        connection = self._connection()
        check_schema(self.path, connection)
        if self._version():  # another process was quicker
            return
        for statement in ddl(SQLITE):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        store.set_value(CURSOR_KEY, token_hex(16))

    def _connection(self) -> sqlite3.Connection:
        self._check_usable()
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            self._local.connection = connection = self._connect()
            self._local.closer = ConnectionCloser(connection, self._connections)
        return connection

    def _release_connection(self) -> None:
        """Give back a connection that is needed no more; here each thread has its own."""

    def _check_usable(self) -> None:
        if self._refusal:
            raise _copy_of(self._refusal)

    def _connect(self) -> sqlite3.Connection:
        if not self._connections:  # whoever closes a store last takes the log away
            self._companions = None
        connection = sqlite3.connect(
            self.path, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            self._open_log(connection)
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA cache_size = -16000")  # KiB; a stream of 10,000 memories is read from it
            connection.execute("PRAGMA wal_autocheckpoint = 4000")  # pages; an fsync of the file every 16 MB
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_log(self, connection: sqlite3.Connection) -> None:
        """Let SQLite find the log, while no other file can take the name of the one it belongs to."""
        if self._files is None:
            return
        with sqlite_bytes.in_place(self._files.key, self._timeout):
            self._check_file_in_place()
            self._retry(connection, "PRAGMA journal_mode = WAL")
            # From the first read on SQLite itself keeps the file locked.
            self._retry(connection, "PRAGMA user_version").fetchone()

    def _look_at_files(self) -> None:
        """Refuse to read or write where files were replaced or taken away: what is written would be lost."""
        if self._files is None:
            return
        if self._companions is None:
            self._check_file_in_place()  # otherwise they are another file's, and not to be touched
            self._companions = self._files.companions()
        self._files.check(self._companions)

    def _check_file_in_place(self) -> None:
        """Refuse a connection to a file that took the place of the one that was opened."""
        with suppress(FileNotFoundError):
            if self._files is None or sqlite_bytes.file_key(os.stat(self.path)) == self._files.key:
                return
        raise FileReplacedError

    def _give_up(self, change: FilesChangedError) -> StoreError:
        """Save what a connection still sees, and use the files no more."""
        with self._writer:
            if self._refusal is None and self._files is not None:
                said = "was replaced while it was opened"
                # One that is free can empty the log; one that is inside a transaction can only be copied.
                connections = sorted(self._connections, key=lambda connection: connection.in_transaction)
                if connections and self._companions:
                    said = rescue(change, self._files, self._companions, connections)
                self._refusal = ReplacedStoreError(f"{self.target} {said}. Open it again")
                self._close_connections()
        return _copy_of(self._refusal or StoreError(f"{self.target} is not open"))

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

    def _retry(self, connection: sqlite3.Connection, sql: str, timeout: float | None = None) -> sqlite3.Cursor:
        """Ask again when SQLite gives up on a lock; a caller should not have to know."""
        start = time.monotonic()
        while True:
            try:
                return connection.execute(sql)
            except sqlite3.OperationalError as error:
                is_locked = error_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not is_locked or time.monotonic() > start + (self._timeout if timeout is None else timeout):
                    raise

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except _SQLITE_ERRORS as error:
            raise self._typed(error) from error

    def _typed(self, error: BaseException) -> StoreError | InputError:
        """What went wrong, as it is told."""
        if isinstance(error, FilesChangedError):
            return self._give_up(error)
        if isinstance(error, UnicodeEncodeError):
            return InputError(f"{error.object!r} is no text: half of a surrogate pair cannot be written")
        if isinstance(error, UnicodeDecodeError):  # a statement of the schema, in an error that quotes it
            return DamagedStoreError(f"{self.target} is damaged ({error.reason}): {DAMAGE_ADVICE}")
        self.check_files()  # what looks like damage may be another file
        assert isinstance(error, sqlite3.Error)
        return _copy_of(self._refusal) if self._refusal else store_error(error, self.target)


def mark_copy(path: Path, *, is_backup: bool) -> None:
    """Give a copy of a store a stamp of its own, and note whether it is kept as a backup."""

    def mark(writing: Writing) -> None:
        writing.set_value(STAMP_VALUE, FileStamp.first().text)
        writing.set_value(BACKUP_VALUE, utc_now().isoformat(timespec="seconds") if is_backup else "")
        writing.drop(KeptIndexPart)  # made anew where it is wanted

    store = SqliteStore(path, durable=False)
    try:
        store.write((), mark)
    finally:
        store.close()


_stores: Final[WeakSet[SqliteStore]] = WeakSet()


def _refuse_in_child() -> None:
    """Keep a forked process from using a connection of its parent, even in a block that is open."""
    for store in _stores:
        refusal = f"{store.target} was opened before the process forked: open it again in the child"
        store._refusal = StoreError(refusal)
        if step := getattr(store._local, "step", None):
            step.connection = NoConnection(refusal)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_refuse_in_child)


@atexit.register
def _check_all_files() -> None:
    """Python closes the connections of a store that was not closed, and SQLite then writes the log into the file."""
    for store in list(_stores):
        store.check_files()


def _seconds_until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _copy_of(error: StoreError) -> StoreError:
    """The same error to be raised anew, without where it was raised before."""
    return type(error)(*error.args)


def _value_bytes(row: tuple[Any]) -> bytes:
    value = row[0]
    return value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else b""
