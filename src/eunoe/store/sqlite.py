"""The embedded store: one SQLite file in WAL mode, safe with many threads and processes."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

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
from eunoe.store import handles
from eunoe.store.contract import Bearer, Counts, EntryRow, Row, Store, StreamRow, Tombstone
from eunoe.store.migrations import APPLICATION_ID, STEPS
from eunoe.store.residue import leftovers, texts_in, texts_in_blocks
from eunoe.store.sqlite_books import SqliteBooks

PATIENCE = 120.0

_COLUMNS = ", ".join(Row._fields)
_ENTRY = ", ".join(f"i.{name}" for name in EntryRow._fields[:-1])
_FROM_HERE, _CHANGED, _REMOVED = range(3)
_REQUIRED = {"seq", "stream", "version", "kind", "id", "key", "text", "recorded"}
_NULLABLE = {"time", "valid_from", "valid_to", "retired", "position"}
_COUNTED = {"pending", "pinned"}
_OPTIONAL: dict[str, Any] = {
    name: None if name in _NULLABLE else 0 if name in _COUNTED else "" for name in Row._fields if name not in _REQUIRED
}
_WAITING = f"SELECT {_COLUMNS} FROM items INDEXED BY items_pending WHERE pending = 1 ORDER BY seq LIMIT ?"
_WAITING_HERE = (
    f"SELECT {_COLUMNS} FROM items INDEXED BY items_waiting WHERE pending = 1 AND stream = ? ORDER BY seq DESC LIMIT ?"
)
_CHUNK = 500
_TIMEOUT = 5
# A quota or a limit on file sizes shows as a failed write, a full disk at opening as shared memory that cannot grow.
_NO_ROOM = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
T = TypeVar("T")


class SqliteStore(Store):
    """A store in one file. Each thread has a connection of its own; writers queue, readers never wait."""

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True, patience: float = PATIENCE) -> None:
        # SQLite puts the log beside the file itself, not beside a link to it.
        self.path = Path(os.path.realpath(path))
        self.target = str(path)
        self.schema = len(STEPS)
        self.books = SqliteBooks(self._connection)
        self.marks = {}
        self._durable = durable
        self._patience = patience
        self._pid = os.getpid()
        self._local = threading.local()
        self._writer = threading.RLock()
        self._connections: list[sqlite3.Connection] = []
        self._closed = False
        self._handle: handles.Key | None = None
        try:
            with self._errors():
                _inspect(self.path)
                self._migrate()
                self._handle = handles.hold(self.path)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise StoreError(f"{self.target} cannot be opened: {error.strerror}") from error
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._errors():
            connection = self._connection()
            if _busy(connection):
                yield  # inside another step of this thread: part of it
                return
            connection.execute("BEGIN")
            try:
                # The first read takes the snapshot; it may have to wait for another process to recover the file.
                self._patiently(lambda: connection.execute("PRAGMA user_version"))
                yield
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def writing(self, patience: float | None = None) -> Iterator[None]:
        with self._errors(), self._turn(patience):
            connection = self._connection()
            if _busy(connection):
                raise StoreError("a write cannot begin inside another step of the same thread: end that one first")
            self._begin(connection, patience)
            try:
                self._check_place()
                yield
                connection.execute("COMMIT")
            except BaseException:
                self.marks.clear()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def stream(self, scope: str) -> StreamRow | None:
        row = self._one("SELECT id, scope, version, position FROM streams WHERE scope = ?", scope)
        return StreamRow._make(row) if row else None

    def make_stream(self, scope: str) -> StreamRow:
        self._do("INSERT OR IGNORE INTO streams (scope, version, position) VALUES (?, 0, 0)", scope)
        found = self.stream(scope)
        assert found is not None
        return found

    def streams(self, after: str = "", limit: int = 1000) -> list[StreamRow]:
        sql = "SELECT id, scope, version, position FROM streams WHERE scope > ? ORDER BY scope LIMIT ?"
        return [StreamRow._make(row) for row in self._all(sql, after, limit)]

    def advance(self, stream: int, messages: int = 0) -> StreamRow:
        sql = "UPDATE streams SET version = version + 1, position = position + ? WHERE id = ?"
        self._do(sql, messages, stream)
        row = self._one("SELECT id, scope, version, position FROM streams WHERE id = ?", stream)
        return StreamRow._make(row)

    def reserve(self, count: int) -> int:
        first = int(self.get_meta("next_seq") or 1)
        self.set_meta("next_seq", str(first + count))
        return first

    def insert(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        # Most rows leave most columns empty, and binding a column costs as much as writing one.
        used = [
            place
            for place, (name, values) in enumerate(zip(Row._fields, zip(*rows, strict=True), strict=True))
            if name not in _OPTIONAL or values.count(_OPTIONAL[name]) < len(rows)
        ]
        names = ", ".join(Row._fields[place] for place in used)
        self._many(f"INSERT INTO items ({names}) VALUES ({_marks(used)})", map(itemgetter(*used), rows))
        first: dict[tuple[int, int], int] = {}
        for row in rows:
            first[row.stream, row.version] = min(row.seq, first.get((row.stream, row.version), row.seq))
        self._note((stream, version, seq, _FROM_HERE) for (stream, version), seq in first.items())

    def replace(self, rows: Sequence[Row]) -> None:
        assignments = ", ".join(f"{name} = ?" for name in Row._fields[1:])
        self._many(f"UPDATE items SET {assignments} WHERE seq = ?", [(*row[1:], row[0]) for row in rows])
        self._note((row.stream, row.version, row.seq, _CHANGED) for row in rows)

    def delete(self, stream: int, seqs: Sequence[int], version: int) -> int:
        vectors = 0
        for part in _chunks(seqs):
            marks = _marks(part)
            models = [row[0] for row in self._all("SELECT id FROM models")]
            for model in models:
                vectors += self._do(f"DELETE FROM vectors WHERE model = ? AND seq IN ({marks})", model, *part)
            for table in ("uses", "readings"):
                self._do(f"DELETE FROM {table} WHERE seq IN ({marks})", *part)
            self._do(f"DELETE FROM items WHERE stream = ? AND seq IN ({marks})", stream, *part)
        self._note((stream, version, seq, _REMOVED) for seq in seqs)
        return vectors

    def _note(self, changes: Iterable[tuple[int, int, int, int]]) -> None:
        self._many("INSERT OR IGNORE INTO changes (stream, version, seq, what) VALUES (?, ?, ?, ?)", changes)

    def by_id(self, stream: int, ids: Sequence[str]) -> list[Row]:
        return self._rows(f"SELECT {_COLUMNS} FROM items WHERE stream = ? AND id IN (%s)", ids, stream)

    def by_key(self, stream: int, keys: Sequence[bytes]) -> list[Row]:
        sql = f"SELECT {_COLUMNS} FROM items WHERE stream = ? AND retired IS NULL AND key IN (%s)"
        return self._rows(sql, keys, stream)

    def by_seq(self, seqs: Sequence[int]) -> list[Row]:
        return self._rows(f"SELECT {_COLUMNS} FROM items WHERE seq IN (%s)", seqs)

    def page(self, stream: int, after: int, limit: int, kinds: Sequence[str], retired: bool) -> list[Row]:
        sql = (
            f"SELECT {_COLUMNS} FROM items WHERE stream = ? AND seq > ? AND kind IN ({_marks(kinds)})"
            f"{'' if retired else ' AND retired IS NULL'} ORDER BY seq LIMIT ?"
        )
        return [Row._make(row) for row in self._all(sql, stream, after, *kinds, limit)]

    def tail(self, stream: int, session: str, limit: int) -> list[Row]:
        sql = (
            f"SELECT {_COLUMNS} FROM items WHERE stream = ? AND session = ? AND position IS NOT NULL "
            "ORDER BY position DESC LIMIT ?"
        )
        return [Row._make(row) for row in self._all(sql, stream, session, limit)]

    def citing(self, stream: int) -> list[Row]:
        sql = f"SELECT {_COLUMNS} FROM items WHERE stream = ? AND source != '' ORDER BY seq"
        return [Row._make(row) for row in self._all(sql, stream)]

    def entries(self, stream: int, since: int, model: int | None) -> list[EntryRow]:
        sql = (
            f"SELECT {_ENTRY}, v.data FROM items i LEFT JOIN vectors v ON v.model = ? AND v.seq = i.seq "
            "WHERE i.stream = ? AND i.version > ? AND %s ORDER BY i.seq"
        )
        found = (self._all(sql % where, model, stream, since, *seqs) for where, seqs in self._since(stream, since))
        return sorted(map(EntryRow._make, chain.from_iterable(found)))

    def bearing(self, stream: int, kinds: Sequence[str], text: str, since: int) -> list[Bearer]:
        sql = (
            "SELECT i.seq, i.kind, i.people, i.metadata FROM items i WHERE i.stream = ? "
            f"AND i.kind IN ({_marks(kinds)}) AND i.kind != 'message' AND i.retired IS NULL "
            "AND i.version > ? AND instr(i.metadata, ?) AND %s"
        )
        places = self._since(stream, since)
        found = (self._all(sql % where, stream, *kinds, since, text, *seqs) for where, seqs in places)
        return list(map(Bearer._make, chain.from_iterable(found)))

    def _since(self, stream: int, since: int) -> Iterator[tuple[str, Sequence[int]]]:
        """Where to look for what changed after a version."""
        new, changed = (0, []) if since < 1 else self._changes(stream, since)
        if new is not None:
            yield "i.seq >= ?", [new]
        for part in _chunks(changed):
            yield f"i.seq IN ({_marks(part)})", part

    def _changes(self, stream: int, since: int) -> tuple[int | None, list[int]]:
        """The first row that is new since a version, and the older ones that were changed."""
        seen = "FROM changes WHERE stream = ? AND version > ? AND what = ?"
        new = self._one(f"SELECT min(seq) {seen}", stream, since, _FROM_HERE)[0]
        changed = {row[0] for row in self._all(f"SELECT seq {seen}", stream, since, _CHANGED)}
        return new, [seq for seq in changed if new is None or seq < new]

    def removed(self, stream: int, since: int) -> list[int]:
        sql = "SELECT seq FROM changes WHERE stream = ? AND version > ? AND what = ? ORDER BY seq"
        return [row[0] for row in self._all(sql, stream, since, _REMOVED)]

    def bury(self, stream: int, tombstones: Sequence[Tombstone]) -> None:
        sql = "INSERT OR REPLACE INTO forgotten (stream, key, content, lane, position) VALUES (?, ?, ?, ?, ?)"
        self._many(sql, [(stream, *stone) for stone in tombstones])

    def buried(self, stream: int, keys: Sequence[bytes]) -> list[Tombstone]:
        sql = "SELECT key, content, lane, position FROM forgotten WHERE stream = ? AND key IN (%s)"
        return [Tombstone._make(row) for part in _chunks(keys) for row in self._all(sql % _marks(part), stream, *part)]

    def has_buried(self, stream: int) -> bool:
        return self._one("SELECT 1 FROM forgotten WHERE stream = ? LIMIT 1", stream) is not None

    def buried_tail(self, stream: int, lane: bytes, limit: int) -> list[Tombstone]:
        sql = (
            "SELECT key, content, lane, position FROM forgotten "
            "WHERE stream = ? AND lane = ? AND position IS NOT NULL ORDER BY position DESC LIMIT ?"
        )
        return [Tombstone._make(row) for row in self._all(sql, stream, lane, limit)]

    def tombstones(self, stream: int) -> Iterator[Tombstone]:
        sql = "SELECT key, content, lane, position FROM forgotten WHERE stream = ? ORDER BY key"
        return map(Tombstone._make, self._all(sql, stream))

    def unbury(self, stream: int, keys: Sequence[bytes]) -> None:
        for part in _chunks(keys):
            self._do(f"DELETE FROM forgotten WHERE stream = ? AND key IN ({_marks(part)})", stream, *part)

    def model(self, name: str, dimensions: int) -> int:
        self._do("INSERT OR IGNORE INTO models (name, dimensions) VALUES (?, ?)", name, dimensions)
        row = self._one("SELECT id FROM models WHERE name = ?", name)
        return int(row[0])

    def find_model(self, name: str) -> tuple[int, int] | None:
        row = self._one("SELECT id, dimensions FROM models WHERE name = ?", name)
        return (int(row[0]), int(row[1])) if row else None

    def put_vectors(self, model: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        self._many("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", [(model, seq, data) for seq, data in vectors])

    def drop_model(self, model: int) -> None:
        self._do("DELETE FROM vectors WHERE model = ?", model)
        self._do("DELETE FROM models WHERE id = ?", model)

    def adopt(self, model: int | None) -> None:
        self._do("UPDATE streams SET version = version + 1")
        self._do("INSERT INTO changes (stream, version, seq, what) SELECT id, version, 0, ? FROM streams", _FROM_HERE)
        lacking = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = items.seq)"
        version = "(SELECT version FROM streams WHERE id = items.stream)"
        self._do(f"UPDATE items SET version = {version}, pending = ? AND {lacking}", model is not None, model)

    def waiting(self, limit: int, streams: Sequence[int] | None = None) -> list[Row]:
        if streams is None:
            return list(map(Row._make, self._all(_WAITING, limit)))
        found = [row for stream in set(streams) for row in self._all(_WAITING_HERE, stream, limit)]
        return sorted(map(Row._make, found), key=lambda row: -row.seq)[:limit]

    def without_vector(self, model: int, after: int, limit: int) -> list[Row]:
        sql = (
            f"SELECT {_COLUMNS} FROM items i WHERE seq > ? AND NOT EXISTS "
            "(SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = i.seq) ORDER BY seq LIMIT ?"
        )
        return [Row._make(row) for row in self._all(sql, after, model, limit)]

    def get_meta(self, name: str) -> str | None:
        row = self._one("SELECT value FROM meta WHERE name = ?", name)
        return row[0] if row else None

    def set_meta(self, name: str, value: str) -> None:
        self._do("INSERT OR REPLACE INTO meta VALUES (?, ?)", name, value)

    def counts(self) -> Counts:
        kinds = self._all("SELECT kind, count(*) FROM items WHERE retired IS NULL GROUP BY kind")
        vectors = self._all(
            "SELECT name, (SELECT count(*) FROM vectors v WHERE v.model = m.id) FROM models m ORDER BY name"
        )
        return Counts(
            streams=self._number("SELECT count(*) FROM streams"),
            kinds=dict(kinds),
            retired=self._number("SELECT count(*) FROM items WHERE retired IS NOT NULL"),
            pending=self._number("SELECT count(*) FROM items WHERE pending = 1"),
            tombstones=self._number("SELECT count(*) FROM forgotten"),
            vectors=dict(vectors),
            bytes=sum(map(_size, self._files())),
        )

    def scrub(self, patience: float | None = None) -> None:
        patience = self._patience if patience is None else patience
        with self._errors(), self._writer, self._waiting(patience):
            self._cut_log(patience)
            if leftovers(self._raw(), self._number("PRAGMA page_size")):
                self._patiently(lambda: self._connection().execute("VACUUM"), patience)
                self._cut_log(patience)

    @contextmanager
    def _waiting(self, patience: float) -> Iterator[None]:
        """SQLite's own waiting for a lock is cut down to the patience there is."""
        connection = self._connection()
        connection.execute(f"PRAGMA busy_timeout = {int(min(patience, _TIMEOUT) * 1000)}")
        try:
            yield
        finally:
            connection.execute(f"PRAGMA busy_timeout = {_TIMEOUT * 1000}")

    def _cut_log(self, patience: float) -> None:
        """Moves everything from the write-ahead log into the file and empties the log."""
        deadline = time.monotonic() + patience
        while self._one("PRAGMA wal_checkpoint(TRUNCATE)")[0]:
            if time.monotonic() > deadline:
                raise StoreBusyError(
                    f"the write-ahead log of {self.target} cannot be emptied: another process keeps reading. "
                    "Try again when it ends"
                )
            time.sleep(0.01)

    def traces(self, texts: Sequence[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        with self.reading():
            for text, place in self._table_traces(texts):
                found.setdefault(text, []).append(place)
        # SQLite writes text as UTF-8, so the bytes of a deleted text would stand in the file as they are.
        for path in self._files():
            blocks = self._raw() if path == self.path else _blocks(path)
            for text in texts_in_blocks(blocks, texts):
                found.setdefault(text, []).append(f"file {path.name}")
        return found

    def close(self) -> None:
        with self._writer:
            self._closed = True
            for connection in list(self._connections):
                connection.close()
            self._connections.clear()
            if self._handle:
                handles.release(self._handle)
                self._handle = None

    def _raw(self) -> Iterator[bytes]:
        if self._handle is None:
            raise StoreError(f"{self.target} was closed: open it again")
        return handles.blocks(self._handle, self.path)

    def _files(self) -> list[Path]:
        return [self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-journal"))]

    def _table_traces(self, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
        for (table,) in self._all("SELECT name FROM sqlite_schema WHERE type = 'table'"):
            for column in self._all(f'PRAGMA table_info("{table}")'):
                cursor = self._connection().execute(f'SELECT "{column[1]}" FROM "{table}"')
                for text in texts_in(map(_bytes, cursor), texts):
                    yield text, f"{table}.{column[1]}"

    def _migrate(self) -> None:
        connection = self._connection()
        with self.reading():
            done = self._number("PRAGMA user_version")
        if done == len(STEPS):
            return
        with self.writing():
            _check_stamp(self.path, connection)
            done = self._number("PRAGMA user_version")  # another process may have been quicker
            for function in STEPS[done:]:
                function(connection)
            connection.execute(f"PRAGMA user_version = {len(STEPS)}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _connection(self) -> sqlite3.Connection:
        lease: _Lease | None = getattr(self._local, "lease", None)
        if lease is not None and not self._closed and self._pid == os.getpid():
            return lease.connection
        if self._closed:
            raise StoreError(f"{self.target} was closed: open it again")
        if self._pid != os.getpid():
            raise StoreError(f"{self.target} was opened before the process forked: open it again in the child")
        self._local.lease = lease = _Lease(self._connect(), self._connections)
        return lease.connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"))
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA cache_size = -16000")
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _turn(self, patience: float | None) -> Iterator[None]:
        """Writers of one process queue here."""
        if not self._writer.acquire(timeout=-1 if patience is None else patience):
            raise StoreBusyError(f"{self.target} is held by another thread that writes: try again")
        try:
            yield
        finally:
            self._writer.release()

    def _begin(self, connection: sqlite3.Connection, patience: float | None = None) -> None:
        with nullcontext() if patience is None else self._waiting(patience):
            self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"), patience)

    def _check_place(self) -> None:
        """What is written into a file that was deleted or put aside would be acknowledged and lost."""
        if self._handle is not None and handles.key_of(self.path) != self._handle:
            raise StoreError(f"{self.target} was deleted or replaced while it was open: open it again")

    def _patiently(self, attempt: Callable[[], T], patience: float | None = None) -> T:
        """SQLite gives up on a lock after its timeout; a caller should not have to know."""
        deadline = time.monotonic() + (self._patience if patience is None else patience)
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > deadline:
                    raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _typed(error, self.target) from error
        except UnicodeEncodeError as error:
            raise InputError(f"{error.object!r} is no text: half of a surrogate pair cannot be written") from error

    def _all(self, sql: str, *values: Any) -> list[Any]:
        return self._connection().execute(sql, values).fetchall()

    def _one(self, sql: str, *values: Any) -> Any:
        return self._connection().execute(sql, values).fetchone()

    def _number(self, sql: str, *values: Any) -> int:
        return int(self._one(sql, *values)[0])

    def _do(self, sql: str, *values: Any) -> int:
        return self._connection().execute(sql, values).rowcount

    def _many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection().executemany(sql, rows)

    def _rows(self, sql: str, values: Sequence[Any], *before: Any) -> list[Row]:
        return [Row._make(row) for part in _chunks(values) for row in self._all(sql % _marks(part), *before, *part)]


class _Lease:
    """One thread's connection, closed when the thread ends."""

    def __init__(self, connection: sqlite3.Connection, held: list[sqlite3.Connection]) -> None:
        self.connection = connection
        self._held = held
        held.append(connection)

    def __del__(self) -> None:
        with suppress(ValueError):
            self._held.remove(self.connection)
        self.connection.close()


def _inspect(path: Path) -> None:
    """Refuses what is not ours before SQLite has a chance to touch it."""
    if path.is_dir():
        raise NotAStoreError(f"{path} is a folder: name a file in it, such as {path / 'memory.db'}")
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist: make it first")
    if not _size(path):
        _check_writable(path.parent if not path.exists() else path)
        return
    # First as if nobody used it, which leaves nothing beside a file that is none of our business.
    _check_file(path, "immutable=1")
    if _size(path.with_name(f"{path.name}-wal")):
        _check_file(path, "mode=ro")
    _check_writable(path)
    _check_writable(path.parent)


def _check_file(path: Path, how: str) -> None:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, timeout=5)
    try:
        connection.execute("BEGIN")  # one snapshot: another process may be making the file right now
        _check_stamp(path, connection)
    except sqlite3.DatabaseError as error:
        # Seen while another process moves pages about, a sound file may look damaged: the real opening will tell.
        if _code(error) == sqlite3.SQLITE_NOTADB:
            raise
    finally:
        connection.close()


def _check_stamp(path: Path, connection: sqlite3.Connection) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == APPLICATION_ID:
        _check_known(path, version)
    elif application or version or connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
        raise NotAStoreError(f"{path} is another program's SQLite database; it was left as it is")


def _check_known(path: Path, version: int) -> None:
    if version > len(STEPS):
        raise NewerStoreError(
            f"{path} was written by a newer Eunoe (schema {version}, this one knows {len(STEPS)}): "
            "upgrade with pip install -U eunoe"
        )


def _blocks(path: Path) -> Iterator[bytes]:
    with suppress(FileNotFoundError), path.open("rb") as file:
        yield from iter(lambda: file.read(1 << 22), b"")


def _size(path: Path) -> int:
    """0 if there is no such file: another process that ends takes its log with it at any moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_writable(path: Path) -> None:
    # Root may write anywhere, so the permission bits are asked too: a file marked read-only was marked on purpose.
    marked = path.is_file() and not path.stat().st_mode & 0o222
    if marked or not os.access(path, os.W_OK):
        raise ReadOnlyStoreError(f"{path} is read-only: make it writable or copy the store elsewhere")


def _busy(connection: sqlite3.Connection) -> bool:
    return connection.in_transaction


def _bytes(row: tuple[Any]) -> bytes:
    value = row[0]
    return value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else b""


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _typed(error: sqlite3.Error, target: str) -> StoreError:
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusyError(f"{target} is held by another writer for too long: try again, or end that process")
        case sqlite3.SQLITE_FULL:
            return StoreFullError(f"no room left for {target}: the write was rolled back; free some space")
        case sqlite3.SQLITE_IOERR if getattr(error, "sqlite_errorcode", 0) in _NO_ROOM:
            return StoreFullError(f"no room left for {target}: the write was rolled back; free some space or a quota")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return ReadOnlyStoreError(f"{target} cannot be opened for writing ({error})")
        case sqlite3.SQLITE_NOTADB:
            return NotAStoreError(f"{target} is not a Eunoe store; it was left as it is: name another file")
        case sqlite3.SQLITE_CORRUPT:
            return DamagedStoreError(f"{target} is damaged ({error}): restore a copy, or export what can be read")
        case _:
            return StoreError(f"{target}: {error}")


def _chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK))


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
