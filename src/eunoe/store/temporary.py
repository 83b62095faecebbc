"""The store that is gone with its process."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, LifoQueue
from typing import BinaryIO, Final

from eunoe.errors import StoreBusyError
from eunoe.files import NEW_FILE_MODE
from eunoe.store import sqlite_bytes
from eunoe.store.location import IN_MEMORY
from eunoe.store.sqlite import SqliteStore
from eunoe.store.sqlite_files import OpenFiles

_MEMORY_FOLDER: Final = "/dev/shm"
_CONNECTIONS: Final = 8
"""How many threads can be inside a block at once; others wait a moment. To open one takes part of a millisecond."""


class TemporaryStore(SqliteStore):
    """A store without a name, so that a killed process leaves nothing that could be read.

    Its files, in memory where there is a file system for that, lose their names before the first word is written. So
    nobody can open them later: all connections are opened at once, and threads take turns with them.
    """

    keeps_indexes = False

    def __init__(self) -> None:
        self._free: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._log: BinaryIO | None = None
        folder = _MEMORY_FOLDER if os.access(_MEMORY_FOLDER, os.W_OK) else None
        self._folder = tempfile.TemporaryDirectory(prefix="eunoe-", dir=folder, ignore_cleanup_errors=True)
        super().__init__(Path(self._folder.name) / "memory.db", durable=False)
        self.target = IN_MEMORY

    def close(self) -> None:
        super().close()
        if self._log:
            self._log.close()
        self._folder.cleanup()  # where files that are open cannot lose their names

    def _open_file(self) -> None:
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, NEW_FILE_MODE))
        self._files = OpenFiles(self.path, sqlite_bytes.hold(self.path))
        for _ in range(_CONNECTIONS):
            connection = self._connect()
            self._connections.append(connection)
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # opens the log
            self._free.put(connection)
        self._log = self._files.log.open("rb", buffering=0)
        for path in Path(self._folder.name).iterdir():
            with suppress(PermissionError):
                path.unlink()
        with suppress(OSError):
            Path(self._folder.name).rmdir()

    def _connection(self) -> sqlite3.Connection:
        self._check_usable()
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            try:
                connection = self._free.get(timeout=self._timeout)
            except Empty:
                raise StoreBusyError(f"more than {_CONNECTIONS} threads hold on to {IN_MEMORY}: try again") from None
            self._local.connection = connection
        return connection

    def _release_connection(self) -> None:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            self._free.put(connection)

    def _look_at_files(self) -> None:
        """Nobody can replace a file without a name."""

    def size(self) -> int:
        if self._files is None or self._log is None:
            return 0
        return sqlite_bytes.file_stat(self._files.key).st_size + os.fstat(self._log.fileno()).st_size

    def _file_blocks(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        yield self.path.name, self._read_blocks()
        log = self._log
        if log:
            log.seek(0)
            yield f"{self.path.name}-wal", iter(lambda: log.read(sqlite_bytes.BLOCK_BYTES), b"")
