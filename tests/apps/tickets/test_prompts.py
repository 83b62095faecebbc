"""What the worker is sent, and what stays in its project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.ticket_runs import (
    COMPLETE,
    LEAK,
    LESSON,
    MORE,
    PLAN,
    TICKET,
    RecordingMemory,
    memory_recalling,
    run,
    stored_texts,
)

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets import (
    Check,
    Director,
    Limits,
    Run,
    RunFolder,
    ScriptedWorker,
    Ticket,
    TicketMemory,
    WorkFolder,
    revert,
)
from eunoe.apps.tickets.memory import COMPLETED_WORK_QUERY
from eunoe.errors import InputError, LlmError
from eunoe.llm.contract import ScriptedLlm as Model


class TestWhatTheWorkerMayNotSee:
    def test_one_that_still_has_it_is_cut(self, folder: RunFolder) -> None:
        state, _, worker = run(folder, [LEAK, LEAK, COMPLETE], ["ok"], memory_recalling(LESSON))
        assert worker.prompts == ["First read this: [...] CUSTOMER_ID, [...] Then go on."]
        assert "cut out" in state.steps[0].notes[1]

    def test_one_that_cannot_be_written_again_is_cut(self, folder: RunFolder) -> None:
        _, _, worker = run(folder, [LEAK, LlmError("down"), COMPLETE], ["ok"], memory_recalling(LESSON))
        assert worker.prompts == ["First read this: [...] CUSTOMER_ID, [...] Then go on."]

    def test_one_of_which_nothing_is_left_is_not_sent_and_the_turn_fails(self, folder: RunFolder) -> None:
        only = {"complete": False, "summary": "", "next_prompt": LESSON}
        state, model, worker = run(folder, [only, only, MORE, COMPLETE], ["ok"], memory_recalling(LESSON))
        assert worker.prompts == [MORE["next_prompt"]]
        assert state.steps[0].failed
        assert "[not sent:" in model.prompts[2].text

    def test_what_was_recalled_in_an_earlier_turn_is_still_guarded(self, folder: RunFolder) -> None:
        memory = RecordingMemory(lambda query: [("m1", LESSON, 0.9)] if query == COMPLETED_WORK_QUERY else [])
        _, _, worker = run(folder, [PLAN, LEAK, LEAK, COMPLETE], ["ok", "ok"], memory)
        assert worker.prompts[1] == "First read this: [...] CUSTOMER_ID, [...] Then go on."

    def test_a_memory_copied_as_it_was_quoted_is_caught(self, folder: RunFolder) -> None:
        lines = "one two\nthree four\nfive six\nseven eight\nnine ten\neleven twelve"
        copied = json.dumps(lines)[1:-1]
        leak = {"complete": False, "summary": "", "next_prompt": f"Do: {copied} and stop."}
        _, _, worker = run(folder, [leak, leak, COMPLETE], ["ok"], memory_recalling(lines))
        assert worker.prompts == ["Do: [...] and stop."]

    def test_what_the_check_wrote_and_what_was_found_may_be_said(self, folder: RunFolder, tmp_path: Path) -> None:
        decision = {"complete": False, "summary": "", "next_prompt": f"Do this: {LESSON}"}
        (tmp_path / "shop").mkdir()
        work_folder = WorkFolder(tmp_path / "shop")

        def answer(prompt: str) -> str:
            (tmp_path / "shop" / "new.py").touch()
            return "ok"

        check = Check(f"sh -c 'echo {LESSON}; exit 1'")
        decisions, memory = [PLAN, COMPLETE, decision, COMPLETE, MORE], memory_recalling(LESSON)
        options: dict[str, Any] = {"work_folder": work_folder, "check": check, "limits": Limits(turns=2)}
        _, _, worker = run(folder, decisions, answer, memory, **options)
        assert worker.prompts[1] == f"Do this: {LESSON}"


class TestProjects:
    def test_a_memory_of_another_project_is_refused(self, folder: RunFolder, memory: ProjectMemory) -> None:
        with pytest.raises(InputError, match="the memory is of project bank, the ticket of shop"):
            Run(TICKET, Director(Model([])), ScriptedWorker(), folder, TicketMemory(memory, "bank"))

    def test_nothing_of_one_project_is_shown_or_reverted_in_another(
        self, folder: RunFolder, memory: ProjectMemory
    ) -> None:
        twin = Ticket(TICKET.id, TICKET.title, TICKET.description, "bank")
        run(folder, [PLAN, COMPLETE], ["ok"], memory)
        state, model, _ = run(folder, [PLAN, COMPLETE], ["ok"], memory, twin)
        assert all("Memories invoked:" not in prompt.text.partition("</ticket")[2] for prompt in model.prompts)
        assert (len(stored_texts(memory)), len(stored_texts(memory, "bank"))) == (1, 1)
        assert revert(folder, memory, "bank", TICKET.id) == state.memories
        assert (len(stored_texts(memory)), len(stored_texts(memory, "bank"))) == (1, 0)
        assert folder.get("shop", TICKET.id).outcome == "completed"
