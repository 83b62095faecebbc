"""What git says of a folder. Nothing is written into its repository, and no program that it names is run for a diff."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from eunoe.apps.tickets.program import Program
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
