"""Files that are written: each appears under its name when it is complete, and never in the place of a store."""

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from eunoe.errors import StoreError
from eunoe.store import sqlite_bytes

if sys.platform != "win32":
    import fcntl

NEW_FILE_MODE: Final = 0o600
"""Nobody else on the machine has to read one's memories."""

_DATABASE_HEADER: Final = b"SQLite format 3\0"
_COMPANION: Final = re.compile(r"(.+)-(?:wal|shm|journal)", re.IGNORECASE | re.DOTALL)
COMPANION_ENDS: Final = ("-journal", "-wal", "-shm")
_PART_BYTES: Final = 8


@contextmanager
def open_output(target: str | os.PathLike[str]) -> Iterator[TextIO]:
    """A text file that replaces the target when the block ends without an error; pipes and devices are written to.

    A link stays a link, an existing file keeps its mode, a new one is its owner's alone.
    """
    path = Path(target)
    try:
        stream = _open_stream(path)
        if stream is not None:
            with os.fdopen(stream, "w", encoding="utf-8", newline="\n") as file:
                yield file
            return
        check_no_store(path)
        with replacing(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new file beside the target, which takes its place when the block ends without an error."""
    path = Path(os.path.realpath(target))
    if path.is_dir():
        raise StoreError(f"{target} is a folder: name a file in it")
    mode = stat.S_IMODE(os.stat(path).st_mode) if path.exists() else NEW_FILE_MODE
    _remove_dead_parts(path)
    part = path.with_name(f".{path.name}.{os.urandom(_PART_BYTES).hex()}.part")
    number = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, NEW_FILE_MODE)
    try:
        if sys.platform != "win32":
            fcntl.flock(number, fcntl.LOCK_EX)
        yield part
        os.chmod(part, mode)
        os.fsync(number)
        os.replace(part, path)
        _sync_folder(path.parent)
    finally:
        remove_files(part)
        os.close(number)


def check_no_store(path: Path) -> None:
    """Refuse a file that is a store or lies beside one as a part of it."""
    check_no_companion(path)
    if is_database(Path(os.path.realpath(path))):
        raise StoreError(f"{path} is a store: it was left as it is; name another file")


def check_no_companion(path: Path) -> None:
    """Refuse a name by which SQLite would find something beside a store."""
    real = Path(os.path.realpath(path))
    match = _COMPANION.fullmatch(real.name)
    if match and is_database(real.with_name(match[1])):
        raise StoreError(f"{path} belongs to the store {match[1]}: it was left as it is; name another file")


def is_database(path: Path) -> bool:
    """Whether there is a SQLite database, such as a store, at this path."""
    try:
        found = os.stat(path)
        if sqlite_bytes.is_held(sqlite_bytes.file_key(found)):
            return True  # to open and close it here would drop SQLite's locks
        if not stat.S_ISREG(found.st_mode):
            return False
        with path.open("rb") as file:
            return file.read(len(_DATABASE_HEADER)) == _DATABASE_HEADER
    except OSError:
        return False


def remove_files(path: Path) -> None:
    """Remove a database with what lies beside it."""
    for end in ("", *COMPANION_ENDS):
        with suppress(OSError):
            path.with_name(path.name + end).unlink(missing_ok=True)


def _open_stream(path: Path) -> int | None:
    """A descriptor to write to where a path leads to a pipe, a terminal or the like, or to a file that is open here."""
    link = path
    while link.is_symlink():
        folder = Path(os.path.realpath(link.parent))
        if folder.parts[:2] == ("/", "proc") and folder.name == "fd" and link.name.isdecimal():
            return os.dup(int(link.name))  # opened anew, it would be written to from its beginning
        link = link.parent / os.readlink(link)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        raise StoreError(f"{path} is a disk or a socket, not a file: it was left as it is; name a file")
    return os.open(path, os.O_WRONLY)


def _remove_dead_parts(path: Path) -> None:
    """Remove what processes left that were killed while they wrote this file; those that live hold a lock."""
    if sys.platform == "win32":  # it has no such locks
        return
    for part in path.parent.glob(f".{_escape_pattern(path.name)}.{'[0-9a-f]' * 2 * _PART_BYTES}.part"):
        with suppress(OSError), part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_files(part)


def _escape_pattern(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable, where the platform can."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
