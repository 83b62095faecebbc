"""Which file is meant: from what the user names to a path. Quick to import, for who only asks whether a server runs."""

import os
import sys
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from eunoe.errors import StoreError
from eunoe.model.arguments import MAX_PATH_CHARACTERS, show

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
