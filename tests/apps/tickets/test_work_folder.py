"""What became of a folder is found by looking: with git, without, and outside of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.support.checkouts import git, make_checkout, write_files

from eunoe.apps.tickets import WorkFolder
from eunoe.apps.tickets.work import Changes, Snapshot, Work


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    files = {"forms.py": "name = raw\n", "notes.txt": "one\n", "old.py": "x\n", ".gitignore": "build/\n"}
    return make_checkout(tmp_path / "shop", files)


def find_changes(folder: WorkFolder, before: Snapshot, texts: Iterable[str] = ()) -> Changes:
    """What a worker changed if its only turn began then and ends now."""
    return Work(before, before).end_turn(folder, texts)


def make_older(*paths: Path) -> None:
    """As if they had been written long ago."""
    for path in paths:
        os.utime(path, ns=(1, 1))


class TestWithGit:
    def test_commits_changed_lines_new_and_removed_files_are_found(self, shop: Path) -> None:
        folder = WorkFolder(shop)
        before = folder.look()
        write_files(shop, {"forms.py": "name = raw.strip()\nprint(name)\n", "tests/a b.py": "pass\n"})
        git(shop, "commit", "-qam", "Trim names")
        (shop / "old.py").unlink()
        (shop / "logo.png").write_bytes(b"\x89PNG\0\0")
        git(shop, "add", "logo.png")
        write_files(shop, {"build/out.txt": "ignored\n"})
        changes = find_changes(folder, before)
        assert changes.files == {
            "forms.py": "+2 -1",
            "logo.png": "(binary)",
            "old.py": "+0 -1",
            "tests/a b.py": "(new, not committed)",
        }
        commit = git(shop, "rev-parse", "--short", "HEAD")
        assert changes.commits == [f"{commit} Trim names"]
        assert "in the worker's turns: 4 files changed, 1 commit made." in changes.describe()
        assert changes.summarize() == f"Changed: forms.py, logo.png, old.py, tests/a b.py; commits: {commit}."

    def test_what_was_changed_before_is_told_apart(self, shop: Path) -> None:
        write_files(shop, {"notes.txt": "two\n", "draft.md": "mine\n", "forms.py": "name = 1\n"})
        folder = WorkFolder(shop)
        before = folder.look()
        assert not find_changes(folder, before)
        assert find_changes(folder, before).notes == [
            "Changed before the ticket began, and not since: draft.md, forms.py, notes.txt."
        ]
        write_files(shop, {"forms.py": "name = raw.strip()\n"})
        assert list(find_changes(folder, before).files) == ["forms.py"]

    def test_a_repository_without_a_commit_and_a_folder_below_its_root(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q", "-b", "main")
        (tmp_path / "deep").mkdir()
        folder = WorkFolder(tmp_path / "deep")
        before = folder.look()
        write_files(tmp_path, {"deep/a.py": "a\n", "b.py": "b\n"})
        assert list(find_changes(folder, before).files) == ["b.py", "deep/a.py"]
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", "First")
        changes = find_changes(folder, before)
        assert (list(changes.files), len(changes.commits)) == (["b.py", "deep/a.py"], 1)

    def test_of_many_files_some_are_listed(self, shop: Path) -> None:
        folder = WorkFolder(shop)
        before = folder.look()
        write_files(shop, {f"new/{number:03}.py": "" for number in range(100)})
        changes = find_changes(folder, before)
        assert len(changes.files) == 100
        assert changes.describe().endswith("\nand 60 more")
        assert changes.summarize().endswith(" and 88 more.")

    def test_what_git_is_told_by_a_hook_does_not_lead_it_elsewhere(
        self, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = make_checkout(tmp_path / "other", {"x": "x"})
        monkeypatch.setenv("GIT_DIR", str(other / ".git"))
        folder = WorkFolder(shop)
        before = folder.look()
        write_files(shop, {"forms.py": "name = 2\n"})
        assert list(find_changes(folder, before).files) == ["forms.py"]

    def test_no_program_that_the_repository_names_is_run(self, shop: Path, tmp_path: Path) -> None:
        (tmp_path / "evil.sh").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        (tmp_path / "evil.sh").chmod(0o755)
        for name in ("diff.external", "core.fsmonitor", "diff.evil.textconv"):
            git(shop, "config", name, str(tmp_path / "evil.sh"))
        write_files(shop, {".gitattributes": "*.py diff=evil\n", "forms.py": "name = 2\n"})
        folder = WorkFolder(shop)
        find_changes(folder, folder.look())
        assert not (tmp_path / "ran").exists()

    def test_files_that_are_only_named_like_those_of_the_director_count(self, shop: Path) -> None:
        write_files(shop, {"logs/x": "own", "memory/x": "own", "store.db": "own"})
        folder = WorkFolder(shop, [shop / "logs", shop / "memory", shop / "store.db"])
        before = folder.look()
        names = ["logs.py", "memory-wal", "memory.index/x", "memory.py", "store.db.py", "store.db_test.py"]
        write_files(shop, {**dict.fromkeys(names, "new"), "store.db-wal": "own", "store.db.index/x": "own"})
        assert list(find_changes(folder, before).files) == names


class TestWithoutGit:
    def test_files_with_a_later_time_are_found(self, tmp_path: Path) -> None:
        write_files(tmp_path, {"a.py": "a", "b/c.py": "c"})
        make_older(tmp_path / "a.py", tmp_path / "b" / "c.py")
        folder = WorkFolder(tmp_path, [tmp_path / "logs"])
        before = folder.look()
        assert not find_changes(folder, before)
        write_files(tmp_path, {"b/c.py": "changed", "logs/x": "own", "node_modules/x": "other"})
        changes = find_changes(folder, before)
        assert list(changes.files) == ["b/c.py"]
        assert f"In {tmp_path}, which is no git repository, in the worker's turns: 1 file changed" in changes.describe()

    def test_a_folder_that_is_too_large_is_said_to_be(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("eunoe.apps.tickets.work._MAX_FILES", 3)
        write_files(tmp_path, {f"{number}.py": "" for number in range(5)})
        folder = WorkFolder(tmp_path)
        before = folder.look()
        assert find_changes(folder, before).notes == ["Only a part of its files was looked at: it has too many."]
        write_files(tmp_path, {"0.py": "changed"})
        assert list(find_changes(folder, before).files) == ["0.py"]

    def test_without_the_program_git_it_looks_at_times(self, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        folder = WorkFolder(shop)
        assert "which is no git repository" in find_changes(folder, folder.look()).describe()


class TestOutside:
    def test_files_elsewhere_that_the_worker_names_are_said(self, shop: Path, tmp_path: Path) -> None:
        folder = WorkFolder(shop)
        before = folder.look(texts=[f"Write {tmp_path}/elsewhere/report.md, and keep {tmp_path}/elsewhere."])
        write_files(tmp_path, {"elsewhere/report.md": "done", "old.md": "old"})
        make_older(tmp_path / "old.md")
        answer = (
            f"I wrote {tmp_path}/elsewhere/report.md. See {tmp_path}/old.md, /etc/hosts, {shop}/forms.py and /no/such."
        )
        changes = find_changes(folder, before, ["I begin.", answer, "All is done."])
        assert changes.outside == [f"{tmp_path}/elsewhere/report.md"]
        assert changes.describe().endswith(f"nobody can say by whom: {tmp_path}/elsewhere/report.md.")
        assert changes

    def test_a_file_elsewhere_that_was_named_before_and_is_removed_is_said(self, shop: Path, tmp_path: Path) -> None:
        write_files(tmp_path, {"old.md": "old"})
        folder, texts = WorkFolder(shop), [f"Remove {tmp_path}/old.md and {tmp_path}/none.md."]
        before = folder.look(texts=texts)
        (tmp_path / "old.md").unlink()
        assert find_changes(folder, before, texts).outside == [f"{tmp_path}/old.md"]

    def test_odd_paths_are_passed_over(self, shop: Path) -> None:
        folder = WorkFolder(shop)
        answer = " ".join(["/" + "x" * 299, "/a" * 140, "//", "/..", "~nobody/x", "/dev/null", "/proc/cpuinfo"] * 90)
        assert find_changes(folder, folder.look(), [answer]).outside == []
