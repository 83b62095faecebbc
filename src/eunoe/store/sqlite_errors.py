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
DAMAGE_ADVICE: Final = "restore a backup, or run `eunoe check` to see what is lost"
_NO_TEXT: Final = "Could not decode to UTF-8"


def error_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def tells_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite could not read its pages, or Python not a text in them."""
    is_code = error_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG)
    return is_code or _NO_TEXT in str(error)


def store_error(error: sqlite3.Error, target: str) -> StoreError:
    if _NO_TEXT in str(error):  # what SQLite says further repeats it
        return DamagedStoreError(f"{target} is damaged (a text is none): {DAMAGE_ADVICE}")
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
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_TOOBIG:
            return DamagedStoreError(f"{target} is damaged ({error}): {DAMAGE_ADVICE}")
        case _:
            return StoreError(f"{target}: {error}")
