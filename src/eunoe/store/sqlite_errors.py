"""What SQLite reports, as errors of a store."""

import sqlite3
from typing import Final

from eunoe.errors import (
    DamagedStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)

_FULL_DISK_CODES: Final = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
"""A quota or a limit on file sizes fails a write, a disk that is full at opening fails to grow shared memory."""


def error_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def store_error(error: sqlite3.Error, target: str) -> StoreError:
    match error_code(error):
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
