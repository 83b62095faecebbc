"""Where a memory rests: from what the user names to a store."""

import os
from functools import partial

from eunoe.errors import MissingStoreError, StoreError
from eunoe.model.arguments import check_callback, check_flag
from eunoe.model.result import BackupReport
from eunoe.store.backup import restore_store
from eunoe.store.contract import CopyProgress, Store
from eunoe.store.paths import is_default, parse_path, store_path
from eunoe.store.sqlite import SqliteStore, mark_copy
from eunoe.store.temporary import TemporaryStore


def open_store(target: str | os.PathLike[str] | None, create: bool = True) -> Store:
    """Open the store that a path, a URL or nothing names, and make it first if `create` allows it."""
    path = store_path(target)
    if path is None:
        return TemporaryStore()
    if not create and not path.exists():
        raise MissingStoreError(
            f"there is no memory at {path} yet: it is made by the first thing observed or remembered"
        )
    if is_default(target):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SqliteStore(path)


def restore(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    keep: bool = True,
    progress: CopyProgress | None = None,
) -> BackupReport:
    """Put a backup in the place of a store, or where there is none.

    A store that is open in any process is refused. The one that is replaced is kept beside it under a dated name.

    Args:
        source: a backup, or any store.
        target: as in `open`.
        keep: without it the replaced store is deleted.
        progress: told how many pages are copied, and how many there are.
    """
    check_flag(keep, "keep")
    check_callback(progress, "progress")
    path = store_path(target)
    if path is None:
        raise StoreError("a store in memory cannot be restored: name a file")
    if is_default(target):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = partial(mark_copy, is_backup=False)
    return restore_store(parse_path(source), path, mark, keep, progress)
