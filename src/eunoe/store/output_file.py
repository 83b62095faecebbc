"""Files that are written: each appears under its name when it is complete, and never in the place of a store."""

import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from eunoe.errors import StoreError
from eunoe.files import replacing
from eunoe.store import sqlite_bytes

_DATABASE_HEADER: Final = b"SQLite format 3\0"
_COMPANION: Final = re.compile(r"(.+)-(?:wal|shm|journal)", re.IGNORECASE | re.DOTALL)
COMPANION_ENDS: Final = ("-journal", "-wal", "-shm")


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
        with replacing(path) as part:
            file = io.TextIOWrapper(part, encoding="utf-8", newline="\n")
            try:
                yield file
            finally:
                file.detach()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


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
