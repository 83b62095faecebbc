"""Where a memory rests: from what the user names to a store."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from eunoe.errors import StoreError
from eunoe.model.report import BackupReport
from eunoe.model.validation import MAX_PATH_CHARACTERS, check_callback, check_flag, show
from eunoe.store.backup import restore_store
from eunoe.store.contract import CopyProgress, Store
from eunoe.store.sqlite import SqliteStore, mark_copy
from eunoe.store.temporary import IN_MEMORY, TemporaryStore

STORE_VARIABLE: Final = "EUNOE_STORE"


def default_path() -> Path:
    """The per-user file, where the platform keeps such data."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Application Support"
    else:
        home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return home / "eunoe" / "memory.db"


def open_store(target: str | os.PathLike[str] | None, create: bool = True) -> Store:
    """Open the store that a path, a URL or nothing names, and make it first if `create` allows it."""
    if target is None:
        target = os.environ.get(STORE_VARIABLE) or None
    if target == IN_MEMORY:
        return TemporaryStore()
    path = default_path() if target is None else _parse_path(target)
    if not create and not path.exists():
        raise StoreError(f"there is no memory at {path} yet: it is made by the first thing observed or remembered")
    if target is None:
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
    if target is None:
        target = os.environ.get(STORE_VARIABLE) or None
    if target == IN_MEMORY:
        raise StoreError("a store in memory cannot be restored: name a file")
    if target is None:
        default_path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = default_path() if target is None else _parse_path(target)
    mark = partial(mark_copy, is_backup=False)
    return restore_store(_parse_path(source), path, mark, keep, progress)


def _parse_path(target: str | os.PathLike[str]) -> Path:
    if not isinstance(target, str | os.PathLike) or not str(target).strip() or not _is_file_name(str(target)):
        raise StoreError(f"target {show(target)} names no file: give a path, a URL, or nothing for your own store")
    if isinstance(target, str) and "://" in target:
        return _parse_url(target)
    return Path(target).expanduser()


def _is_file_name(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text) and len(text) <= MAX_PATH_CHARACTERS
    except UnicodeEncodeError:
        return False


def _parse_url(url: str) -> Path:
    parts = urlsplit(url)
    if parts.scheme != "sqlite":
        raise StoreError(f"no store for {parts.scheme}:// here: give a path, or sqlite:///path/to/memory.db")
    path = unquote(parts.path)
    if parts.netloc or len(path) < 2 or parts.query or parts.fragment:
        raise StoreError(
            f"cannot read {url!r}: write sqlite:///relative.db or sqlite:////absolute/path.db, without ? or # "
            "(as part of a name: %3F and %23)"
        )
    return Path(path[1:])
