"""What is saved when the files of an open store were replaced or taken away: everything that was acknowledged."""

import os
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eunoe.store import file_bytes
from eunoe.store.file_checks import file_size
from eunoe.store.open_files import (
    Companions,
    FileCutError,
    FileOverwrittenError,
    FileReplacedError,
    FilesChangedError,
    LogRemovedError,
    OpenFiles,
    has_others,
)

_CHECKPOINT_SECONDS: Final = 5.0
"""How long to wait for readers of this store: they only have to end what they are at."""
_CHECKPOINT_POLL_SECONDS: Final = 0.01
_MAX_NAMES: Final = 1000


def rescue(
    change: FilesChangedError, files: OpenFiles, opened: Companions, connections: Sequence[sqlite3.Connection]
) -> str:
    """Save what the first connection still sees; return what happened, and where everything is."""
    name = files.path.name
    if isinstance(change, FileOverwrittenError):
        what = "was overwritten while it was open"
        if isinstance(change, FileCutError):  # the connection at work has read most of it
            kept = _copy_aside(connections[-1], files.path)
            what = f"was cut short while it was open; what could still be read is kept as {kept}"
        return f"{what}; its log is kept as {_set_log_aside(files.log)}" if file_size(files.log) else what
    if isinstance(change, FileReplacedError):
        is_saved = _empty_log(connections[0], truncate=not has_others(files.companions(), opened))
        what = "was deleted or replaced while it was open"
        if is_saved and file_bytes.file_stat(files.key).st_nlink:  # it was moved, and has everything wherever it lies
            return what
        return f"{what}; what it held is kept as {_copy_aside(connections[0], files.path)}"
    if isinstance(change, LogRemovedError):
        what = f"lost {name}-wal or {name}-shm while it was open"
        if _empty_log(connections[0], truncate=False):
            return f"{what}; nothing is missing in it"
        return f"{what}; what it held is kept as {_copy_aside(connections[0], files.path)}"
    for connection in connections:
        _keep_log_out(connection)
    aside = _copy_aside(connections[0], files.path)
    return f"got another {name}-wal or {name}-shm while it was open; what it held is kept as {aside}"


def _empty_log(connection: sqlite3.Connection, *, truncate: bool) -> bool:
    """Move everything from the log into the file; return whether that worked."""
    deadline = time.monotonic() + _CHECKPOINT_SECONDS
    with suppress(sqlite3.Error):
        while True:
            busy, pages, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not busy and pages == done:
                if truncate:  # nothing is left beside the name that could be taken for another file's log
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_CHECKPOINT_POLL_SECONDS)
    return False


def _copy_aside(connection: sqlite3.Connection, path: Path) -> str:
    """Copy what a connection sees to a file of its own beside the path; return its name."""
    aside = path.with_name(dated_name(path, "rescued"))
    try:
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(aside)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except (OSError, sqlite3.Error) as error:
        return f"nothing, for it could not be read or written ({error})"
    return aside.name if found == "ok" else f"{aside.name}, which is damaged ({found})"


def _set_log_aside(log: Path) -> str:
    """Keep a log under another name, and empty it: closing would write it into a file that it does not belong to."""
    aside = log.with_name(dated_name(log, "rescued"))
    try:
        shutil.copyfile(log, aside)
        shutil.copymode(log, aside)
        os.truncate(log, 0)
    except OSError as error:
        return f"it was ({error})"
    return aside.name


def dated_name(path: Path, word: str) -> str:
    """A name beside a path that is not taken, with the time in it."""
    stem = f"{path.name}.{word}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, _MAX_NAMES)))
    return next(name for name in names if not os.path.lexists(path.with_name(name)))


def _keep_log_out(connection: sqlite3.Connection) -> None:
    """Let closing leave the file as it is."""
    if hasattr(connection, "setconfig"):  # since Python 3.12
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
