"""The files of a repository: which there are, what is in them, how paths are spelled, and what git knows of them."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import file_digest, sha1
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from eunoe.apps.git import NoRepositoryError, ask_git
from eunoe.errors import InputError

MAX_READ_BYTES: Final = 100_000
"""Of one file: some 25,000 tokens. What is longer is read in pieces, with `head` and `tail`."""
_MAX_NAME_CHARACTERS: Final = 4096
_FILE_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_GIT_NAMES: Final = (".git", "git~1")
"""As file systems know it that ignore case, or that give short names."""
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class Entry(NamedTuple):
    """One name in a folder; of a folder, `size` counts the files in it."""

    name: str
    size: int
    is_folder: bool


class RepositoryFiles:
    """The files of one repository: those that git tracks or would, or all of a folder without git.

    >>> RepositoryFiles(".").relative("./src/../README.md")
    'README.md'
    """

    def __init__(self, root: str | os.PathLike[str], hidden: str | os.PathLike[str] | None = None) -> None:
        """`hidden` is a folder that is not shown: the one into which a wiki is written."""
        self.root = Path(root).resolve()
        if not self.root.exists():
            raise InputError(f"there is no folder {root}: name the folder of a repository")
        if not self.root.is_dir():
            raise InputError(f"{root} is not a folder: name the folder of a repository")
        hidden_path = Path(hidden).resolve() if hidden else None
        is_inside = hidden_path is not None and hidden_path.is_relative_to(self.root)
        self._hidden = hidden_path.relative_to(self.root).as_posix() if hidden_path and is_inside else None

    def relative(self, path: str) -> str:
        """Return a path as it stands below the root, "" for the root itself; raise InputError for any other."""
        if not path or "\0" in path or len(path) > _MAX_NAME_CHARACTERS or not _is_encodable(path):
            raise InputError("name a path below the root of the repository")
        name = os.path.normpath(path)
        if os.path.isabs(name):
            name = os.path.relpath(name, self.root)
        parts = Path(name).parts
        if ".." in parts or Path(name).is_absolute():
            raise InputError(f"{_shown(path)} is outside the repository")
        if any(_is_git(part) for part in parts):
            raise InputError(f"{_shown(path)} belongs to git, not to the repository's files")
        name = "" if name == "." else Path(name).as_posix()
        if self._is_hidden(name):
            raise InputError(f"{_shown(path)} belongs to the wiki, not to the repository's files")
        return name

    def names(self, folder: str = "") -> list[str]:
        """Return all files at or below a path, sorted."""
        folder = self.relative(folder or ".")
        by_git = self._git_names(folder)
        names = self._walk(folder) if by_git is None else by_git
        return sorted(name for name in names if self._is_visible(name))

    def entries(self, folder: str = ".") -> list[Entry]:
        """Return what stands in a folder, folders first."""
        folder = self.relative(folder)
        depth = len(PurePosixPath(folder).parts)
        inner = [PurePosixPath(name).parts[depth:] for name in self.names(folder or ".")]
        if inner == [()]:
            raise InputError(f"{_shown(folder)} is a file: read it, or name a folder")
        if not inner:
            raise InputError(f"there is no folder {_shown(folder)} with files in the repository")
        counts = Counter(parts[0] for parts in inner if len(parts) > 1)
        folders = [Entry(name, count, True) for name, count in sorted(counts.items())]
        files = (parts[0] for parts in inner if len(parts) == 1)
        return folders + [Entry(name, os.lstat(self.root / folder / name).st_size, False) for name in files]

    def read(self, path: str, *, from_end: bool = False) -> tuple[str, int]:
        """Return the text of a file, or its first or last part if it is long, and the size of the whole in bytes."""
        name = self.relative(path)
        if name not in self.names(name or "."):
            raise InputError(f"there is no file {_shown(path)} in the repository")
        place = self.root / name
        if place.resolve() != place:
            raise InputError(f"{_shown(path)} is or lies behind a link; links are not followed")
        try:
            with open(place, "rb", opener=lambda name, flags: os.open(name, flags | _FILE_FLAGS)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise InputError(f"{_shown(path)} is not a file")
                file.seek(max(status.st_size - MAX_READ_BYTES, 0) if from_end else 0)
                content = file.read(MAX_READ_BYTES)
        except OSError as error:
            raise InputError(f"{_shown(path)} cannot be read: {error.strerror}") from None
        if content.startswith(_UTF16_MARKS):
            return content.decode("utf-16", errors="replace"), status.st_size
        if b"\0" in content:
            raise InputError(f"{_shown(path)} is binary, not text")
        return content.decode("utf-8-sig", errors="replace"), status.st_size

    def _git_names(self, folder: str) -> list[str] | None:
        """What git tracks or would track; None where there is no git to ask."""
        try:
            listed = ask_git(
                self.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder or "."
            )
        except NoRepositoryError:
            return None
        return list(dict.fromkeys(name for name in listed.split("\0") if name))

    def _walk(self, folder: str) -> Iterator[str]:
        start = self.root / folder
        if start.resolve() != start:  # it is or lies behind a link
            return
        if start.is_file():
            yield folder
        for place, folders, files in os.walk(start):
            folders[:] = [name for name in folders if not _is_git(name)]
            yield from ((Path(place) / name).relative_to(self.root).as_posix() for name in files)

    def _is_visible(self, name: str) -> bool:
        if self._is_hidden(name) or any(_is_git(part) for part in PurePosixPath(name).parts):
            return False
        try:
            return stat.S_ISREG(os.lstat(self.root / name).st_mode)
        except OSError:
            return False

    def _is_hidden(self, name: str) -> bool:
        return bool(self._hidden) and PurePosixPath(name).is_relative_to(self._hidden or "")


def printable(name: str) -> str:
    """Return a name so that it takes one line and drives no terminal and no prompt."""
    return name if name.isprintable() else repr(name)


def _shown(path: str) -> str:
    return printable(path if len(path) <= 200 else f"{path[:200]}…")


def _is_encodable(path: str) -> bool:
    """Whether a file can have this name: half of an emoji is in none."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _is_git(name: str) -> bool:
    return name.casefold().rstrip(". ") in _GIT_NAMES


_SECONDS: Final = 20
"""Git answers such questions at once; a disk that hangs must not hang an agent."""
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@]*@")


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
    start = Path(os.path.abspath(folder))
    lines = _ask_git(start, "rev-parse", "--show-toplevel") if start.is_dir() else []
    if not lines:
        return Checkout(start, branch, commit)
    head, name = _ask_git(start, "rev-parse", "HEAD", "--abbrev-ref", "HEAD") or ("", "")
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
    """What git says, line by line; nothing if it has no answer."""
    try:
        return ask_git(folder, *arguments, seconds=_SECONDS).splitlines()
    except InputError:
        return []


def _spelled_like(root: Path, start: Path) -> Path:
    """The root as the caller spells it: git resolves symlinks, agents do not."""
    return next((each for each in (start, *start.parents) if each.resolve() == root.resolve()), root)


def _relative_path(path: str, root: Path, folder: Path) -> str:
    if not path.startswith("/"):  # it begins where the agent works, or at the root if the file is there
        base = root if os.path.exists(root / path) and not os.path.exists(folder / path) else folder
        path = plain_path((PurePosixPath(base.as_posix()) / path).as_posix())
    return _resolved_below(path, root) or _below(path, root.as_posix()) or path


def _below(path: str, root: str) -> str | None:
    path, root = normpath(path), plain_path(root)
    is_inside = f"{path}/".startswith(f"{root.rstrip('/')}/")
    return (path[len(root) :].strip("/") or ".") if is_inside else None


def _resolved_below(path: str, root: Path) -> str | None:
    """The same after symlinks: in the path, in the root, or in both."""
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


def matches_any(path: str, wanted: Iterable[str]) -> bool:
    """Say whether a path is one of these, lies in one of these folders, is a folder that holds one of them, or is meant
    by one of these globs. A glob without a slash is about names, wherever the file lies.

    >>> [matches_any("src/web/app.py", [wanted]) for wanted in ("src/web/app.py", "src", "src/**/*.py", "*.py", "*.md")]
    [True, True, True, True, False]
    """
    return any(_matches(path, each) for each in wanted)


def _matches(path: str, wanted: str) -> bool:
    if wanted in (path, ".", "/") or path.startswith(f"{wanted}/") or wanted.startswith(f"{path}/"):
        return True
    globs = wanted.split("/") if "/" in wanted else ["**", wanted]
    return _matches_glob(path.split("/"), globs)


def _matches_glob(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Whether all names are matched by all globs. Tried for all places at once, so that no glob takes long."""
    places = {0}
    for glob in globs:
        if not places:
            return False
        if glob == "**":
            places = set(range(min(places), len(names) + 1))
        else:
            places = {place + 1 for place in places if place < len(names) and fnmatchcase(names[place], glob)}
    return len(names) in places
