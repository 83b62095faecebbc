"""Where a memory rests: from what the user names to a path, and to a store.

Quick to import, for who only asks whether a server runs: what a store is made of is loaded when one is opened.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from eunoe.errors import MissingStoreError, StoreError
from eunoe.model.arguments import MAX_PATH_CHARACTERS, check_callback, check_flag, show

if TYPE_CHECKING:
    from eunoe.model.result import BackupReport
    from eunoe.store.contract import CopyProgress, Store

IN_MEMORY: Final = ":memory:"
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


def is_default(target: str | os.PathLike[str] | None) -> bool:
    """Whether the per-user file is meant: nothing names another one."""
    return target is None and not os.environ.get(STORE_VARIABLE)


def store_path(target: str | os.PathLike[str] | None) -> Path | None:
    """The file that a path, a URL or nothing names; None if it is the one in memory."""
    if is_default(target):
        return default_path()
    named = os.environ[STORE_VARIABLE] if target is None else target
    return None if named == IN_MEMORY else parse_path(named)


def parse_path(target: str | os.PathLike[str]) -> Path:
    """Read a path or a URL."""
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


def open_store(target: str | os.PathLike[str] | None, create: bool = True) -> Store:
    """Open the store that a path, a URL or nothing names, and make it first if `create` allows it."""
    path = store_path(target)
    if path is None:
        from eunoe.store.temporary import TemporaryStore

        return TemporaryStore()
    if not create and not path.exists():
        raise MissingStoreError(
            f"there is no memory at {path} yet: it is made by the first thing observed or remembered"
        )
    if is_default(target):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    from eunoe.store.sqlite import SqliteStore

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
    from eunoe.store.backup import restore_store
    from eunoe.store.sqlite import mark_copy

    mark = partial(mark_copy, is_backup=False)
    return restore_store(parse_path(source), path, mark, keep, progress)
