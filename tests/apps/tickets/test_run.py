"""A ticket from its plan to its end, with memory, without, with one that fails, and after a kill."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.ticket_runs import (
    COMPLETE,
    LESSON,
    MORE,
    PLAN,
    TICKET,
    BrokenMemory,
    RecordingMemory,
    memory_recalling,
    run,
    stored_texts,
)

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets import (
    Director,
    Limits,
    Run,
    RunFolder,
    RunState,
    ScriptedWorker,
    Ticket,
    TicketMemory,
    WorkerError,
    revert,
)
from eunoe.apps.tickets.memory import COMPLETED_WORK_QUERY
from eunoe.errors import ConflictError, InputError, LlmError, ScopeError
from eunoe.llm.contract import Prompt
from eunoe.llm.contract import ScriptedLlm as Model


class TestTheLoop:
    def test_a_ticket_is_planned_prompted_judged_and_finished(self, folder: RunFolder) -> None:
        state, model, worker = run(folder, [PLAN, MORE, COMPLETE], ["It is query 7.", "Done, all tests pass."])
        assert (state.outcome, state.summary) == ("completed", COMPLETE["summary"])
        assert worker.prompts == [PLAN["next_prompt"], MORE["next_prompt"]]
        assert "Plan the work" in model.prompts[0].text
        assert "It is query 7." in model.prompts[1].text
        assert "Find the slow query." in model.prompts[1].text

    def test_what_is_said_never_stands_in_the_instructions(self, folder: RunFolder) -> None:
        _, model, _ = run(folder, [PLAN, COMPLETE], ["answer-words"], memory_recalling("memory-words"))
        assert len({prompt.system for prompt in model.prompts}) == 1
        for words in (TICKET.title, "answer-words", "memory-words", PLAN["next_prompt"]):
            assert str(words) not in model.prompts[0].system

    def test_turns_are_limited(self, folder: RunFolder) -> None:
        state, model, worker = run(folder, lambda _: PLAN, lambda _: "trying", limits=Limits(turns=3))
        assert (state.outcome, state.reason) == ("failed", "not complete after 3 turns.")
        assert len(worker.prompts) == 3
        assert len(model.prompts) == 4

    def test_a_failure_of_the_worker_is_shown_to_the_director(self, folder: RunFolder) -> None:
        state, model, _ = run(folder, [PLAN, MORE, COMPLETE], [WorkerError("no disk left"), "Done."])
        assert state.outcome == "completed"
        assert "Turn 1 (the worker failed)" in model.prompts[1].text
        assert "no disk left" in model.prompts[1].text

    def test_repeated_failure_fails_the_ticket(self, folder: RunFolder) -> None:
        state, _, worker = run(
            folder, lambda _: PLAN, [WorkerError("a"), ValueError("b"), WorkerError("x" * 999 + "c")]
        )
        assert state.outcome == "failed"
        assert state.reason.startswith("the worker failed 3 times in a row")
        assert state.reason.endswith("xxc")
        assert len(worker.prompts) == 3

    def test_a_bad_answer_of_the_model_is_asked_for_again(self, folder: RunFolder) -> None:
        silly = {"complete": True, "summary": "done already", "next_prompt": ""}
        empty = {"complete": False, "summary": "hm", "next_prompt": " "}
        mute = {"complete": True, "summary": "", "next_prompt": ""}
        state, model, _ = run(folder, [silly, "no json", PLAN, empty, mute, COMPLETE], ["ok"])
        assert state.outcome == "completed"
        assert "nothing was done yet" in model.prompts[1].text

    def test_a_model_that_fails_leaves_the_ticket_to_be_taken_up(self, folder: RunFolder) -> None:
        with pytest.raises(LlmError):
            run(folder, [PLAN, LlmError("server is down")], ["half"])
        last = folder.get("shop", TICKET.id)
        assert (last.outcome, last.due) == ("running", "")
        state, model, worker = run(folder, [COMPLETE], [])
        assert state.outcome == "completed"
        assert worker.prompts == []
        assert "half" in model.prompts[0].text

    def test_a_ticket_needs_a_project(self, folder: RunFolder) -> None:
        with pytest.raises(InputError, match="no project"):
            run(folder, [], [], ticket=Ticket("a", "b"))
        with pytest.raises(ScopeError, match="longer than"):
            run(folder, [], [], ticket=Ticket("a", "b", "", "x" * 600))


class TestMemory:
    def test_it_is_asked_at_the_start_and_every_turn(self, folder: RunFolder) -> None:
        memory = RecordingMemory()
        end = "E" * 2000 + "TypeError at the very end"
        run(folder, [PLAN, MORE, COMPLETE], [f"begin{end}", "ok"], memory)
        assert memory.queries[0] == ["Slow search. The search for orders takes minutes.", COMPLETED_WORK_QUERY]
        assert memory.queries[1][0] == PLAN["next_prompt"]
        assert memory.queries[1][1].endswith("TypeError at the very end")
        assert not memory.queries[1][1].startswith("begin")
        assert memory.queries[2] == [MORE["next_prompt"], "ok"]

    def test_only_the_director_sees_it_each_memory_once(self, folder: RunFolder) -> None:
        _, model, worker = run(folder, [PLAN, COMPLETE], ["ok"], memory_recalling(LESSON))
        assert model.prompts[0].text.count(LESSON) == 1
        assert model.prompts[0].text.count("Memories invoked:") == 1
        assert all(LESSON not in prompt for prompt in worker.prompts)

    def test_a_completed_ticket_is_one_memory_with_its_words_id_and_time(
        self, folder: RunFolder, memory: ProjectMemory
    ) -> None:
        state, _, _ = run(folder, [PLAN, COMPLETE], ["ok"], memory)
        assert stored_texts(memory) == [f"{TICKET.document('')}{COMPLETE['summary']} Nobody looked at the result."]
        atom = memory.memory.get({"project": "shop"}, state.memories[0])
        assert atom.metadata["ticket"] == "search-1"
        assert atom.metadata["outcome"] == "completed"
        assert atom.time is not None

    def test_two_tickets_with_the_same_words_are_two_memories_and_reverting_one_leaves_the_other(
        self, folder: RunFolder, memory: ProjectMemory
    ) -> None:
        twin = Ticket("search-2", TICKET.title, TICKET.description, "shop")
        first, _, _ = run(folder, [PLAN, COMPLETE], ["ok"], memory)
        second, _, _ = run(folder, [PLAN, COMPLETE], ["ok"], memory, twin)
        assert len(stored_texts(memory)) == 2
        assert revert(folder, memory, "shop", "search-1") == first.memories
        left = memory.memory.list({"project": "shop"}).items
        assert [item.id for item in left] == second.memories
        assert memory.retrieve("shop", ["slow search for orders"])[0]["ids"] == second.memories

    def test_a_failed_ticket_leaves_its_lesson(self, folder: RunFolder, memory: ProjectMemory) -> None:
        state, _, _ = run(folder, lambda _: PLAN, lambda _: "no luck", memory, limits=Limits(turns=2))
        assert stored_texts(memory) == [
            "Ticket: Slow search. The search for orders takes minutes. This ticket failed: not complete after 2 turns. "
            "Where it stood: Find the slow query."
        ]
        atom = memory.memory.get({"project": "shop"}, state.memories[0])
        assert (atom.label, atom.metadata["outcome"]) == ("lesson", "failed")
        _, model, _ = run(folder, [PLAN, COMPLETE], ["ok"], memory)
        assert 'ticket "search-1", lesson]' in model.prompts[0].text
        assert len(stored_texts(memory)) == 2

    def test_all_runs_of_a_ticket_are_reverted_and_it_can_be_run_again(
        self, folder: RunFolder, memory: ProjectMemory
    ) -> None:
        memory.index("shop", [{"text": "Slow search is a matter of indexes.", "id": "kept"}])
        run(folder, lambda _: PLAN, lambda _: "no luck", memory, limits=Limits(turns=1))
        run(folder, [PLAN, COMPLETE], ["ok"], memory)
        assert len(revert(folder, memory, "shop", "search-1")) == 2
        assert stored_texts(memory) == ["Slow search is a matter of indexes."]
        assert folder.get("shop", "search-1").outcome == "reverted"
        assert run(folder, [PLAN, COMPLETE], ["ok"], memory)[0].run == 3
        assert len(stored_texts(memory)) == 2

    def test_a_memory_that_fails_is_logged_and_counted_and_stops_nothing(
        self, folder: RunFolder, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, "eunoe"):
            state, model, _ = run(folder, [PLAN, COMPLETE], ["ok"], BrokenMemory())
        assert state.outcome == "completed"
        assert state.memory_failures == 3
        assert [record.getMessage().split(":")[0] for record in caplog.records] == [
            "memory could not recall",
            "memory could not recall",
            "memory could not keep what the ticket taught",
        ]
        assert "Memories invoked:" not in model.prompts[0].text.partition("</ticket")[2]
        assert "Memory failed 3 times." in Path(state.log).read_text()

    def test_what_could_not_be_kept_is_kept_by_the_next_run(self, folder: RunFolder, memory: ProjectMemory) -> None:
        run(folder, [PLAN, COMPLETE], ["ok"], BrokenMemory())
        state, model, _ = run(folder, [], [], memory)
        assert model.prompts == []
        assert stored_texts(memory) == [state.ticket.document(f"{state.summary} {state.evidence}")]

    def test_what_another_agent_learned_meanwhile_is_shown_in_the_next_turn(
        self, folder: RunFolder, memory: ProjectMemory, tmp_path: Path
    ) -> None:
        memory.index("shop", ["The cache of the shop is emptied at night."])

        def answer(prompt: str) -> str:
            with ProjectMemory.open(tmp_path / "memory", embedder="none", llm="none") as other:
                other.index("shop", ["QueryTimeout on the orders table means that the index is missing."])
            return "It ends with QueryTimeout on the orders table"

        _, model, _ = run(folder, [PLAN, COMPLETE], answer, memory)
        assert "that the index is missing" not in model.prompts[0].text
        assert "that the index is missing" in model.prompts[1].text


class TestEndings:
    def test_a_cancelled_run_finishes_its_turn_and_leaves_its_lesson(
        self, folder: RunFolder, memory: ProjectMemory
    ) -> None:
        worker = ScriptedWorker()
        job = Run(TICKET, Director(Model([PLAN])), worker, folder, TicketMemory(memory, "shop"))

        def send(prompt: str) -> str:
            job.cancel()
            return "finished the turn"

        worker.send = send  # type: ignore[method-assign]
        state = job.finish()
        assert state.outcome == "cancelled"
        assert state.steps[0].answer == "finished the turn"
        assert stored_texts(memory)[0].endswith(
            "This ticket was cancelled after 1 turn. Where it stood: Find the slow query."
        )

    def test_an_interrupt_stops_at_once_and_leaves_the_lesson(self, folder: RunFolder, memory: ProjectMemory) -> None:
        worker = ScriptedWorker()

        def send(prompt: str) -> str:
            raise KeyboardInterrupt

        worker.send = send  # type: ignore[method-assign]
        state = Run(TICKET, Director(Model([PLAN])), worker, folder, TicketMemory(memory, "shop")).finish()
        assert state.outcome == "cancelled"
        assert "the worker was stopped" in state.steps[0].notes
        assert len(stored_texts(memory)) == 1

    def test_a_completed_ticket_is_not_run_or_kept_again(self, folder: RunFolder, memory: ProjectMemory) -> None:
        first, _, _ = run(folder, [PLAN, COMPLETE], ["ok"], memory)
        again, model, worker = run(folder, [], [], memory)
        assert (again.memories, again.run) == (first.memories, 1)
        assert model.prompts == worker.prompts == []
        assert len(stored_texts(memory)) == 1

    def test_a_ticket_whose_words_have_changed_is_begun_anew(self, folder: RunFolder) -> None:
        with pytest.raises(LlmError):
            run(folder, [PLAN], ["ok"])
        other = Ticket(TICKET.id, TICKET.title, "Something else.", "shop")
        assert run(folder, [PLAN, COMPLETE], ["ok"], ticket=other)[0].run == 2

    def test_two_files_do_not_share_an_id(self, folder: RunFolder, tmp_path: Path) -> None:
        here, there = tmp_path / "a.md", tmp_path / "b.md"
        here.touch()
        one = Ticket("x", "One", "", "shop", str(here))
        run(folder, [PLAN, COMPLETE], ["ok"], ticket=one)
        two = Ticket("x", "One", "", "shop", str(there))
        with pytest.raises(InputError, match="the id x belongs to"):
            run(folder, [], [], ticket=two)
        here.rename(there)
        assert run(folder, [], [], ticket=two)[0].outcome == "completed"

    def test_no_two_processes_drive_one_ticket(self, folder: RunFolder) -> None:
        with folder.lock("shop", TICKET.id), pytest.raises(ConflictError, match="another process"):
            run(folder, [], [])


class TestResuming:
    def test_a_run_goes_on_wherever_it_was_killed(self, tmp_path: Path, memory: ProjectMemory) -> None:
        """The state after each save is what a killed process leaves; from every one the run comes to its end."""
        states: list[str] = []

        class RecordingFolder(RunFolder):
            def save(self, state: RunState) -> None:
                super().save(state)
                states.append((self.ticket_folder("shop", TICKET.id) / "state.json").read_text())

        def decide(prompt: Prompt) -> Any:
            if "Plan the work" in prompt.text:
                return PLAN
            return COMPLETE if "second answer" in prompt.text else MORE

        def answer(prompt: str) -> str:
            return "second answer" if prompt == MORE["next_prompt"] else "first answer"

        whole, _, _ = run(RecordingFolder(tmp_path / "whole"), decide, answer, memory)
        assert len(states) >= 7
        for number, saved in enumerate(states):
            folder = RunFolder(tmp_path / f"killed-{number}")
            place = folder.ticket_folder("shop", TICKET.id)
            place.mkdir(parents=True)
            (place / "state.json").write_text(saved)
            state, _, worker = run(folder, decide, answer, memory)
            assert state.outcome == "completed"
            assert [step.prompt for step in state.turns] == [PLAN["next_prompt"], MORE["next_prompt"]]
            assert state.memories == whole.memories
            assert len(worker.prompts) <= 2
        assert len(stored_texts(memory)) == 1


class TestTheLog:
    def test_it_tells_the_whole_story(self, folder: RunFolder) -> None:
        answer = "````\nIgnore this\n````\n# Not a heading of the log"
        page = Path(run(folder, [PLAN, COMPLETE], [answer], memory_recalling(LESSON))[0].log).read_text()
        for words in ("# Slow search", "search-1, run 1", "score 0.90", LESSON, PLAN["next_prompt"]):
            assert str(words) in page
        assert str(COMPLETE["summary"]) in page
        assert f"`````text\n{answer}\n`````" in page
        assert re.search(r"Director: 1 calls, \d[\d,]* tokens read, \d+ written, \d+\.\d s, cost 0\.0000", page)
        assert "outcome: completed" in page
