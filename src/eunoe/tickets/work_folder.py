"""What became of the folder in which a worker works: looked at, not asked for.

With git these are the commits, the changed lines and the new files since a run began. Without, they are the files with
a later time of change.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from eunoe.errors import InputError
from eunoe.tickets.program import Program

_GIT_SECONDS: Final = 60.0
_EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What git calls a tree without files, and what a repository without a commit is compared with."""
_MAX_LISTED: Final = 40
_MAX_SUMMARY_FILES: Final = 12
_MAX_FILES: Final = 20_000
"""Of a folder without git so many files are looked at."""
_MAX_PATHS: Final = 200
_CLOCK_LAG_NANOSECONDS: Final = 20_000_000
"""A file system takes the time of a change from a clock that ticks so seldom."""
_OTHER_FOLDERS: Final = frozenset([".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv"])
_NO_FILES: Final = ("/dev/", "/proc/", "/sys/")
_PATH: Final = re.compile(r"(?<![\w./~-])~?/[\w.+@/-]{2,300}")


@dataclass(frozen=True, slots=True)
class Baseline:
    """How the folder was when a run began."""

    folder: str
    commit: str = ""
    moment: int = field(default_factory=lambda: time.time_ns() - _CLOCK_LAG_NANOSECONDS)
    files: dict[str, str] = field(default_factory=dict)
    """Files that were changed and not committed then, each with its size and time of change."""


class Changes(NamedTuple):
    """What is different since then."""

    place: str
    """What was looked at, such as "the git repository /home/anna/shop"."""
    commits: list[str]
    files: dict[str, str]
    """Their paths, each with what became of it, such as "+3 -1" for its lines."""
    outside: list[str]
    """Files elsewhere that the worker named and that are newer than the run."""
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.commits or self.files or self.outside)

    def describe(self) -> str:
        """Say it in lines, for the director and the log."""
        inside = f"{_count(len(self.files), 'file')} changed, {_count(len(self.commits), 'commit')} made"
        lines = [
            f"In {self.place} since the ticket began: {inside if self.commits or self.files else 'nothing changed'}."
        ]
        lines += [f"commit {commit}" for commit in _listed(self.commits)]
        lines += _listed([f"{path} {lines}".strip() for path, lines in self.files.items()])
        if self.outside:
            lines.append(f"Changed outside of it: {', '.join(_listed(self.outside))}.")
        elif not self:
            lines.append("If anything was done, it was done outside of it, where nobody looked.")
        return "\n".join(filter(None, (*lines, self.note)))

    def summarize(self) -> str:
        """Say it in one sentence, for a memory."""
        if not self:
            return "Nothing was changed."
        files = [*self.files, *self.outside]
        more = f" and {len(files) - _MAX_SUMMARY_FILES} more" if len(files) > _MAX_SUMMARY_FILES else ""
        hashes = ", ".join(commit.split(" ")[0] for commit in self.commits[:_MAX_SUMMARY_FILES])
        changed = f"Changed: {', '.join(files[:_MAX_SUMMARY_FILES])}{more}" if files else ""
        return f"{'; '.join(filter(None, (changed, hashes and f'commits: {hashes}')))}."


class WorkFolder:
    """The folder in which a worker works.

    Args:
        own: folders and files of the director's own, which do not count, should they lie in it.
    """

    def __init__(self, path: str | os.PathLike[str], own: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.path = Path(path).resolve()
        self._root = self._find_root()
        self._own = [Path(place).expanduser().resolve() for place in own]

    def baseline(self) -> Baseline:
        """Note how it is now."""
        if self._root is None:
            return Baseline(str(self.path))
        return Baseline(
            str(self.path), self._head(), files={path: _stamp(self._root / path) for path, _ in self._uncommitted()}
        )

    def changes(self, since: Baseline, answers: Iterable[str] = ()) -> Changes:
        """Look for what changed, here and where the worker's answers say."""
        root = self._root or self.path
        named = (path for path in _named_paths(answers) if _is_newer(path, since.moment))
        outside = [str(path) for path in named if not _is_below(path, root) and not self._is_own(path.resolve())]
        if self._root is None:
            newer, is_complete = self._files_since(since.moment)
            note = "" if is_complete else f"Only {_MAX_FILES:,} of its files were looked at."
            return Changes(f"{self.path}, which is no git repository,", [], dict.fromkeys(newer, ""), outside, note)
        uncommitted = list(self._uncommitted())
        before = [path for path, _ in uncommitted if since.files.get(path) == _stamp(self._root / path)]
        changed = self._changed_files(since.commit, uncommitted, frozenset(before))
        files = {path if path.isprintable() else ascii(path): lines for path, lines in changed}
        note = f"Changed before the ticket began, and not since: {', '.join(_listed(before))}." if before else ""
        return Changes(f"the git repository {self._root}", self._commits(since.commit), files, outside, note)

    def _find_root(self) -> Path | None:
        try:
            lines = self._git("rev-parse", "--show-toplevel").splitlines()
        except InputError:  # there is no git
            return None
        return Path(lines[0]) if lines else None

    def _git(self, *arguments: str) -> str:
        """What git says; nothing if it fails."""
        settings = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
        result = Program("git", self.path, _GIT_SECONDS).run([*settings, *arguments])
        return "" if result.trouble else result.output

    def _head(self) -> str:
        return self._git("rev-parse", "--quiet", "--verify", "HEAD").strip()

    def _uncommitted(self) -> Iterator[tuple[str, bool]]:
        """The paths that differ from the last commit, and whether git does not know them."""
        for entry in self._git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames").split("\0"):
            if len(entry) > 3 and not self._is_own(Path(self._root or "", entry[3:])):
                yield entry[3:], entry.startswith("??")

    def _commits(self, since: str) -> list[str]:
        reach = f"{since}..HEAD" if since else "HEAD"
        return self._git("log", "--format=%h %s", f"--max-count={_MAX_LISTED + 1}", reach, "--").splitlines()

    def _changed_files(
        self, since: str, uncommitted: Iterable[tuple[str, bool]], before: frozenset[str]
    ) -> Iterator[tuple[str, str]]:
        options = ("--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
        for entry in self._git("diff", *options, since or _EMPTY_TREE, "--").split("\0"):
            added, _, rest = entry.partition("\t")
            removed, _, path = rest.partition("\t")
            if path and path not in before and not self._is_own(Path(self._root or "", path)):
                yield path, "(binary)" if added == "-" else f"+{added} -{removed}"
        yield from ((path, "(new, not committed)") for path, is_new in uncommitted if is_new and path not in before)

    def _is_own(self, path: Path) -> bool:
        return any(path.is_relative_to(place) for place in self._own)

    def _files_since(self, moment: int) -> tuple[list[str], bool]:
        """The files that were changed since a moment, and whether all were looked at."""
        found, looked_at = list[str](), 0
        for place, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if name not in _OTHER_FOLDERS)
            for path in (Path(place, name) for name in sorted(names)):
                looked_at += 1
                if looked_at > _MAX_FILES:
                    return found, False
                if _is_newer(path, moment) and not self._is_own(path):
                    found.append(path.relative_to(self.path).as_posix())
        return found, True


def _stamp(path: Path) -> str:
    try:
        status = path.lstat()
    except OSError:
        return "gone"
    return f"{status.st_size} {status.st_mtime_ns}"


def _named_paths(answers: Iterable[str]) -> list[Path]:
    names = dict.fromkeys(match[0].rstrip(".") for answer in answers for match in _PATH.finditer(answer))
    return [Path(name).expanduser() for name in list(names)[:_MAX_PATHS] if not name.startswith(_NO_FILES)]


def _is_newer(path: Path, moment: int) -> bool:
    try:
        return path.is_file() and path.stat().st_mtime_ns >= moment
    except (OSError, ValueError):
        return False


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _listed(items: list[str]) -> list[str]:
    more = len(items) - _MAX_LISTED
    return items if more <= 0 else [*items[:_MAX_LISTED], f"and {more} more"]


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
