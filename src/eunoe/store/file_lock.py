"""The file lock: a store is not replaced while a connection to it is opened, and none is opened while it is replaced.

SQLite finds the log by the name of the file. A connection to an old file that waits while another file takes its name
would use the log of the new one: write it into the old file, and empty it.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from eunoe.errors import StoreBusyError

if sys.platform != "win32":
    import fcntl

_LOCK_BYTE: Final = 0x40000000 + 512
"""Behind those that SQLite locks, on the page that it keeps free for them."""
_POLL_SECONDS: Final = 0.01


@contextmanager
def lock_shared(file: BinaryIO, seconds: float) -> Iterator[None]:
    """Keep an open file from being replaced."""
    if sys.platform == "win32":  # it replaces no file that is open
        yield
        return
    with _lock(file, fcntl.LOCK_SH, seconds):
        yield


@contextmanager
def lock_alone(file: BinaryIO, seconds: float) -> Iterator[None]:
    """Keep every process from opening connections to an open file."""
    if sys.platform == "win32":
        yield
        return
    with _lock(file, fcntl.LOCK_EX, seconds):
        yield


if sys.platform != "win32":

    @contextmanager
    def _lock(file: BinaryIO, mode: int, seconds: float) -> Iterator[None]:
        deadline = time.monotonic() + seconds
        while not _try_lock(file, mode):
            if time.monotonic() > deadline:
                raise StoreBusyError(f"{file.name} is opened or replaced by another process: try again when it is done")
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, _LOCK_BYTE)

    def _try_lock(file: BinaryIO, mode: int) -> bool:
        try:
            fcntl.lockf(file, mode | fcntl.LOCK_NB, 1, _LOCK_BYTE)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            return False
        return True
