"""One way to write a file, so that it is seen whole or not at all, and one lock between processes."""

import errno
import glob
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from eunoe.errors import ConflictError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NEW_FILE_MODE: Final = 0o600
"""Nobody else on the machine has to read one's memories."""

_PART_BYTES: Final = 8
_NAME_CHARACTERS: Final = 50
"""So much of its name begins that of a part: no name is longer than 255 bytes."""
_POLL_SECONDS: Final = 0.01


@contextmanager
def replacing(path: Path, *, mode: int = NEW_FILE_MODE, sync: bool = True) -> Iterator[BinaryIO]:
    """A new file that takes the place of another when the block ends without an error.

    A link stays a link, and a file that is there keeps its mode. What processes left that were killed while they wrote
    this file is removed; those that live hold a lock on theirs.
    """
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder: name a file in it", str(path))
    remove_dead_parts(path.parent, path.name)
    part = _part_of(path)
    kept = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    first = NEW_FILE_MODE if kept is not None else mode
    try:
        with open(part, "x+b", opener=lambda path, flags: os.open(path, flags, first)) as file:
            _try_lock(file.fileno())
            yield file
            file.flush()
            if kept is not None:
                os.chmod(part, kept)
            if sync:
                os.fsync(file.fileno())
            if sys.platform == "win32":  # no open file is replaced there
                file.close()
            os.replace(part, path)
            if sync:
                _sync_folder(path.parent)
    finally:
        _remove(part)


def write_file(path: Path, content: bytes, *, mode: int = NEW_FILE_MODE, sync: bool = True) -> None:
    """Put a file in place at once, in a folder that is made if it is not there."""
    Path(os.path.realpath(path)).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path, mode=mode, sync=sync) as file:
        file.write(content)


def create_once(path: Path, content: bytes, mode: int = NEW_FILE_MODE) -> bool:
    """Make a file with all its content; return False if another was there, or somebody was first."""
    part = _part_of(path)
    try:
        with open(part, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
            file.write(content)
        os.link(part, path)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


@contextmanager
def locked(path: Path, *, shared: bool = False, timeout: float = 0) -> Iterator[None]:
    """Hold a file, which is made if it is not there, or a folder. The end of a process releases it.

    Who holds it alone may remove it. Raise ConflictError if another process or thread holds it for longer than
    `timeout` seconds. Windows knows no shared locks and locks no folders: there a folder is not held.
    """
    if sys.platform == "win32" and path.is_dir():
        yield
        return
    number = _open_locked(path, shared, time.monotonic() + timeout)
    try:
        yield
    finally:
        os.close(number)


def _open_locked(path: Path, shared: bool, deadline: float) -> int:
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    while True:
        number = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), NEW_FILE_MODE)
        if _try_lock(number, shared):
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(number), path.stat()):
                    return number
            os.close(number)  # who held it before has removed it
            continue
        os.close(number)
        if time.monotonic() >= deadline:
            raise ConflictError(f"another process holds {path}: wait for it")
        time.sleep(_POLL_SECONDS)


def _part_of(path: Path) -> Path:
    return path.with_name(f".{path.name[:_NAME_CHARACTERS]}.{os.urandom(_PART_BYTES).hex()}.part")


def remove_dead_parts(folder: Path, name: str = "*") -> None:
    """Remove what killed processes left of files that they were writing: of one, or of all in a folder."""
    pattern = name if name == "*" else glob.escape(name[:_NAME_CHARACTERS])
    for part in folder.glob(f".{pattern}.{'[0-9a-f]' * 2 * _PART_BYTES}.part"):
        with suppress(OSError), part.open("r+b") as file:
            if _try_lock(file.fileno()):
                _remove(part)


def _remove(part: Path) -> None:
    for path in part.parent.glob(f"{glob.escape(part.name)}*"):  # a database has others beside it
        path.unlink(missing_ok=True)


def _try_lock(number: int, shared: bool = False) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(number, 0, os.SEEK_SET)
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(number, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable, where the platform can."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
