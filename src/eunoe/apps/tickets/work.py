"""What a worker did, as far as looking can tell: what became different in its folder while it had a turn.

What others change between its turns is not its work, nor what a check writes, nor what came with commits that were
there before, nor what is in the end as it was. What others change during a turn cannot be told apart.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from eunoe.apps.git import ask_git
from eunoe.errors import InputError
from eunoe.text.normalize import replace_surrogates

_DIFF: Final = ("-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-relative")
_EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What git calls a tree without files, and what a repository without a commit is compared with."""
_COMMIT_MARK: Final = "\1"


class GitFolder:
    """The repository that a folder is in. Paths are given as they stand below its root.

    Raises:
        InputError: it is in none, there is no git, or git fails.
    """

    def __init__(self, path: Path) -> None:
        answer = ask_git(path, "rev-parse", "--show-toplevel", "--git-path", "index")
        root, _, index = answer.removesuffix("\n").rpartition("\n")
        self.root = Path(root)
        self._index = path / index

    def head(self) -> str:
        """The last commit; nothing in a repository without one."""
        try:
            return ask_git(self.root, "rev-parse", "--quiet", "--verify", "HEAD").strip()
        except InputError:
            return ""

    def differing(self, commit: str) -> set[str]:
        """The files whose content is not that of a commit, whatever git was told of them meanwhile."""
        with TemporaryDirectory() as folder:
            place = os.path.join(folder, "index")
            with suppress(FileNotFoundError):
                shutil.copyfile(self._index, place)  # it knows which files were not written since, so none is read
            ask_git(self.root, "read-tree", "--reset", commit or _EMPTY_TREE, index=place)
            new = self._names("ls-files", "-z", "--others", "--exclude-standard", index=place)
            known = self._names("diff", "--name-only", "--ignore-submodules=none", *_DIFF, index=place)
        return {name for name in new if not _is_by_product(name)}.union(known)

    def differing_between(self, one: str, other: str) -> list[str]:
        if one == other:
            return []
        return self._names("diff", "--name-only", *_DIFF, one or _EMPTY_TREE, other or _EMPTY_TREE, "--")

    def line_counts(self, commit: str) -> dict[str, str]:
        """The paths that differ from a commit, with the lines that were added and removed."""
        entries = (
            entry.split("\t", 2) for entry in self._names("diff", "--numstat", *_DIFF, commit or _EMPTY_TREE, "--")
        )
        return {path: "(binary)" if added == "-" else f"+{added} -{removed}" for added, removed, path in entries}

    def commits_made(self, since: str, until: str, seconds: int) -> dict[str, list[str]]:
        """The commits that were made after a time, each with the paths that it changes itself.

        A commit that changes nothing is left out, and so are a merge without changes of its own, and a commit that
        makes the change of an older one once more, as after a rebase.
        """
        reach = ("--right-only", "--cherry-pick", f"{since}...{until}") if since else (until,)
        options = ("-z", "--cc", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
        form = f"--format={_COMMIT_MARK}%H %ct"
        made: dict[str, list[str]] = {}
        commit, is_made = "", False
        for entry in self._names("log", "--no-show-signature", *options, form, *reach, "--"):
            if entry.startswith(_COMMIT_MARK):
                commit, _, moment = entry[1:].partition(" ")
                is_made = int(moment) >= seconds
            elif (name := entry.removeprefix("\n")) and is_made:
                made.setdefault(commit, []).append(name)
        return made

    def subjects(self, since: str, commits: Container[str]) -> list[str]:
        """Short names and first lines of those of these commits that lie between another and now, newest first."""
        reach = f"{since}..HEAD" if since else "HEAD"
        listed = ask_git(self.root, "log", "--no-show-signature", "--format=%H %h %s", reach, "--").splitlines()
        entries = (line.partition(" ") for line in listed)
        return [replace_surrogates(rest) for commit, _, rest in entries if commit in commits]

    def _names(self, *arguments: str, index: str = "") -> list[str]:
        return [name for name in ask_git(self.root, *arguments, index=index).split("\0") if name]


_STORE_ENDS: Final = ("-journal", "-wal", "-shm")
"""Of what SQLite keeps beside a file."""
_MAX_FILES: Final = 20_000
"""Of a folder without git so many files are looked at."""
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
    is_plain: bool = False
    """Whether it was taken without git."""


class WorkFolder:
    """The folder in which a worker works.

    Args:
        own: folders and files of the director's own, which do not count, should they lie in it.
    """

    def __init__(self, path: str | os.PathLike[str], own: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.path = Path(path).resolve()
        try:
            self.git: GitFolder | None = GitFolder(self.path)
        except InputError:
            self.git = None
        self.root = self.git.root if self.git else self.path
        self._own = [str(Path(place).expanduser().resolve()) for place in own]
        self._hashes: dict[Path, tuple[tuple[int, ...], str]] = {}

    @property
    def place(self) -> str:
        """What is looked at, in words."""
        return f"the git repository {self.root}" if self.git else f"{self.path}, which is no git repository,"

    def look(self, first: Snapshot | None = None, texts: Iterable[str] = ()) -> Snapshot:
        """Note how it is now, and how the files elsewhere are that these texts name."""
        moment = time.time_ns() - _CLOCK_LAG_NANOSECONDS
        head = self.git.head() if self.git else ""
        base = first.base if first else head
        listed = iter(self.git.differing(base)) if self.git else islice(self._all_names(), _MAX_FILES)
        names = sorted(name for name in listed if not self._is_own(self.root / name))
        files = {name: self._hash(self.root / name) for name in names}
        files |= {str(path): self._hash(path) for path in _named_paths(texts) if self._is_outside(path)}
        is_complete = self.git is not None or len(names) < _MAX_FILES
        return Snapshot(str(self.path), base, head, moment, files, is_complete, self.git is None)

    def changed(self, before: Snapshot, after: Snapshot) -> list[str]:
        """The paths that are not as they were.

        A file elsewhere, or in a folder that is too large, that only one of them knows was not looked at by the other.
        """
        known, is_complete = before.files.keys() & after.files.keys(), before.is_complete and after.is_complete
        return [
            path
            for path in sorted(before.files.keys() | after.files.keys())
            if before.files.get(path) != after.files.get(path)
            and (path in known or (is_complete and not os.path.isabs(path)))
        ]

    def committed_before(self, names: Iterable[str], before: Snapshot, after: Snapshot) -> set[str]:
        """Those of these files that are as the last commit has them: pulled, checked out, put back."""
        inside = {name for name in names if not os.path.isabs(name)}
        if self.git is None or not inside:
            return set()
        moved = set(self.git.differing_between(before.head, after.head))
        left = inside - self.git.differing(after.head)
        return {name for name in left if name in moved or os.path.lexists(self.root / name)}

    def _all_names(self) -> Iterator[str]:
        for place, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if name not in _OTHER_FOLDERS)
            yield from (
                Path(place, name).relative_to(self.path).as_posix()
                for name in sorted(names)
                if name not in _OTHER_FILES
            )

    def _is_own(self, path: Path) -> bool:
        """Whether it is one of the director's files, or stands beside one as the other files of a store do."""
        name = str(path)
        for place in self._own:
            if name == place or name.startswith(f"{place}/"):
                return True
            is_companion = name.startswith(f"{place}{_KEPT_END}/") or name.removeprefix(place) in _STORE_ENDS
            if is_companion and not os.path.isdir(place):  # a folder has none: what belongs to it is in it
                return True
        return False

    def _is_outside(self, path: Path) -> bool:
        try:
            resolved = path.resolve()
            is_possible = path.is_file() or not path.exists()
            return is_possible and not resolved.is_relative_to(self.root.resolve()) and not self._is_own(resolved)
        except (OSError, ValueError):
            return False

    def _hash(self, path: Path) -> str:
        """What is in a file. One that was not written since it was last read is not read again."""
        try:
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                return f"link {_digest(os.readlink(path))}"
            if stat.S_ISDIR(status.st_mode):  # a repository within the repository, which git names as one path
                return f"folder {_digest(repr(sorted(self._hash_files(path))))}"
            if not stat.S_ISREG(status.st_mode):
                return "no file"
            stamp = status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode, status.st_ctime_ns
            known = self._hashes.get(path)
            if known and known[0] == stamp:
                return known[1]
            now = time.time_ns()
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
            content = f"{'program' if status.st_mode & stat.S_IXUSR else 'file'} {digest}"
            if status.st_ctime_ns < now - _CLOCK_LAG_NANOSECONDS:
                self._hashes[path] = (stamp, content)
            return content
        except OSError:
            return GONE

    def _hash_files(self, path: Path) -> Iterator[tuple[str, str]]:
        for place, folders, names in os.walk(path):
            folders[:] = [name for name in folders if name not in _OTHER_FOLDERS]
            paths = (Path(place, name) for name in names if name != ".git" and name not in _OTHER_FILES)
            yield from ((str(path), self._hash(path)) for path in paths)


def _digest(text: str) -> str:
    return hashlib.blake2b(os.fsencode(text), digest_size=16).hexdigest()


def _is_by_product(name: str) -> bool:
    *folders, file = name.rstrip("/").split("/")
    return file in _OTHER_FILES or not _OTHER_FOLDERS.isdisjoint(folders)


def _named_paths(texts: Iterable[str]) -> list[Path]:
    names = dict.fromkeys(match[0].rstrip(".") for text in texts for match in _PATH.finditer(text))
    return [Path(name).expanduser() for name in list(names)[:_MAX_PATHS] if not name.startswith(_NO_FILES)]


_MAX_LISTED: Final = 40
_MAX_SUMMARY_FILES: Final = 12
_UNSEEN: Final = "If anything was done, it was done outside of it or in files that git ignores, where nobody looked."
NOTHING: Final = "Nothing was changed."


class Changes(NamedTuple):
    """What the worker changed."""

    place: str
    """What was looked at, such as "the git repository /home/anna/shop"."""
    commits: list[str]
    files: dict[str, str]
    """Their paths, each with what became of it, such as "+3 -1" for its lines."""
    outside: list[str]
    """Files elsewhere that were named and that changed during a turn."""
    notes: list[str]
    """What changed otherwise."""

    def __bool__(self) -> bool:
        """Commits alone are no work: what they bring may have been there before."""
        return bool(self.files or self.outside)

    def describe(self) -> str:
        """Say it in lines, for the director and the log."""
        inside = f"{_count(len(self.files), 'file')} changed, {_count(len(self.commits), 'commit')} made"
        lines = [f"In {self.place} in the worker's turns: {inside if self.files else 'nothing changed'}."]
        lines += [f"commit {commit}" for commit in _listed(self.commits)]
        lines += _listed([f"{path} {lines}".strip() for path, lines in self.files.items()])
        if self.outside:
            lines.append(f"Changed outside of it, nobody can say by whom: {_join(self.outside)}.")
        elif not self:
            lines.append(_UNSEEN)
        return "\n".join([*lines, *self.notes])

    def summarize(self) -> str:
        """Say it in one or two sentences, for a memory."""
        if not self:
            return NOTHING
        hashes = ", ".join(commit.split(" ")[0] for commit in self.commits[:_MAX_SUMMARY_FILES])
        files = f"Changed: {_shorten(list(self.files))}" if self.files else ""
        inside = "; ".join(filter(None, (files, hashes and f"commits: {hashes}")))
        outside = f"Changed outside of the folder, where nobody can say by whom: {_shorten(self.outside)}"
        return " ".join(f"{part[0].upper()}{part[1:]}." for part in (inside, self.outside and outside) if part)


@dataclass(slots=True)
class Work:
    """What the worker did in the turns of a run."""

    first: Snapshot
    """How the folder was when the run began."""
    before: Snapshot | None = None
    """How it was when the turn began that is under way."""
    files: dict[str, str | None] = field(default_factory=dict)
    """Those that were changed in a turn, each with what was in it before."""
    outside: dict[str, str] = field(default_factory=dict)
    """Those of them that lie elsewhere, each with what was in it after the turn."""
    commits: list[str] = field(default_factory=list)
    committed_before: list[str] = field(default_factory=list)
    others_files: list[str] = field(default_factory=list)
    """Files elsewhere that changed while the worker had no turn."""

    def begin_turn(self, folder: WorkFolder, texts: Iterable[str]) -> None:
        """Look before the worker is sent a prompt. A turn that was cut short goes on when its prompt is sent again."""
        if self.before is None:
            self.before = folder.look(self.first, texts)
            self._drop_others_files(self.before)

    def end_turn(self, folder: WorkFolder, texts: Iterable[str]) -> Changes:
        """Look when it has answered, and return what it has changed so far."""
        after = folder.look(self.first, texts)
        before, self.before = self.before, None  # only now: if git fails, the turn is still under way
        if before is not None:
            made = dict[str, list[str]]()
            if folder.git and folder.git.differing_between(before.head, after.head):
                made = folder.git.commits_made(before.head, after.head, before.moment // 1_000_000_000)
            changed = folder.changed(before, after)
            committed = {name for names in made.values() for name in names}
            old = folder.committed_before(changed, before, after) - committed
            self.committed_before = sorted({*self.committed_before, *old})
            for path in changed:
                if path not in old and path not in self.others_files:
                    self.files.setdefault(path, before.files.get(path))
                    if os.path.isabs(path):
                        self.outside[path] = after.files.get(path, "")
            self.commits += [commit for commit, paths in made.items() if not self.files.keys().isdisjoint(paths)]
        return self._changes(folder, after)

    def look_again(self, folder: WorkFolder, texts: Iterable[str]) -> Changes:
        """Return what is there of it now. What others changed elsewhere meanwhile is no longer counted."""
        now = folder.look(self.first, texts)
        self._drop_others_files(now)
        return self._changes(folder, now)

    def _drop_others_files(self, now: Snapshot) -> None:
        for path, content in list(self.outside.items()):
            if now.files.get(path, "") != content:
                del self.outside[path], self.files[path]
                self.others_files.append(path)

    def _changes(self, folder: WorkFolder, now: Snapshot) -> Changes:
        git, first = folder.git, self.first.files
        changed = sorted(path for path, content in self.files.items() if now.files.get(path) != content)
        outside = [path for path in changed if os.path.isabs(path)]
        own = [path for path in changed if path not in outside and now.files.get(path) != first.get(path)]
        counts = git.line_counts(now.base) if git and own else {}
        new = "(new, not committed)" if git else ""
        files = {_printable(path): counts.get(path, new) for path in own}
        commits = git.subjects(now.base, self.commits) if git and self.commits and own else []
        notes = []
        if git and (same := [path for path, content in first.items() if now.files.get(path) == content]):
            notes.append(f"Changed before the ticket began, and not since: {_join(same)}.")
        if old := [path for path in self.committed_before if path not in own]:
            notes.append(f"Not counted, because an older commit has them so: {_join(old)}.")
        known = {*old, *self.files}
        others = [path for path in folder.changed(self.first, now) if path not in known and not os.path.isabs(path)]
        if others := [*others, *self.others_files]:
            notes.append(f"Changed by others or by the check, while the worker was not at work: {_join(others)}.")
        if not now.is_complete:
            notes.append("Only a part of its files was looked at: it has too many.")
        return Changes(folder.place, commits, files, outside, notes)


def _printable(path: str) -> str:
    return path if path.isprintable() else ascii(path)


def _join(paths: Iterable[str]) -> str:
    return ", ".join(_listed(list(map(_printable, paths))))


def _shorten(paths: list[str]) -> str:
    more = f" and {len(paths) - _MAX_SUMMARY_FILES} more" if len(paths) > _MAX_SUMMARY_FILES else ""
    return f"{', '.join(paths[:_MAX_SUMMARY_FILES])}{more}"


def _listed(items: list[str]) -> list[str]:
    more = len(items) - _MAX_LISTED
    return items if more <= 0 else [*items[:_MAX_LISTED], f"and {more} more"]


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
