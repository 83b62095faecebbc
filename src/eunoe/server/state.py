"""What a server keeps of its own: keys, audit, jobs, webhooks. It lies beside the store and never holds memories."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, Final

_BUSY_SECONDS: Final = 10.0


class ServerState:
    """A small SQLite file with the tables of `state.sql`. Threads and processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._write_lock = threading.RLock()
        """SQLite lets writers wait in ever longer sleeps; within this process they queue up instead."""
        self._later = ThreadPoolExecutor(1, thread_name_prefix="eunoe-state")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with self.write() as db:
            for statement in (resources.files("eunoe.server") / "state.sql").read_text().split(";\n"):
                db.execute(statement)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Several statements that see one state."""
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.rollback()

    @contextmanager
    def write(self, *, is_durable: bool = True) -> Iterator[sqlite3.Connection]:
        """One atomic step: it is durable when the block ends, and has never happened if the block raises.

        Where it need not be durable it outlives this process, but perhaps not a loss of power.
        """
        connection = self._connection()
        with self._write_lock:
            connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def write_later(self, statement: str, values: tuple[object, ...]) -> None:
        """Write something that nobody waits for. A stop waits for it; a failure is passed over."""

        def write() -> None:
            with self.write(is_durable=False) as db:
                db.execute(statement, values)

        with suppress(RuntimeError):  # it is closed
            self._later.submit(write)

    def scrub(self) -> None:
        """Move the log into the file, so that what was deleted stands nowhere any more."""
        with self._write_lock:
            self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._later.shutdown()
        with self._lock:
            for connection in self._connections:
                with suppress(sqlite3.Error):
                    connection.close()
            self._connections.clear()
        self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        known: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if known is None:
            known = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            known.row_factory = sqlite3.Row
            for setting in ("journal_mode = WAL", "secure_delete = ON", "foreign_keys = ON"):
                known.execute(f"PRAGMA {setting}")
            with self._lock:
                self._connections.append(known)
            self._local.connection = known
        return known


def insert(db: sqlite3.Connection, table: str, **row: Any) -> None:
    names, places = ", ".join(row), ", ".join("?" * len(row))
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(row.values()))
