"""What a worker did, as far as looking can tell: what became different in its folder while it had a turn.

What others change between its turns is not its work, nor what a check writes, nor what came with commits that were
there before, nor what is in the end as it was. What others change during a turn cannot be told apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from eunoe.apps.tickets.work_folder import GONE, Snapshot, WorkFolder

_MAX_LISTED: Final = 40
_MAX_SUMMARY_FILES: Final = 12
_UNSEEN: Final = "If anything was done, it was done outside of it or in files that git ignores, where nobody looked."
NOTHING: Final = "Nothing was changed."
NOT_SEEN: Final = "Nobody could look at the folder."
_CUT: Final = "What was changed before git failed is not known: it is not counted. What is changed from now on is."


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
    is_cut: bool = False
    """Whether git failed, so that nobody knows what was changed before."""

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
            return NOT_SEEN if self.is_cut else NOTHING
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
    is_cut: bool = False
    """Whether it was begun anew because git failed."""

    def begin_turn(self, folder: WorkFolder, texts: Iterable[str]) -> None:
        """Look before the worker is sent a prompt. A turn that was cut short goes on when its prompt is sent again."""
        if self.before is None:
            self.before = folder.look(self.first, texts)
            self._drop_others_files(self.before)

    def end_turn(self, folder: WorkFolder, texts: Iterable[str]) -> Changes:
        """Look when it has answered, and return what it has changed so far."""
        before, self.before = self.before, None
        after = folder.look(self.first, texts)
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
        return Changes(folder.place, commits, files, outside, list(self._notes(folder, now, own)), self.is_cut)

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
        if self.is_cut:
            yield _CUT


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
