"""The folder in which a worker works, looked at before and after each of its turns."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Final

from eunoe.apps.tickets.git_folder import GitFolder

_STORE_ENDS: Final = ("-journal", "-wal", "-shm")
"""Of what SQLite keeps beside a file."""
_MAX_FILES: Final = 20_000
"""Of a folder without git so many files are looked at."""
_MAX_READ_BYTES: Final = 1 << 32
"""Of a larger file so much is compared, and its size: reading takes a second a gigabyte."""
_BLOCK_BYTES: Final = 1 << 20
_MAX_PATHS: Final = 200
_CLOCK_LAG_NANOSECONDS: Final = 20_000_000
"""A file system takes the time of a change from a clock that ticks so seldom."""
_OTHER_FOLDERS: Final = frozenset([
    ".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".pytest_cache", ".mypy_cache",
    ".ruff_cache", ".tox", ".nox", ".gradle", ".cache",
])  # fmt: skip
"""Programs keep these for themselves: what is in them is nobody's work."""
_OTHER_FILES: Final = frozenset([".coverage", ".DS_Store", "Thumbs.db"])
_KEPT_END: Final = ".index"
"""Of the folder in which a store keeps its indexes."""
GONE: Final = "gone"
"""What is in a file that is not there."""
_NO_FILES: Final = ("/dev/", "/proc/", "/sys/")
_PATH: Final = re.compile(r"(?<![\w./~-])~?/[\w.+@/-]{2,300}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How the folder is at a moment."""

    folder: str
    base: str = ""
    """The commit that it is compared with: the last one when the run began."""
    head: str = ""
    moment: int = 0
    files: dict[str, str] = field(default_factory=dict)
    """What is in each file, as a hash: with git of those that differ from the base, without it of all. Files elsewhere
    that somebody named stand here with their whole paths, those that are not there too."""
    is_complete: bool = True
    is_plain: bool | None = None
    """Whether it was taken without git. Older states do not know."""


class WorkFolder:
    """The folder in which a worker works.

    Args:
        own: folders and files of the director's own, which do not count, should they lie in it.
    """

    def __init__(self, path: str | os.PathLike[str], own: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.path = Path(path).resolve()
        self.git = GitFolder.find(self.path)
        self.root = self.git.root if self.git else self.path
        self._own = [str(Path(place).expanduser().resolve()) for place in own]
        self._hashes: dict[Path, tuple[tuple[int, ...], str]] = {}

    @property
    def place(self) -> str:
        """What is looked at, in words."""
        return f"the git repository {self.root}" if self.git else f"{self.path}, which is no git repository,"

    def leave_git(self) -> None:
        """Look without git from now on. A snapshot that was taken with it cannot be compared any more."""
        self.git, self.root = None, self.path

    def look(self, first: Snapshot | None = None, texts: Iterable[str] = ()) -> Snapshot:
        """Note how it is now, and how the files elsewhere are that these texts name."""
        moment = time.time_ns() - _CLOCK_LAG_NANOSECONDS
        head = self.git.head() if self.git else ""
        base = first.base if first else head
        names = list(self._changed_names(self.git, base) if self.git else islice(self._all_names(), _MAX_FILES + 1))
        is_complete = self.git is not None or len(names) <= _MAX_FILES
        files = {name: self._hash(self.root / name) for name in (names if is_complete else names[:_MAX_FILES])}
        outside = {str(path): self._hash(path) for path in _named_paths(texts) if self._is_outside(path)}
        return Snapshot(str(self.path), base, head, moment, files | outside, is_complete, self.git is None)

    def changed(self, before: Snapshot, after: Snapshot) -> list[str]:
        """The paths that are not as they were."""
        paths = sorted(before.files.keys() | after.files.keys())
        return [path for path in paths if self._is_changed(path, before, after)]

    def untracked(self, first: Snapshot, names: Iterable[str]) -> set[str]:
        """Those of these files that are new and not committed."""
        if self.git is None:
            return set(names) - first.files.keys()
        uncommitted = self.git.uncommitted()
        return {name for name in names if uncommitted.get(name)}

    def committed_before(
        self, names: Sequence[str], before: Snapshot, after: Snapshot, made: Iterable[str]
    ) -> set[str]:
        """Those of these files that are the same as in an older commit: pulled, checked out, put back.

        Args:
            made: files that were changed by commits between the two snapshots.
        """
        if self.git is None or not names:
            return set()
        moved = set(self.git.differing_between(before.head, after.head))
        left = set(names) - self.git.uncommitted().keys() - set(made)
        return {name for name in left if not os.path.isabs(name) and (name in moved or self._exists(name))}

    def _exists(self, name: str) -> bool:
        return os.path.lexists(self.root / name)

    def _is_changed(self, path: str, before: Snapshot, after: Snapshot) -> bool:
        """A file that only one of them knows may not have been looked at by the other, as surely as one elsewhere."""
        if before.files.get(path) == after.files.get(path):
            return False
        if os.path.isabs(path) or (path in before.files and path in after.files):
            return path in before.files and path in after.files
        if before.is_complete and after.is_complete:
            return True
        return _is_newer(self.root / path, before.moment) if path in after.files else not self._exists(path)

    def _changed_names(self, git: GitFolder, base: str) -> Iterator[str]:
        for name, is_new in sorted(git.differing(base).items(), key=itemgetter(1)):
            is_by_product = _is_by_product(name) if is_new else self._has_only_by_products(git, base, name)
            if not is_by_product and not self._is_own(self.root / name):
                yield name

    def _has_only_by_products(self, git: GitFolder, base: str, name: str) -> bool:
        path = self.root / name
        new = git.new_in(base, name) if (path / ".git").exists() and not path.is_symlink() else []
        return bool(new) and all(map(_is_by_product, new))

    def _all_names(self) -> Iterator[str]:
        for place, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if name not in _OTHER_FOLDERS)
            for path in (Path(place, name) for name in sorted(names)):
                if not self._is_own(path) and path.name not in _OTHER_FILES:
                    yield path.relative_to(self.path).as_posix()

    def _is_own(self, path: Path) -> bool:
        """Whether it is one of the director's files, or stands beside one as the other files of a store do."""
        name = str(path)
        return any(name == place or name.startswith(f"{place}/") or _is_companion(name, place) for place in self._own)

    def _is_outside(self, path: Path) -> bool:
        try:
            resolved = path.resolve()
            is_possible = path.is_file() or not path.exists()
            return is_possible and not resolved.is_relative_to(self.root.resolve()) and not self._is_own(resolved)
        except (OSError, ValueError):
            return False

    def _hash(self, path: Path) -> str:
        """What is in a file. One that was not written since it was last read is not read again."""
        stamp = _stamp(path)
        known = self._hashes.get(path)
        if known and known[0] == stamp:
            return known[1]
        now = time.time_ns()
        content = self._hash_content(path)
        if stamp and stamp[-1] < now - _CLOCK_LAG_NANOSECONDS:
            self._hashes[path] = (stamp, content)
        return content

    def _hash_content(self, path: Path) -> str:
        try:
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                return f"link {_digest(os.fsencode(os.readlink(path)))}"
            if stat.S_ISDIR(status.st_mode):
                return f"folder {_digest(repr(sorted(self._hash_files(path))).encode())}"
            if not stat.S_ISREG(status.st_mode):
                return "no file"
            mode = "program" if status.st_mode & stat.S_IXUSR else "file"
            return f"{mode} {_digest_file(path)}"
        except OSError:
            return GONE

    def _hash_files(self, path: Path) -> Iterator[tuple[str, str]]:
        """Of a repository within the repository, which git names as one path."""
        left_out = {".git", *_OTHER_FILES}
        for place, folders, names in os.walk(path):
            folders[:] = [name for name in folders if name not in _OTHER_FOLDERS]
            yield from (
                (os.path.join(place, name), self._hash(Path(place, name))) for name in names if name not in left_out
            )


def _digest_file(path: Path) -> str:
    digest, left = hashlib.blake2b(digest_size=16), _MAX_READ_BYTES
    with path.open("rb") as file:
        while left and (block := file.read(_BLOCK_BYTES)):
            digest.update(block)
            left -= len(block)
        digest.update(b"" if left else str(os.fstat(file.fileno()).st_size).encode())
    return digest.hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.lstat()
    except OSError:
        return ()
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode, status.st_ctime_ns


def _is_by_product(name: str) -> bool:
    *folders, file = name.rstrip("/").split("/")
    return file in _OTHER_FILES or not _OTHER_FOLDERS.isdisjoint(folders)


def _named_paths(texts: Iterable[str]) -> list[Path]:
    names = dict.fromkeys(match[0].rstrip(".") for text in texts for match in _PATH.finditer(text))
    return [Path(name).expanduser() for name in list(names)[:_MAX_PATHS] if not name.startswith(_NO_FILES)]


def _is_companion(name: str, place: str) -> bool:
    """A folder has none: what belongs to it is in it."""
    is_so_named = name.startswith(f"{place}{_KEPT_END}/") or name in {place + end for end in _STORE_ENDS}
    return is_so_named and not os.path.isdir(place)


def _is_newer(path: Path, moment: int) -> bool:
    try:
        return path.stat().st_mtime_ns >= moment
    except (OSError, ValueError):
        return False
