"""What counts as the worker's work when a ticket is complete: beside what a check writes, and what the worker says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.checkouts import git, make_checkout, write_files
from tests.support.ticket_work import COMPLETE, MORE, NO_CHANGE, PLAN, TICKET, assert_refused, python_check, work_off

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets import RunFolder, TicketMemory, WorkerError
from eunoe.apps.tickets.director import NO_SUMMARY, UNEXPLAINED
from eunoe.errors import LlmError


class TestWhatTheCheckWrites:
    CODE = "import pathlib; pathlib.Path('report.xml').write_text('passed'); pathlib.Path('junit.txt').touch()"

    def test_its_files_are_no_work(self, folder: RunFolder, any_folder: Path) -> None:
        check = python_check(any_folder, self.CODE + "; raise SystemExit(1)")

        def answer(prompt: str) -> str:
            if prompt == PLAN["next_prompt"]:
                (any_folder / "forms.py").write_text("name = raw.strip()\n")
            elif prompt == MORE["next_prompt"]:
                (any_folder / "forms.py").write_text("name = raw\n")
            return "done"

        assert_refused(folder, any_folder, answer, PLAN, COMPLETE, MORE, check=check)

    def test_a_worker_that_only_runs_the_check_again_has_done_nothing(
        self, folder: RunFolder, any_folder: Path
    ) -> None:
        check = python_check(
            any_folder, self.CODE + "; raise SystemExit('raw' in pathlib.Path('forms.py').read_text())"
        )

        def answer(prompt: str) -> str:
            if prompt == PLAN["next_prompt"]:
                (any_folder / "forms.py").write_text("name = raw.strip()\n")
            else:
                (any_folder / "forms.py").write_text("name = raw\n")
                check.run()
            return "all tests pass"

        assert_refused(folder, any_folder, answer, PLAN, COMPLETE, MORE, check=check)
        assert "by the check, and not counted: junit.txt, report.xml" in folder.get("shop", "login").steps[1].result

    @pytest.mark.parametrize("code", [
        "path.write_text(path.read_text() + '# formatted\\n')", "path.touch()", "path.chmod(0o600)", "path.chmod(0o755)"
    ])  # fmt: skip
    def test_a_new_file_of_the_worker_stays_its_work(self, folder: RunFolder, any_folder: Path, code: str) -> None:
        check = python_check(any_folder, f"import pathlib; path = pathlib.Path('new.py'); {code}")

        def answer(prompt: str) -> str:
            (any_folder / "new.py").write_text("new\n")
            return "done"

        state = work_off(folder, any_folder, [PLAN, COMPLETE], answer, check=check)
        assert state.evidence.startswith("Changed: new.py. The check ")

    def test_a_new_file_that_is_changed_and_committed_after_the_check_counts(
        self, folder: RunFolder, shop: Path
    ) -> None:
        code = "import pathlib, sys; path = pathlib.Path('new.py'); path.open('a').write('# seen\\n'); "
        check = python_check(shop, code + "sys.exit('really' not in path.read_text())")

        def answer(prompt: str) -> str:
            if prompt == PLAN["next_prompt"]:
                (shop / "forms.py").write_text("name = raw.strip()\n")
            else:
                git(shop, "checkout", "-q", "forms.py")
                (shop / "new.py").write_text("really\n")
                git(shop, "add", "new.py")
                git(shop, "commit", "-qm", "Really")
            return "done"

        state = work_off(folder, shop, [PLAN, COMPLETE, MORE, COMPLETE], answer, check=check)
        assert "by the check, and not counted: new.py" not in state.steps[1].result
        assert state.evidence.startswith("Changed: new.py; commits: ")

    def test_a_file_of_the_check_that_is_removed_is_no_work(self, folder: RunFolder, any_folder: Path) -> None:
        check = python_check(any_folder, self.CODE + "; raise SystemExit(1)")

        def answer(prompt: str) -> str:
            if prompt == PLAN["next_prompt"]:
                (any_folder / "forms.py").write_text("name = raw.strip()\n")
            else:
                (any_folder / "forms.py").write_text("name = raw\n")
                (any_folder / "report.xml").unlink()
            return "done"

        assert_refused(folder, any_folder, answer, PLAN, COMPLETE, MORE, check=check)

    def test_a_file_that_the_worker_changed_counts_though_the_check_formats_it(
        self, folder: RunFolder, shop: Path
    ) -> None:
        check = python_check(shop, "import pathlib; pathlib.Path('forms.py').write_text('name = raw.strip()\\n')")

        def answer(prompt: str) -> str:
            (shop / "forms.py").write_text("name = raw.strip( )\n")
            return "done"

        state = work_off(folder, shop, [PLAN, COMPLETE], answer, check=check)
        assert state.evidence.startswith("Changed: forms.py. The check ")


class TestWhatTheWorkerSays:
    def test_nothing(self, folder: RunFolder, shop: Path) -> None:
        with pytest.raises(LlmError, match="the worker has not answered yet"):
            work_off(folder, shop, [PLAN, NO_CHANGE, NO_CHANGE, NO_CHANGE], [" \n"])

    def test_only_failures_though_the_check_passes(self, folder: RunFolder, shop: Path) -> None:
        check = python_check(shop, "print('passed')")
        with pytest.raises(LlmError, match="the worker has not answered yet"):
            work_off(folder, shop, [PLAN, NO_CHANGE, NO_CHANGE, NO_CHANGE], [WorkerError("no login")], check=check)

    @pytest.mark.parametrize(
        ("summary", "changes", "lesson", "notes"),
        [
            ("Same summary", True, "Same summary. Changed: forms.py.", []),
            ("Same summary.", True, "Same summary. Changed: forms.py.", []),
            ("", True, "Changed: forms.py.", [NO_SUMMARY]),
            (None, True, "Changed: forms.py.", [NO_SUMMARY]),
            ("It is by design", False, f"It is by design. Nothing was changed: {UNEXPLAINED}.", [UNEXPLAINED]),
            ("", False, f"Nothing was changed: {UNEXPLAINED}.", [f"{NO_SUMMARY}; {UNEXPLAINED}"]),
        ],
    )
    def test_a_short_reply_completes_a_ticket_and_what_it_leaves_out_is_said(
        self, folder: RunFolder, shop: Path, summary: str | None, changes: bool, lesson: str, notes: list[str]
    ) -> None:
        def answer(prompt: str) -> str:
            if changes:
                (shop / "forms.py").write_text("name = raw.strip()\n")
            return "done"

        said: list[str] = []
        with ProjectMemory.open(":memory:", embedder="none", llm="none") as memory:
            kept, reply = TicketMemory(memory, "shop"), {"complete": True, "summary": summary}
            state = work_off(folder, shop, [PLAN, reply], answer, memory=kept, say=said.append)
            (item,) = memory.memory.list({"project": "shop"}).items
        assert state.outcome == "completed"
        assert item.text == TICKET.document(lesson)
        assert state.steps[-1].notes == notes
        assert set(notes) <= set(said)

    def test_a_director_that_sees_nothing_to_change_is_named(self, folder: RunFolder, shop: Path) -> None:
        state = work_off(folder, shop, [PLAN, NO_CHANGE], ["It is by design."])
        assert state.evidence == "Nothing was changed: the director says that there was nothing to change."

    def test_work_of_a_worker_that_always_failed_is_said_to_be_so(self, folder: RunFolder, shop: Path) -> None:
        def answer(prompt: str) -> str:
            (shop / "forms.py").write_text("name = raw.strip()\n")
            raise WorkerError("killed")

        state = work_off(folder, shop, [PLAN, COMPLETE], answer)
        assert state.evidence == "Changed: forms.py. The worker ended every turn with a failure."


class TestWhatIsWork:
    def test_what_a_killed_worker_did_counts_when_it_is_taken_up(self, folder: RunFolder, any_folder: Path) -> None:
        def answer(prompt: str) -> str:
            (any_folder / "forms.py").write_text("name = raw.strip()\n")
            raise SystemExit(143)

        with pytest.raises(SystemExit):
            work_off(folder, any_folder, [PLAN], answer)
        state = work_off(folder, any_folder, [COMPLETE], ["It is done already."])
        assert state.evidence == "Changed: forms.py."

    def test_a_removed_file_counts(self, folder: RunFolder, any_folder: Path) -> None:
        write_files(any_folder, {"draft.md": "mine"})

        def answer(prompt: str) -> str:
            (any_folder / "draft.md").unlink()
            return "removed"

        assert work_off(folder, any_folder, [PLAN, COMPLETE], answer).evidence == "Changed: draft.md."

    def test_a_large_file_with_other_content_counts(self, folder: RunFolder, any_folder: Path) -> None:
        path = any_folder / "model.bin"
        path.write_bytes(b"x" * 3_000_000)

        def answer(prompt: str) -> str:
            path.write_bytes(b"x" * 2_999_999 + b"y")
            return "done"

        assert work_off(folder, any_folder, [PLAN, COMPLETE], answer).evidence == "Changed: model.bin."

    def test_a_commit_with_an_old_date_counts(self, folder: RunFolder, shop: Path) -> None:
        def answer(prompt: str) -> str:
            (shop / "forms.py").write_text("name = raw.strip()\n")
            git(shop, "commit", "-qam", "Fix", GIT_COMMITTER_DATE="2001-01-01T00:00:00Z")
            return "done"

        state = work_off(folder, shop, [PLAN, COMPLETE], answer)
        assert state.evidence == f"Changed: forms.py; commits: {git(shop, 'rev-parse', '--short', 'HEAD')}."

    def test_names_that_are_no_utf_8_count(self, folder: RunFolder, any_folder: Path) -> None:
        def answer(prompt: str) -> str:
            Path(os.fsdecode(os.fsencode(any_folder) + b"/caf\xe9.txt")).write_text("new\n")
            return "done"

        assert work_off(folder, any_folder, [PLAN, COMPLETE], answer).evidence == r"Changed: 'caf\udce9.txt'."

    def test_a_file_of_a_submodule_that_is_committed_in_the_next_turn_counts(
        self, folder: RunFolder, shop: Path, tmp_path: Path
    ) -> None:
        make_checkout(tmp_path / "part", {"part.py": "old\n"})
        git(shop, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(tmp_path / "part"), "part")
        git(shop, "commit", "-qam", "Part")

        def answer(prompt: str) -> str:
            if prompt == PLAN["next_prompt"]:
                (shop / "part" / "part.py").write_text("new\n")
            else:
                git(shop / "part", "commit", "-qam", "New")
            return "done"

        assert work_off(folder, shop, [PLAN, MORE, COMPLETE], answer).evidence.startswith("Changed: part")

    @pytest.mark.parametrize("ignore", ["", "all"])
    def test_a_new_file_of_a_submodule_counts_and_a_cache_does_not(
        self, folder: RunFolder, shop: Path, tmp_path: Path, ignore: str
    ) -> None:
        make_checkout(tmp_path / "part", {"part.py": "old\n"})
        git(shop, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(tmp_path / "part"), "part")
        git(shop, "commit", "-qam", "Part")
        if ignore:
            git(shop, "config", "submodule.part.ignore", ignore)

        def answer(prompt: str) -> str:
            if prompt == PLAN["next_prompt"]:
                write_files(shop / "part", {"__pycache__/x.pyc": "x", ".coverage": "x"})
            else:
                write_files(shop / "part", {"new.py": "new\n"})
            return "done"

        state = work_off(folder, shop, [PLAN, COMPLETE, MORE, COMPLETE], answer)
        assert "nothing changed" in state.steps[0].result
        assert state.evidence == "Changed: part."

    def test_work_outside_is_named_as_such(self, folder: RunFolder, shop: Path, tmp_path: Path) -> None:
        def answer(prompt: str) -> str:
            (tmp_path / "notes.md").write_text("new")
            return "I wrote it."

        plan = {**PLAN, "next_prompt": f"Write {tmp_path}/notes.md."}
        state = work_off(folder, shop, [plan, COMPLETE], answer)
        assert state.evidence == f"Changed outside of the folder, where nobody can say by whom: {tmp_path}/notes.md."
