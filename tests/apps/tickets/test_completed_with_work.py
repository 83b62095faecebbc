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
        assert (
            "by the check, while the worker was not at work: junit.txt, report.xml"
            in folder.get("shop", "login").steps[1].result
        )

    @pytest.mark.parametrize("code", [
        "path.write_text(path.read_text() + '# formatted\\n')", "path.chmod(0o755)"
    ])  # fmt: skip
    def test_a_new_file_of_the_worker_stays_its_work(self, folder: RunFolder, any_folder: Path, code: str) -> None:
        check = python_check(any_folder, f"import pathlib; path = pathlib.Path('new.py'); {code}")

        def answer(prompt: str) -> str:
            (any_folder / "new.py").write_text("new\n")
            return "done"

        state = work_off(folder, any_folder, [PLAN, COMPLETE], answer, check=check)
        assert state.evidence.startswith("Changed: new.py. The check ")

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


class TestWhatTheWorkerSays:
    def test_nothing(self, folder: RunFolder, shop: Path) -> None:
        with pytest.raises(LlmError, match="the worker has not answered yet"):
            work_off(folder, shop, [PLAN, NO_CHANGE, NO_CHANGE, NO_CHANGE], [" \n"])

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
                write_files(shop / "part", {"part.py": "new\n", "new.py": "new\n"})
            else:
                git(shop / "part", "commit", "-qam", "New")
            return "done"

        assert work_off(folder, shop, [PLAN, MORE, COMPLETE], answer).evidence.startswith("Changed: part")

    def test_work_outside_is_named_as_such(self, folder: RunFolder, shop: Path, tmp_path: Path) -> None:
        def answer(prompt: str) -> str:
            (tmp_path / "notes.md").write_text("new")
            return "I wrote it."

        plan = {**PLAN, "next_prompt": f"Write {tmp_path}/notes.md."}
        state = work_off(folder, shop, [plan, COMPLETE], answer)
        assert state.evidence == f"Changed outside of the folder, where nobody can say by whom: {tmp_path}/notes.md."
