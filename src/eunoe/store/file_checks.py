"""Files that are no store, or not one that can be used here, are refused before SQLite has a chance to touch them."""

import os
import sqlite3
from pathlib import Path
from typing import Final

from eunoe.errors import NewerStoreError, NotAStoreError, ReadOnlyStoreError, ReplacedStoreError, StoreError
from eunoe.store.file_bytes import file_key, is_held
from eunoe.store.file_stamp import LOG_HEADER_BYTES, check_log, log_path
from eunoe.store.migrations import APPLICATION_ID
from eunoe.store.sqlite_errors import error_code
from eunoe.store.write_ahead_log import check_replayable

_LOCK_SECONDS: Final = 5


def check_is_store(path: Path, known: int) -> None:
    """Refuse what is not ours, or of a newer schema than is known here."""
    if path.is_dir():
        raise NotAStoreError(f"{path} is a folder: name a file in it, such as {path / 'memory.db'}")
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist: make it first")
    log_size = file_size(log_path(path))
    if not file_size(path):
        if log_size > LOG_HEADER_BYTES:  # SQLite would delete it
            raise ReplacedStoreError(
                f"{path} is missing or empty, but {log_path(path).name} holds writes to it: put the file back beside "
                "its log, or move the log away to begin anew"
            )
        _check_writable(path.parent if not path.exists() else path)
        return
    # First as if nobody used it, which leaves nothing beside a file that is none of our business.
    _check_header(path, "immutable=1", known)
    if log_size:
        check_log(path)
        if not is_held(file_key(os.stat(path))):
            check_replayable(log_path(path))
        _check_header(path, "mode=ro", known)
    _check_writable(path)
    _check_writable(path.parent)


def _check_header(path: Path, mode: str, known: int) -> None:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_LOCK_SECONDS)
    try:
        connection.execute("BEGIN")  # one snapshot: another process may be making the file right now
        check_schema(path, connection, known)
    except sqlite3.DatabaseError as error:
        # Seen while another process moves pages about, a sound file may look damaged: the real opening will tell.
        if error_code(error) == sqlite3.SQLITE_NOTADB:
            raise
    finally:
        connection.close()


def check_schema(path: Path, connection: sqlite3.Connection, known: int) -> None:
    """Refuse a database that is another program's, or whose schema is newer than is known here."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    is_new = not application and not version and not connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and not is_new:
        raise NotAStoreError(f"{path} is another program's SQLite database; it was left as it is")
    check_version(path, version, known)


def check_version(path: object, version: int, known: int) -> None:
    if version > known:
        raise NewerStoreError(
            f"{path} was written by a newer Eunoe (schema {version}, this one knows {known}): "
            "upgrade with pip install -U eunoe"
        )


def file_size(path: Path) -> int:
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
