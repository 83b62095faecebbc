"""What keeps two runs apart: locks of a folder, and of the memories of a repository. A process that ends frees them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from eunoe.errors import ConflictError

if sys.platform != "win32":  # there nothing keeps two runs apart
    import fcntl


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold a folder alone. Raise ConflictError if another run does."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not _try_lock(descriptor, alone=True):
            raise ConflictError(f"another process is writing a wiki into {folder}: wait for it")
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_repository(store: str, repository_id: str, *, alone: bool) -> Iterator[None]:
    """Hold the memories of a repository in a store, alone or together with others that do not need them alone.

    Raise ConflictError if another run stands against that.
    """
    if sys.platform == "win32":
        yield
        return
    path = _lock_file(store, repository_id)
    descriptor = _open_locked(path, alone)
    if descriptor is None:
        raise ConflictError(
            f"another run is writing a wiki of repository {repository_id}, and one of the two is forced: wait for it"
        )
    try:
        yield
    finally:
        if _try_lock(descriptor, alone=True):  # nobody else holds it
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _lock_file(store: str, repository_id: str) -> Path:
    """A file beside the store; for a store that is no file, among the temporary ones."""
    if os.path.isfile(store):
        place = Path(store).resolve()
    else:
        place = Path(tempfile.gettempdir(), f"eunoe-{os.getuid()}-{os.getpid()}")
    digest = blake2b(repository_id.encode(), digest_size=8).hexdigest()
    return place.with_name(f"{place.name}-wiki-{digest}.lock")


def _open_locked(path: Path, alone: bool) -> int | None:
    """Open and lock a file; None if another run holds it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if not _try_lock(descriptor, alone):
            os.close(descriptor)
            return None
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
        os.close(descriptor)  # who held it before has removed it


def _try_lock(descriptor: int, alone: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
