"""Attempts to have a ticket called complete although the worker did nothing: each is refused, or said in the lesson."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.checkouts import git, write_files
from tests.support.ticket_work import (
    COMPLETE,
    MORE,
    NOTHING_DONE,
    PLAN,
    TICKET,
    assert_refused,
    while_deciding,
    work_off,
)

from eunoe.apps.tickets import Director, Run, RunFolder, ScriptedWorker, WorkFolder
from eunoe.errors import InputError, LlmError
from eunoe.llm.contract import ScriptedLlm as Model


class TestWhatTheWorkerLeft:
    def test_the_same_words_written_again(self, folder: RunFolder, any_folder: Path) -> None:
        def answer(prompt: str) -> str:
            (any_folder / "forms.py").write_text("name = raw\n")
            os.utime(any_folder / "forms.py")
            return "done"

        assert_refused(folder, any_folder, answer)

    def test_a_change_that_it_took_back(self, folder: RunFolder, any_folder: Path) -> None:
        texts = iter(["name = raw.strip()\n", "name = raw\n"])

        def answer(prompt: str) -> str:
            (any_folder / "forms.py").write_text(next(texts))
            return "done"

        assert_refused(folder, any_folder, answer, PLAN, MORE)

    def test_what_it_puts_away_of_somebody_else(self, folder: RunFolder, shop: Path) -> None:
        (shop / "forms.py").write_text("name = mine\n")

        def answer(prompt: str) -> str:
            git(shop, "stash")
            return "done"

        assert_refused(folder, shop, answer)
        found = folder.get("shop", "login").steps[0].result
        assert "Not counted, because an older commit has them so: forms.py." in found

    def test_ignored_files_and_caches(self, folder: RunFolder, shop: Path) -> None:
        def answer(prompt: str) -> str:
            write_files(shop, {"build/out.txt": "x", "__pycache__/forms.pyc": "x", "lib/.mypy_cache/x.json": "x"})
            return "done"

        assert_refused(folder, shop, answer)

    def test_commits_that_change_nothing(self, folder: RunFolder, shop: Path) -> None:
        def answer(prompt: str) -> str:
            git(shop, "commit", "-q", "--allow-empty", "-m", "Fix the login")
            git(shop, "commit", "-q", "--amend", "--allow-empty", "-m", "Fix the login!")
            return "committed"

        assert_refused(folder, shop, answer)

    def test_a_commit_that_is_taken_back_by_another(self, folder: RunFolder, shop: Path) -> None:
        def answer(prompt: str) -> str:
            if prompt == PLAN["next_prompt"]:
                (shop / "forms.py").write_text("name = raw.strip()\n")
                git(shop, "commit", "-qam", "Fix the login")
            else:
                git(shop, "revert", "--no-edit", "HEAD")
            return "committed"

        assert_refused(folder, shop, answer, PLAN, MORE)

    @pytest.mark.parametrize("way", [["merge", "-q", "--ff-only", "theirs"], ["switch", "-q", "theirs"]])
    def test_commits_of_others(self, folder: RunFolder, shop: Path, way: list[str]) -> None:
        commit_earlier(shop)

        def answer(prompt: str) -> str:
            git(shop, *way)
            return "done"

        assert_refused(folder, shop, answer)

    def test_a_merge_of_others_and_what_is_done_besides(self, folder: RunFolder, shop: Path) -> None:
        commit_earlier(shop)
        write_files(shop, {"own.py": "own\n"})
        git(shop, "add", "own.py")
        git(shop, "commit", "-qm", "Own")

        def answer(prompt: str) -> str:
            if prompt == PLAN["next_prompt"]:
                git(shop, "merge", "-q", "--no-edit", "theirs")
            else:
                (shop / "own.py").write_text("really\n")
                git(shop, "commit", "-qam", "Really")
            return "done"

        state = work_off(folder, shop, [PLAN, COMPLETE, MORE, COMPLETE], answer)
        assert "nothing changed" in state.steps[0].result
        assert "Not counted, because an older commit has them so: forms.py." in state.steps[0].result
        assert state.evidence == f"Changed: own.py; commits: {git(shop, 'rev-parse', '--short', 'HEAD')}."

    def test_files_of_the_director(self, shop: Path) -> None:
        def answer(prompt: str) -> str:
            write_files(shop, {"memory.db-wal": "x", "memory.db-shm": "x", "memory.db.index/x": "x"})
            return "done"

        folder = RunFolder(shop / "logs")
        work_folder = WorkFolder(shop, [folder.path, shop / "memory.db"])
        job = Run(
            TICKET, Director(Model([PLAN, *[COMPLETE] * 3])), ScriptedWorker(answer), folder, work_folder=work_folder
        )
        with pytest.raises(LlmError, match=NOTHING_DONE):
            job.finish()


def commit_earlier(shop: Path) -> None:
    """A branch with a commit of another day."""
    git(shop, "switch", "-qc", "theirs")
    (shop / "forms.py").write_text("name = theirs\n")
    git(shop, "-c", "user.name=Eva", "commit", "-qam", "Theirs", GIT_COMMITTER_DATE="2024-01-01T00:00:00Z")
    git(shop, "switch", "-q", "-")


BREAKAGES = ["rm -rf .git", "echo garbage > .git/index"]


class TestWhereGitFails:
    @pytest.mark.parametrize("command", BREAKAGES)
    def test_the_ticket_stops_and_goes_on_when_git_works_again(
        self, folder: RunFolder, shop: Path, tmp_path: Path, command: str
    ) -> None:
        shutil.copytree(shop / ".git", tmp_path / "git")

        def answer(prompt: str) -> str:
            (shop / "forms.py").write_text("name = raw.strip()\n")
            subprocess.run(command, shell=True, cwd=shop, check=True)
            return "done"

        with pytest.raises(InputError, match="git"):
            work_off(folder, shop, [PLAN], answer)
        assert folder.get("shop", "login").steps[0].answer == "done"
        shutil.rmtree(shop / ".git", ignore_errors=True)
        shutil.copytree(tmp_path / "git", shop / ".git")
        state = work_off(folder, shop, [MORE, COMPLETE], ["It is done already."])
        assert state.evidence == "Changed: forms.py."

    def test_without_its_repository_the_folder_is_looked_at_anew(
        self, folder: RunFolder, shop: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(LlmError):
            work_off(folder, shop, [PLAN, {}, {}, {}], ["I will."])
        (shop / ".git").rename(tmp_path / "git")
        assert_refused(folder, shop, ["done"], MORE)


class TestWhatIsOnlyWrittenAnew:
    """Commits whose content was there before, and files whose content is as it was."""

    def test_an_own_commit_to_the_same_file_that_is_put_on_top_of_others(self, folder: RunFolder, shop: Path) -> None:
        lines = [f"line {number}\n" for number in range(20)]
        write_files(shop, {"forms.py": "".join(lines)})
        git(shop, "commit", "-qam", "Lines")
        git(shop, "switch", "-qc", "theirs")
        write_files(shop, {"forms.py": "".join(["theirs\n", *lines])})
        git(shop, "commit", "-qam", "Theirs", GIT_COMMITTER_DATE="2024-01-01T00:00:00Z")
        git(shop, "switch", "-q", "-")
        write_files(shop, {"forms.py": "".join([*lines, "own\n"])})
        git(shop, "commit", "-qam", "Own")

        def answer(prompt: str) -> str:
            git(shop, "rebase", "-q", "theirs")
            return "done"

        assert_refused(folder, shop, answer)

    def test_a_commit_of_what_somebody_else_had_changed(self, folder: RunFolder, shop: Path) -> None:
        write_files(shop, {"forms.py": "name = mine\n", "new.py": "mine\n"})

        def answer(prompt: str) -> str:
            git(shop, "add", "-A")
            git(shop, "commit", "-qm", "autosave")
            return "saved"

        assert_refused(folder, shop, answer)

    @pytest.mark.parametrize("ways", [["git rm -q --cached forms.py"], ["rm .git/index"], [
        "git rm -q --cached forms.py", "echo forms.py >> .git/info/exclude", "git commit -qm Forget"
    ]])  # fmt: skip
    def test_a_file_that_git_only_forgets(self, folder: RunFolder, shop: Path, ways: list[str]) -> None:
        git(shop, "config", "user.name", "Anna")
        git(shop, "config", "user.email", "anna@example.org")

        def answer(prompt: str) -> str:
            for way in ways:
                subprocess.run(way, shell=True, cwd=shop, check=True)
            return "done"

        assert_refused(folder, shop, answer)


class TestWhatOthersDo:
    def test_a_change_while_the_director_thinks(self, folder: RunFolder, any_folder: Path) -> None:
        decide = while_deciding(lambda: (any_folder / "forms.py").write_text("theirs\n"), MORE)
        assert_refused(folder, any_folder, ["done", "done"], PLAN, decide)
        assert "while the worker was not at work: forms.py." in folder.get("shop", "login").steps[1].result

    def test_a_change_before_a_run_is_taken_up(self, folder: RunFolder, any_folder: Path) -> None:
        with pytest.raises(LlmError):
            work_off(folder, any_folder, [PLAN, {}, {}, {}], ["I will."])
        (any_folder / "forms.py").write_text("theirs\n")
        assert_refused(folder, any_folder, ["done"], MORE)

    def test_a_named_file_that_changes_by_itself(self, folder: RunFolder, shop: Path, tmp_path: Path) -> None:
        log = tmp_path / "server.log"
        log.write_text("started\n")

        def write() -> None:
            with log.open("a") as file:
                file.write("still running\n")

        def answer(prompt: str) -> str:
            write()
            return f"See {log}."

        plan = {**PLAN, "next_prompt": f"See {log}."}
        decisions = [plan, while_deciding(write, COMPLETE), MORE, while_deciding(write, COMPLETE)]
        assert_refused(folder, shop, answer, *decisions)
        assert "Nothing is left of what changed" in folder.get("shop", "login").steps[1].check

    def test_a_file_elsewhere_that_is_named_only_in_the_answer(
        self, folder: RunFolder, shop: Path, tmp_path: Path
    ) -> None:
        notes = tmp_path / "notes.md"

        def answer(prompt: str) -> str:
            notes.touch()
            return f"I fixed {notes}."

        assert_refused(folder, shop, answer)

    def test_work_that_somebody_takes_back(self, folder: RunFolder, shop: Path) -> None:
        def answer(prompt: str) -> str:
            (shop / "forms.py").write_text("name = raw.strip()\n")
            return "done"

        decisions = [PLAN, while_deciding(lambda: git(shop, "checkout", "forms.py"), COMPLETE), MORE, COMPLETE]
        state = work_off(folder, shop, decisions, answer)
        assert "Nothing is left of what changed" in state.steps[1].check
        assert (state.outcome, len(state.turns)) == ("completed", 2)
