"""What a worker did, as far as looking can tell: what became different in its folder while it had a turn.

What others change between its turns is not its work, nor what a check writes, nor what came with commits that were
there before, nor what is in the end as it was. What others change during a turn cannot be told apart.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple, Self

from eunoe.apps.tickets.worker import Program
from eunoe.errors import InputError
from eunoe.text.normalize import replace_surrogates

_GIT_SECONDS: Final = 60.0
_SETTINGS: Final = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_DIFF: Final = ("-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-relative")
_WHOLE: Final = "--ignore-submodules=none"
_EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What git calls a tree without files, and what a repository without a commit is compared with."""
_COMMIT_MARK: Final = "\1"
_MAX_ARGUMENTS: Final = 500


class GitFolder:
    """A folder in a repository. Paths are given as they stand below its root."""

    def __init__(self, path: Path, root: Path) -> None:
        self.root = root
        self._path = path

    @classmethod
    def find(cls, path: Path) -> Self | None:
        """Return the folder as git knows it; None if it is in no repository, or there is no git."""
        folder = cls(path, path)
        try:
            folder.root = Path(folder._ask("rev-parse", "--show-toplevel").splitlines()[0])
        except (InputError, IndexError):
            return None
        return folder

    def head(self) -> str:
        """The last commit; nothing in a repository without one."""
        try:
            return self._ask("rev-parse", "--quiet", "--verify", "HEAD").strip()
        except InputError:
            return ""

    def uncommitted(self) -> dict[str, bool]:
        """The paths that differ from the last commit, and whether git does not know them."""
        listed = self._ask("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", _WHOLE).split(
            "\0"
        )
        return {entry[3:]: entry.startswith("??") for entry in listed if len(entry) > 3}

    def differing(self, commit: str) -> dict[str, bool]:
        """The paths that differ from a commit, and whether git does not know them.

        A file that git was only told to forget does not differ.
        """
        listed = self._names("diff", "--name-status", _WHOLE, *_DIFF, commit or _EMPTY_TREE, "--")
        names = listed[1::2]
        there = [
            name
            for status, name in zip(listed[::2], names, strict=False)
            if status == "D" and (self.root / name).is_file()
        ]
        same = self._same_in(commit, there) if there else set()
        found = {name: True for name, is_new in self.uncommitted().items() if is_new} | dict.fromkeys(names, False)
        return {name: is_new for name, is_new in found.items() if name not in same}

    def new_in(self, commit: str, name: str) -> list[str]:
        """The new files of a repository within this one that differs from a commit in nothing else."""
        if self._names(
            "diff", "--name-only", "--ignore-submodules=untracked", *_DIFF, commit or _EMPTY_TREE, "--", name
        ):
            return []
        return [path for path, is_new in type(self)(self.root / name, self.root / name).uncommitted().items() if is_new]

    def differing_between(self, one: str, other: str) -> list[str]:
        if one == other:
            return []
        return self._names("diff", "--name-only", *_DIFF, one or _EMPTY_TREE, other or _EMPTY_TREE, "--")

    def line_counts(self, commit: str) -> dict[str, str]:
        """The paths that differ from a commit, with the lines that were added and removed."""
        return dict(_read_counts(self._ask("diff", "--numstat", *_DIFF, commit or _EMPTY_TREE, "--").split("\0")))

    def commits_made(self, since: str, until: str, seconds: int) -> dict[str, list[str]]:
        """The commits that were made after a time or here, each with the paths that it changes itself.

        A commit that changes nothing is left out, and so are a merge without changes of its own, and a commit that
        makes the change of an older one once more, as after a rebase.
        """
        if since == until:
            return {}
        reach = ("--right-only", "--cherry-pick", f"{since}...{until}") if since else (until,)
        options = ("-z", "--cc", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
        form = f"--format={_COMMIT_MARK}%H %ct"
        made: dict[str, list[str]] = {}
        commit, here = "", self._committed_here(since)
        for entry in self._ask("log", "--no-show-signature", *options, form, *reach, "--").split("\0"):
            if entry.startswith(_COMMIT_MARK):
                commit, _, moment = entry[1:].partition(" ")
                is_made = int(moment) >= seconds or commit in here
            elif (name := entry.removeprefix("\n")) and is_made:
                made.setdefault(commit, []).append(name)
        return made

    def subjects(self, since: str, commits: Container[str]) -> list[str]:
        """Short names and first lines of those of these commits that lie between another and now, newest first."""
        reach = f"{since}..HEAD" if since else "HEAD"
        listed = self._ask("log", "--no-show-signature", "--format=%H %h %s", reach, "--").splitlines()
        return [
            replace_surrogates(rest)
            for commit, _, rest in (line.partition(" ") for line in listed)
            if commit in commits
        ]

    def _committed_here(self, since: str) -> set[str]:
        """The commits that were made in this folder after another, whatever date they bear."""
        here = set[str]()
        for line in self._ask("log", "--walk-reflogs", "--format=%H %gs", "HEAD", "--").splitlines():
            commit, _, action = line.partition(" ")
            if commit == since:
                break
            if action.startswith("commit"):
                here.add(commit)
        return here

    def _same_in(self, commit: str, names: Sequence[str]) -> set[str]:
        """Those of these files whose content is that of a commit."""
        same = set[str]()
        for batch in (names[start : start + _MAX_ARGUMENTS] for start in range(0, len(names), _MAX_ARGUMENTS)):
            listed = self._names("ls-tree", "--full-tree", "-z", commit or _EMPTY_TREE, "--", *batch)
            before = {name: entry.split(" ")[2] for entry, _, name in (line.partition("\t") for line in listed)}
            hashes = self._ask("hash-object", "--", *(os.fspath(self.root / name) for name in batch)).split()
            same.update(name for name, content in zip(batch, hashes, strict=True) if before.get(name) == content)
        return same

    def _names(self, *arguments: str) -> list[str]:
        return [name for name in self._ask(*arguments).split("\0") if name]

    def _ask(self, *arguments: str) -> str:
        result = Program("git", self._path, _GIT_SECONDS, decoding="surrogateescape").run([*_SETTINGS, *arguments])
        if result.trouble:
            raise InputError(f"git {arguments[0]} {result.trouble} in {os.fspath(self._path)}")
        return result.output


def _read_counts(entries: Iterable[str]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        added, _, rest = entry.partition("\t")
        removed, _, path = rest.partition("\t")
        if path:
            yield path, "(binary)" if added == "-" else f"+{added} -{removed}"


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
    is_plain: bool = False
    """Whether it was taken without git."""


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
    check_files: list[str] = field(default_factory=list)
    """New files that the check made."""
    others_files: list[str] = field(default_factory=list)
    """Files elsewhere that changed while the worker had no turn."""
    late_files: list[str] = field(default_factory=list)
    """Files elsewhere that were named in a turn for the first time."""

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
            self._take_in(folder, before, after)
        return self._changes(folder, after)

    def look_again(self, folder: WorkFolder, texts: Iterable[str]) -> Changes:
        """Return what is there of it now. What others changed elsewhere meanwhile is no longer counted."""
        now = folder.look(self.first, texts)
        self._drop_others_files(now)
        return self._changes(folder, now)

    def note_check(self, folder: WorkFolder, before: Snapshot) -> None:
        """Leave out the new files that a check made. A file that was there before is whose it was."""
        made = _there(folder.look(self.first)) - _there(before)
        self.check_files = sorted({*self.check_files, *folder.untracked(self.first, made)})

    def _take_in(self, folder: WorkFolder, before: Snapshot, after: Snapshot) -> None:
        made = dict[str, list[str]]()
        if folder.git and folder.git.differing_between(before.head, after.head):
            made = folder.git.commits_made(before.head, after.head, before.moment // 1_000_000_000)
        names = {name for paths in made.values() for name in paths}
        changed = folder.changed(before, after)
        old = folder.committed_before(changed, before, after, names)
        self.committed_before = sorted({*self.committed_before, *old})
        taken_over = ({*changed} - old | names) & _there(after)
        self.check_files = sorted({*self.check_files} - taken_over)
        self.late_files += sorted(path for path in _there(after) - before.files.keys() if os.path.isabs(path))
        for path in changed:
            if path not in old and path not in self.others_files:
                self.files.setdefault(path, before.files.get(path))
                if os.path.isabs(path):
                    self.outside[path] = after.files.get(path, "")
        self.commits += [commit for commit, paths in made.items() if not self.files.keys().isdisjoint(paths)]

    def _drop_others_files(self, now: Snapshot) -> None:
        for path, content in list(self.outside.items()):
            if now.files.get(path, "") != content:
                del self.outside[path], self.files[path]
                self.others_files.append(path)

    def _changes(self, folder: WorkFolder, now: Snapshot) -> Changes:
        git = folder.git
        changed = {path for path, content in self.files.items() if now.files.get(path) != content}
        own = sorted(path for path in changed if not os.path.isabs(path) and path not in self.check_files)
        outside = sorted(path for path in changed if os.path.isabs(path))
        counts = git.line_counts(now.base) if git and own else {}
        new = "(new, not committed)" if git else ""
        files = {_printable(path): counts.get(path, new) for path in own}
        commits = git.subjects(now.base, self.commits) if git and self.commits and own else []
        return Changes(folder.place, commits, files, outside, list(self._notes(folder, now, own)))

    def _notes(self, folder: WorkFolder, now: Snapshot, own: list[str]) -> Iterator[str]:
        first = self.first.files
        if folder.git and (same := [path for path, content in first.items() if now.files.get(path) == content]):
            yield f"Changed before the ticket began, and not since: {_join(same)}."
        old = [path for path in self.committed_before if path not in own]
        if old:
            yield f"Not counted, because an older commit has them so: {_join(old)}."
        if late := [path for path in self.late_files if path not in self.files]:
            yield f"Not counted, because it was named, but not looked at before the turn: {_join(late)}."
        if self.check_files:
            yield f"Written by the check, and not counted: {_join(self.check_files)}."
        known = {*own, *old, *self.check_files, *self.files}
        others = [path for path in folder.changed(self.first, now) if path not in known and not os.path.isabs(path)]
        if others := [*others, *self.others_files]:
            yield f"Changed by others, while the worker was not at work: {_join(others)}."
        if not now.is_complete:
            yield "Only a part of its files was looked at: it has too many."


def _there(snapshot: Snapshot) -> set[str]:
    return {path for path, content in snapshot.files.items() if content != GONE}


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
