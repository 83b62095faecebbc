"""What a server keeps of its own: keys, audit, jobs, events. It lies beside the store and never holds memories."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Final

_BUSY_SECONDS: Final = 10.0


class ServerState:
    """A small SQLite file. Threads and processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._write_lock = threading.RLock()
        """SQLite lets writers wait in ever longer sleeps; within this process they queue up instead."""
        self._later = ThreadPoolExecutor(1, thread_name_prefix="eunoe-state")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._migrate()

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

    def scrub(self) -> None:
        """Move the log into the file, so that what was deleted stands nowhere any more."""
        with self._write_lock:
            self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def write_later(self, statement: str, values: tuple[object, ...]) -> None:
        """Write something that nobody waits for. A stop waits for it; a failure is passed over."""
        with suppress(RuntimeError):  # it is closed
            self._later.submit(self._write_one, statement, values)

    def _write_one(self, statement: str, values: tuple[object, ...]) -> None:
        with self.write(is_durable=False) as db:
            db.execute(statement, values)

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
            known = self._local.connection = self._connect()
        return known

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA foreign_keys = ON")
        with self._lock:
            self._connections.append(connection)
        return connection

    def _migrate(self) -> None:
        """Apply the scripts of `schema/` that this file has not seen yet, by name."""
        with self.write() as db:
            db.execute("CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY)")
            done = {row["name"] for row in db.execute("SELECT name FROM migration")}
            scripts = (each for each in resources.files("eunoe.server.schema").iterdir() if each.name.endswith(".sql"))
            for script in sorted(scripts, key=lambda each: each.name):
                if script.name not in done:
                    for statement in script.read_text().split(";\n"):
                        db.execute(statement)
                    db.execute("INSERT INTO migration VALUES (?)", (script.name,))
