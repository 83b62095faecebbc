"""Backups: copies of a store that are complete, read once more before they count, and put in place in one step."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from eunoe.errors import (
    DamagedStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    ReplacedStoreError,
    StoreBusyError,
    StoreError,
)
from eunoe.files import NEW_FILE_MODE, replacing
from eunoe.model.result import BackupReport
from eunoe.store import sqlite_bytes
from eunoe.store.contract import CopyProgress
from eunoe.store.output_file import COMPANION_ENDS, check_no_companion, is_database
from eunoe.store.sqlite_bytes import lock_alone
from eunoe.store.sqlite_files import (
    BACKUP_VALUE,
    check_log,
    check_schema,
    dated_name,
    error_code,
    file_size,
    log_path,
    store_error,
)

_SLICE_PAGES: Final = 1000
"""4 MB: what is copied between two calls of a progress function."""
_BUSY_SECONDS: Final = 1.0

MarkCopy = Callable[[Path], None]
"""Gives a copy a stamp of its own, so that the log of no other file is taken for its own."""


class _Content(NamedTuple):
    """How much a file holds: a copy must hold the same."""

    scopes: int
    messages: int
    facts: int
    observations: int
    vectors: int

    def report(self, path: Path, kept: Path | None = None) -> BackupReport:
        counts = (self.scopes, self.messages, self.facts, self.observations)
        return BackupReport(str(path), file_size(path), *counts, str(kept or ""))


def write_backup(
    source: sqlite3.Connection, target: Path, mark: MarkCopy, progress: CopyProgress | None
) -> BackupReport:
    """Copy what a connection sees in its open snapshot to a file, in place of an earlier backup.

    Writers go on meanwhile. A process that is killed leaves the earlier backup as it was.
    """
    _check_backup_target(target)
    with _typed_errors(target), replacing(target) as file:
        content = _copy(source, Path(file.name), mark, progress)
    return content.report(target)


def restore_store(
    source: Path, target: Path, mark: MarkCopy, keep: bool, progress: CopyProgress | None
) -> BackupReport:
    """Put a copy of a store in the place of another one, which is kept under a dated name if `keep` says so."""
    source, target = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if source == target or (target.exists() and source.exists() and source.samefile(target)):
        raise StoreError(f"{source} cannot be restored over itself: name the backup, and the store with --store")
    if not target.parent.is_dir():
        raise StoreError(f"the folder {target.parent} does not exist: make it first")
    with _typed_errors(source), _reading(source) as connection, _lock(target), replacing(target) as file:
        content = _copy(connection, Path(file.name), mark, progress)
        kept = _keep_aside(target) if keep and file_size(target) else None
        for end in ("-wal", "-shm"):  # from here on nothing of the old store is needed
            target.with_name(target.name + end).unlink(missing_ok=True)
    return content.report(target, kept)


@contextmanager
def _typed_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error
    except OSError as error:
        raise StoreError(f"cannot copy {path}: {error.strerror or error}") from error


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a store that was checked, with a snapshot of it."""
    if not file_size(path):
        raise NotAStoreError(f"there is no backup at {path}")
    if not is_database(path):
        raise NotAStoreError(f"{path} is no backup of a store; an export is read by `eunoe import`")
    if file_size(log_path(path)):
        check_log(path)
    # Nobody has a file open that nothing lies beside: then it is read so that nothing is left there either.
    is_in_use = any(path.with_name(path.name + end).exists() for end in COMPANION_ENDS)
    uri = f"{path.as_uri()}?{'mode=ro' if is_in_use else 'immutable=1'}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        check_schema(path, connection)
        yield connection


def _copy(source: sqlite3.Connection, part: Path, mark: MarkCopy, progress: CopyProgress | None) -> _Content:
    """Copy a snapshot, page by page, into an empty file, give it a stamp of its own, and read it."""

    def report(status: int, remaining: int, total: int) -> None:
        if progress:
            progress(total - remaining, total)

    content = _content(source)
    with closing(sqlite3.connect(part, isolation_level=None)) as copy:
        copy.execute("PRAGMA synchronous = OFF")  # it is synced once, when it is complete
        source.backup(copy, pages=_SLICE_PAGES, progress=report)
    mark(part)
    with closing(sqlite3.connect(part, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, that can be read where nothing can be written
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("VACUUM")  # bytes of what was forgotten may still stand in the store, and a backup outlives it
        found = copy.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok" or _content(copy) != content:
            raise DamagedStoreError(f"the copy cannot be read as it was written ({found}); nothing was replaced")
    return content


def _content(connection: sqlite3.Connection) -> _Content:
    kinds = dict(connection.execute("SELECT kind, count(*) FROM items GROUP BY kind").fetchall())
    messages, facts, observations = (kinds.get(kind, 0) for kind in ("message", "fact", "observation"))
    scopes = connection.execute("SELECT count(*) FROM streams").fetchone()[0]
    vectors = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
    return _Content(scopes, messages, facts, observations, vectors)


def _check_backup_target(target: Path) -> None:
    """Refuse to replace anything but an earlier backup."""
    path = Path(os.path.realpath(target))
    check_no_companion(path)
    if path.is_dir():
        raise StoreError(f"{target} is a folder: name a file in it, such as {target / 'backup.db'}")
    if not file_size(path) and (path.is_file() or not path.exists()):
        return
    if not _is_backup(path):
        raise StoreError(f"{target} is there and is no backup: name a new file")
    if file_size(log_path(path)):
        raise StoreError(f"{target} is in use, for {log_path(path).name} lies beside it: name a new file")


def _is_backup(path: Path) -> bool:
    if not is_database(path) or sqlite_bytes.is_held(sqlite_bytes.file_key(os.stat(path))):
        return False
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection, suppress(sqlite3.Error):
        row = connection.execute("SELECT value FROM meta WHERE name = ?", (BACKUP_VALUE,)).fetchone()
        return bool(row and row[0])
    return False


@contextmanager
def _lock(target: Path) -> Iterator[None]:
    """Keep every process out of a store while it is replaced, or out of an empty file where there is none."""
    is_new = _make_file(target)
    if sqlite_bytes.is_held(sqlite_bytes.file_key(os.stat(target))):
        raise StoreBusyError(f"{target} is open in this process: close it first")
    try:
        with _open_writable(target) as file, lock_alone(file, _BUSY_SECONDS), _lock_database(target):
            yield
    except BaseException:
        if is_new and not file_size(target):
            target.unlink(missing_ok=True)
        raise


def _open_writable(path: Path) -> BinaryIO:
    try:
        return path.open("r+b")
    except PermissionError as error:
        raise ReadOnlyStoreError(f"{path} is read-only: make it writable or restore to another place") from error


def _make_file(path: Path) -> bool:
    """Whether there was none."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, NEW_FILE_MODE))
    except FileExistsError:
        return False
    return True


@contextmanager
def _lock_database(target: Path) -> Iterator[None]:
    """Refuse a store that is open anywhere.

    A log that belongs to the file is written into it first, so that the file is complete by itself.
    """
    if not file_size(target):
        yield
        return
    with closing(sqlite3.connect(target, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
        try:
            check_log(target)
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except ReplacedStoreError:
            pass  # a log that does not belong to the file is kept beside it, and nobody can open the two
        except sqlite3.Error as error:
            if error_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreBusyError(f"{target} is open in another process: end that one first") from error
            # It is damaged: that is what a backup is for.
        yield


def _keep_aside(target: Path) -> Path:
    """Give a file, and a log that could not be written into it, second names; return the file's."""
    kept = target.with_name(dated_name(target, "replaced"))
    _link(target, kept)
    if file_size(log_path(target)):
        _link(log_path(target), log_path(kept))
    return kept


def _link(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except OSError:  # not every file system has links
        shutil.copy2(path, name)
