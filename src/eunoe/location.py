"""Where a memory rests: from what the user names to a store."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from eunoe.errors import StoreError
from eunoe.store.contract import Store
from eunoe.store.sqlite import SqliteStore

VARIABLE = "EUNOE_STORE"
IN_MEMORY = ":memory:"


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
    """Opens the store that a path, a URL or nothing names, and makes it first if it may."""
    target = target or os.environ.get(VARIABLE) or None
    if target == IN_MEMORY:
        return TemporaryStore()
    path = default_path() if target is None else _path(target)
    if not create and not path.exists():
        raise StoreError(f"there is no memory at {path} yet: it is made by the first thing observed or remembered")
    if target is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    return SqliteStore(path)


def _path(target: str | os.PathLike[str]) -> Path:
    if isinstance(target, str) and "://" in target:
        return _sqlite_path(target)
    return Path(target).expanduser()


def _sqlite_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.scheme != "sqlite":
        raise StoreError(f"no store for {parts.scheme}:// here: give a path, or sqlite:///path/to/memory.db")
    path = unquote(parts.path)
    if parts.netloc or len(path) < 2:
        raise StoreError(f"cannot read {url!r}: write sqlite:///relative.db or sqlite:////absolute/path.db")
    return Path(path[1:])


class TemporaryStore(SqliteStore):
    """A store that is gone when it is closed: a file of its own, so that threads share it as they share any other."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="eunoe-", ignore_cleanup_errors=True)
        super().__init__(Path(self._folder.name) / "memory.db", durable=False)
        self.target = IN_MEMORY

    def close(self) -> None:
        super().close()
        self._folder.cleanup()
