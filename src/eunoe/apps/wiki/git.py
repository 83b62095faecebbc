"""A repository on the disk: its root, branch and commit, its files by one spelling of their path, and their hashes."""

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import file_digest, sha1
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final
from uuid import NAMESPACE_URL, UUID, uuid5

from eunoe.errors import InputError

_SECONDS: Final = 20
"""Git answers such questions at once; a disk that hangs must not hang an agent."""
_OTHER_REPOSITORY: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""What a git hook sets, and what would have git look at another repository than the one that was named."""
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@]*@")
_DRIVE: Final = re.compile(r"[A-Za-z]:/")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A working tree, or the little that is known where none was named. Without git only its root is known."""

    root: Path | None = None
    branch: str = ""
    commit: str = ""
    folder: Path | None = None
    """Where in the tree relative paths begin; the root itself if None."""

    def relative_paths(self, paths: Iterable[str]) -> list[str]:
        """Return the paths of files from the root, each once, however they were spelled.

        What lies elsewhere keeps its own path.

        >>> Checkout(Path("/clone")).relative_paths(["/clone/./src\\\\app.py", "src/app.py", "/etc/hosts"])
        ['src/app.py', '/etc/hosts']
        """
        if self.root is None:
            return list(dict.fromkeys(map(plain_path, paths)))
        root, folder = self.root, self.folder or self.root
        return list(dict.fromkeys(_relative_path(plain_path(path), root, folder) for path in paths))

    def blob_hashes(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the git blob hash of each of these that is a file of the working tree, as it is now."""
        root = self.root
        return {} if root is None else {path: hash for path in paths if (hash := _blob_hash(root, path))}


def plain_path(path: str) -> str:
    """Return one spelling of a path where no working tree is known.

    >>> plain_path(" ./src\\\\a/../app.py")
    'src/app.py'
    """
    return normpath(path.strip().replace("\\", "/"))


def open_checkout(folder: str | Path | None, branch: str | None = None, commit: str | None = None) -> Checkout:
    """Look at a working tree. A branch and a commit that are given count more than what git says."""
    branch, commit = branch or "", commit or ""
    if folder is None:
        return Checkout(None, branch, commit)
    start = Path(folder) if _DRIVE.match(str(folder).replace("\\", "/")) else Path(os.path.abspath(folder))
    lines = _ask_git(start, "rev-parse", "--show-toplevel", "HEAD", "--abbrev-ref", "HEAD") if start.is_dir() else []
    if not lines:
        return Checkout(start, branch, commit)
    head, name = lines[1:3] if len(lines) == 3 else ("", "")
    return Checkout(
        _spelled_like(Path(lines[0]), start), branch or ("" if name == "HEAD" else name), commit or head, start
    )


def default_repository_id(folder: str | Path) -> UUID:
    """Return an id that all clones of a repository share: from its origin's URL, else from its root commit."""
    place = Path(folder)
    if url := _ask_git(place, "config", "--get", "remote.origin.url"):
        return uuid5(NAMESPACE_URL, _CREDENTIALS.sub("", url[0].strip()))
    if roots := _ask_git(place, "rev-list", "--max-parents=0", "HEAD"):
        return uuid5(NAMESPACE_URL, roots[-1])
    raise InputError(
        f"{folder} is no git repository with an origin or a commit: give a repository id (--repository-id)"
    )


def _ask_git(folder: Path, *arguments: str) -> list[str]:
    """What git says, line by line; nothing if there is no git, or no repository."""
    environment = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.decode(errors="surrogateescape").splitlines()
    # A repository without a commit has a root, and fails at the next question.
    return lines if done.returncode == 0 else [line for line in lines[:1] if Path(line).is_absolute()]


def _spelled_like(root: Path, start: Path) -> Path:
    """The root as the caller spells it: git resolves symlinks, agents do not."""
    return next((each for each in (start, *start.parents) if each.resolve() == root.resolve()), root)


def _relative_path(path: str, root: Path, folder: Path) -> str:
    if not path.startswith("/") and not _DRIVE.match(path):
        path = _absolute_path(path, root, folder)
    return _resolved_below(path, root) or _below(path, root.as_posix()) or path


def _absolute_path(path: str, root: Path, folder: Path) -> str:
    """A relative path begins where the agent works, or at the root if the file is there."""
    base = root if os.path.exists(root / path) and not os.path.exists(folder / path) else folder
    return plain_path((PurePosixPath(base.as_posix()) / path).as_posix())


def _below(path: str, root: str) -> str | None:
    path, root = normpath(path), plain_path(root)
    if _DRIVE.match(root):
        is_inside = f"{path}/".lower().startswith(f"{root.rstrip('/')}/".lower())
    else:
        is_inside = f"{path}/".startswith(f"{root.rstrip('/')}/")
    return (path[len(root) :].strip("/") or ".") if is_inside else None


def _resolved_below(path: str, root: Path) -> str | None:
    """The same after symlinks: in the path, in the root, or in both."""
    if not Path(path).is_absolute():
        return None
    try:
        return _below(Path(path).resolve().as_posix(), root.resolve().as_posix())
    except (OSError, RuntimeError, ValueError):
        return None


def _blob_hash(root: Path, path: str) -> str:
    """The hash that git has for a file; empty if the tree has no such file."""
    place = root / path
    try:
        if not place.resolve().is_relative_to(root.resolve()) or not place.is_file():
            return ""
        with place.open("rb") as file:
            header = b"blob %d\0" % os.fstat(file.fileno()).st_size
            return file_digest(file, lambda: sha1(header, usedforsecurity=False)).hexdigest()
    except (OSError, RuntimeError, ValueError):
        return ""
