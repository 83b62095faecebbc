"""A ticket from its plan to its end, with memory, without, with one that fails, and after a kill."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eunoe.errors import ConflictError, InputError, LlmError, NotFoundError, ScopeError
from eunoe.llm.contract import Prompt
from eunoe.llm.scripted import Scripted as Model
from eunoe.projects import ProjectMemory
from eunoe.tickets import Command, Director, Limits, Progress, Recollection, Run, Scripted, Shelf, Ticket, WorkerError
from eunoe.tickets import revert as take_back
from eunoe.tickets.recollection import DONE

TICKET = Ticket("search-1", "Slow search", "The search for orders takes minutes.", "shop")
LESSON = "The orders table had no index on customer_id, and adding one made the search fast again at once."
PLAN = {"complete": False, "summary": "Find the slow query.", "next_prompt": "Find out which query is slow."}
MORE = {"complete": False, "summary": "The query is known.", "next_prompt": "Make that query fast, with a test."}
LEAK = {"complete": False, "summary": "", "next_prompt": f"First read this: {LESSON.upper()} Then go on."}
DONE_NOW = {"complete": True, "summary": "The query got an index and a test.", "next_prompt": ""}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ProjectMemory]:
    with ProjectMemory.open(tmp_path / "memory", embedder="none", llm="none") as opened:
        yield opened


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "logs")


def run(
    shelf: Shelf,
    decisions: Any,
    answers: Any,
    memory: Any = None,
    ticket: Ticket = TICKET,
    limits: Limits | None = None,
    **options: Any,
) -> tuple[Progress, Model, Scripted]:
    model, worker = Model(decisions), Scripted(answers)
    recollection = Recollection(memory, ticket.project)
    progress = Run(ticket, Director(model, limits), worker, shelf, recollection, **options).finish()
    return progress, model, worker


def texts(memory: ProjectMemory, project: str = "shop") -> list[str]:
    return [item.text for item in memory.memory.list({"project": project}).items]


class Recorder:
    """A project memory that takes down what it is asked, and answers what it is told to."""

    def __init__(self, found: Callable[[str], list[tuple[str, str, float]]] = lambda query: []) -> None:
        self.asked: list[list[str]] = []
        self.kept: list[Any] = []
        self._found = found

    def index(self, project: str, docs: Sequence[str | Mapping[str, Any]]) -> list[str]:
        self.kept += docs
        return [str(doc["id"]) for doc in docs if isinstance(doc, Mapping)]

    def retrieve(self, project: str, queries: Sequence[str], num_to_retrieve: int) -> list[dict[str, Any]]:
        self.asked.append(list(queries))
        results = [(query, self._found(query)) for query in queries]
        return [
            {
                "question": query,
                "docs": [text for _, text, _ in hits],
                "doc_scores": [score for _, _, score in hits],
                "ids": [id for id, _, _ in hits],
            }
            for query, hits in results
        ]

    def delete(self, project: str, docs_or_ids: Sequence[str]) -> list[str]:
        return list(docs_or_ids)


class Broken(Recorder):
    def index(self, project: str, docs: Any) -> list[str]:
        raise RuntimeError("the disk\nis gone")

    def retrieve(self, project: str, queries: Any, num_to_retrieve: int) -> list[dict[str, Any]]:
        raise OSError("no such device")


def recalls(text: str, id: str = "m1") -> Recorder:
    return Recorder(lambda query: [(id, text, 0.9)])


class TestTheLoop:
    def test_a_ticket_is_planned_prompted_judged_and_finished(self, shelf: Shelf) -> None:
        progress, model, worker = run(shelf, [PLAN, MORE, DONE_NOW], ["It is query 7.", "Done, all tests pass."])
        assert (progress.outcome, progress.summary) == ("completed", DONE_NOW["summary"])
        assert worker.prompts == [PLAN["next_prompt"], MORE["next_prompt"]]
        assert "Plan the work" in model.prompts[0].text
        assert "It is query 7." in model.prompts[1].text
        assert "Find the slow query." in model.prompts[1].text

    def test_what_is_said_never_stands_in_the_instructions(self, shelf: Shelf) -> None:
        _, model, _ = run(shelf, [PLAN, DONE_NOW], ["answer-words"], recalls("memory-words"))
        assert len({prompt.system for prompt in model.prompts}) == 1
        for words in (TICKET.title, "answer-words", "memory-words", PLAN["next_prompt"]):
            assert str(words) not in model.prompts[0].system

    def test_turns_are_limited(self, shelf: Shelf) -> None:
        progress, model, worker = run(shelf, lambda _: PLAN, lambda _: "trying", limits=Limits(turns=3))
        assert (progress.outcome, progress.reason) == ("failed", "not complete after 3 turns.")
        assert len(worker.prompts) == 3
        assert len(model.prompts) == 4

    def test_completion_on_the_last_answer_counts(self, shelf: Shelf) -> None:
        assert run(shelf, [PLAN, DONE_NOW], ["ok"], limits=Limits(turns=1))[0].outcome == "completed"

    def test_a_failure_of_the_worker_is_shown_to_the_director(self, shelf: Shelf) -> None:
        progress, model, _ = run(shelf, [PLAN, MORE, DONE_NOW], [WorkerError("no disk left"), "Done."])
        assert progress.outcome == "completed"
        assert "Turn 1 (the worker failed)" in model.prompts[1].text
        assert "no disk left" in model.prompts[1].text

    def test_repeated_failure_fails_the_ticket(self, shelf: Shelf) -> None:
        progress, _, worker = run(
            shelf, lambda _: PLAN, [WorkerError("a"), ValueError("b"), WorkerError("x" * 999 + "c")]
        )
        assert progress.outcome == "failed"
        assert progress.reason.startswith("the worker failed 3 times in a row")
        assert progress.reason.endswith("xxc")
        assert len(worker.prompts) == 3

    def test_a_success_in_between_starts_the_count_again(self, shelf: Shelf) -> None:
        script = [WorkerError("a"), WorkerError("b"), "fine", WorkerError("c"), WorkerError("d"), "fine"]
        progress, _, _ = run(shelf, [PLAN] * 6 + [DONE_NOW], script)
        assert progress.outcome == "completed"

    def test_a_bad_answer_of_the_model_is_asked_for_again(self, shelf: Shelf) -> None:
        silly = {"complete": True, "summary": "done already", "next_prompt": ""}
        empty = {"complete": False, "summary": "hm", "next_prompt": " "}
        mute = {"complete": True, "summary": "", "next_prompt": ""}
        progress, model, _ = run(shelf, [silly, "no json", PLAN, empty, mute, DONE_NOW], ["ok"])
        assert progress.outcome == "completed"
        assert "nothing was done yet" in model.prompts[1].text

    def test_a_short_answer_in_the_form_of_the_host_is_understood(self, shelf: Shelf) -> None:
        script = ['{"complete": false, "next_prompt": "Go."}', '{"complete": "true", "summary": "Went."}']
        assert run(shelf, script, ["ok"])[0].summary == "Went."

    def test_a_model_that_fails_leaves_the_ticket_to_be_taken_up(self, shelf: Shelf) -> None:
        with pytest.raises(LlmError):
            run(shelf, [PLAN, LlmError("server is down")], ["half"])
        known = shelf.found("shop", TICKET.id)
        assert (known.outcome, known.due) == ("running", "")
        progress, model, worker = run(shelf, [DONE_NOW], [])
        assert progress.outcome == "completed"
        assert worker.prompts == []
        assert "half" in model.prompts[0].text

    def test_real_processes_do_the_work(self, shelf: Shelf, tmp_path: Path) -> None:
        code = "import sys, pathlib; pathlib.Path('done.txt').open('a').write(sys.stdin.read() + '|'); print('written')"
        worker = Command([sys.executable, "-c", code], directory=tmp_path)
        progress = Run(TICKET, Director(Model([PLAN, MORE, DONE_NOW])), worker, shelf).finish()
        assert progress.outcome == "completed"
        assert (tmp_path / "done.txt").read_text() == f"{PLAN['next_prompt']}|{MORE['next_prompt']}|"

    def test_a_ticket_needs_a_project(self, shelf: Shelf) -> None:
        with pytest.raises(InputError, match="no project"):
            run(shelf, [], [], ticket=Ticket("a", "b"))
        with pytest.raises(ScopeError, match="longer than"):
            run(shelf, [], [], ticket=Ticket("a", "b", "", "x" * 600))

    def test_odd_words_of_a_worker_are_written_down(self, shelf: Shelf) -> None:
        progress, _, _ = run(shelf, [PLAN, PLAN, DONE_NOW], ["\ud800\x00 half", OSError("bad name \udcff")])
        assert shelf.found("shop", TICKET.id).turns[0].answer == "\ufffd\x00 half"
        assert "OSError: bad name" in Path(progress.log).read_text()


class TestMemory:
    def test_it_is_asked_at_the_start_and_every_turn(self, shelf: Shelf) -> None:
        memory = Recorder()
        end = "E" * 2000 + "TypeError at the very end"
        run(shelf, [PLAN, MORE, DONE_NOW], [f"begin{end}", "ok"], memory)
        assert memory.asked[0] == ["Slow search. The search for orders takes minutes.", DONE]
        assert memory.asked[1][0] == PLAN["next_prompt"]
        assert memory.asked[1][1].endswith("TypeError at the very end")
        assert not memory.asked[1][1].startswith("begin")
        assert memory.asked[2] == [MORE["next_prompt"], "ok"]

    def test_only_the_director_sees_it_each_memory_once(self, shelf: Shelf) -> None:
        _, model, worker = run(shelf, [PLAN, DONE_NOW], ["ok"], recalls(LESSON))
        assert model.prompts[0].text.count(LESSON) == 1
        assert model.prompts[0].text.count("Memories invoked:") == 1
        assert all(LESSON not in prompt for prompt in worker.prompts)

    def test_a_completed_ticket_is_one_memory_with_its_words_id_and_time(
        self, shelf: Shelf, memory: ProjectMemory
    ) -> None:
        progress, _, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory)
        assert texts(memory) == [f"Ticket: Slow search. The search for orders takes minutes. {DONE_NOW['summary']}"]
        atom = memory.memory.get({"project": "shop"}, progress.memories[0])
        assert atom.metadata["ticket"] == "search-1"
        assert atom.metadata["outcome"] == "completed"
        assert atom.time is not None

    def test_a_later_ticket_is_shown_it_with_score_date_and_ticket(self, shelf: Shelf, memory: ProjectMemory) -> None:
        run(shelf, [PLAN, DONE_NOW], ["ok"], memory)
        later = Ticket("search-2", "Search for orders is slow again", "It takes minutes.", "shop")
        _, model, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory, later)
        line = re.search(r"^1\. \[(.*?)\] (.*)$", model.prompts[0].text, re.MULTILINE)
        assert line
        assert re.fullmatch(r'score [01]\.\d\d, \d{4}-\d\d-\d\d, ticket "search-1"', line[1])
        assert json.loads(line[2]).startswith("Ticket: Slow search.")

    def test_two_tickets_with_the_same_words_are_two_memories_and_reverting_one_leaves_the_other(
        self, shelf: Shelf, memory: ProjectMemory
    ) -> None:
        twin = Ticket("search-2", TICKET.title, TICKET.description, "shop")
        first, _, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory)
        second, _, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory, twin)
        assert len(texts(memory)) == 2
        assert take_back(shelf, memory, "shop", "search-1") == first.memories
        left = memory.memory.list({"project": "shop"}).items
        assert [item.id for item in left] == second.memories
        assert memory.retrieve("shop", ["slow search for orders"])[0]["ids"] == second.memories

    def test_a_failed_ticket_leaves_its_lesson(self, shelf: Shelf, memory: ProjectMemory) -> None:
        progress, _, _ = run(shelf, lambda _: PLAN, lambda _: "no luck", memory, limits=Limits(turns=2))
        assert texts(memory) == [
            "Ticket: Slow search. The search for orders takes minutes. This ticket failed: not complete after 2 turns. "
            "Where it stood: Find the slow query."
        ]
        atom = memory.memory.get({"project": "shop"}, progress.memories[0])
        assert (atom.label, atom.metadata["outcome"]) == ("lesson", "failed")
        _, model, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory)
        assert 'ticket "search-1", lesson]' in model.prompts[0].text
        assert len(texts(memory)) == 2

    def test_all_runs_of_a_ticket_are_reverted_and_it_can_be_run_again(
        self, shelf: Shelf, memory: ProjectMemory
    ) -> None:
        memory.index("shop", [{"text": "Slow search is a matter of indexes.", "id": "kept"}])
        run(shelf, lambda _: PLAN, lambda _: "no luck", memory, limits=Limits(turns=1))
        run(shelf, [PLAN, DONE_NOW], ["ok"], memory)
        assert len(take_back(shelf, memory, "shop", "search-1")) == 2
        assert texts(memory) == ["Slow search is a matter of indexes."]
        assert shelf.found("shop", "search-1").outcome == "reverted"
        assert run(shelf, [PLAN, DONE_NOW], ["ok"], memory)[0].run == 3
        assert len(texts(memory)) == 2

    def test_reverting_what_never_was_is_an_error(self, shelf: Shelf, memory: ProjectMemory) -> None:
        with pytest.raises(NotFoundError, match="no ticket nothing"):
            take_back(shelf, memory, "shop", "nothing")

    def test_it_is_reverted_without_its_log_too(self, shelf: Shelf, memory: ProjectMemory, tmp_path: Path) -> None:
        progress, _, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory)
        assert take_back(Shelf(tmp_path / "other"), memory, "shop", "search-1") == progress.memories

    def test_a_memory_that_fails_is_logged_and_counted_and_stops_nothing(
        self, shelf: Shelf, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, "eunoe"):
            progress, model, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], Broken())
        assert progress.outcome == "completed"
        assert progress.memory_failures == 3
        assert [record.getMessage().split(":")[0] for record in caplog.records] == [
            "memory could not recall",
            "memory could not recall",
            "memory could not keep what the ticket taught",
        ]
        assert "Memories invoked:" not in model.prompts[0].text.partition("</ticket")[2]
        assert "Memory failed 3 times." in Path(progress.log).read_text()

    def test_what_could_not_be_kept_is_kept_by_the_next_run(self, shelf: Shelf, memory: ProjectMemory) -> None:
        run(shelf, [PLAN, DONE_NOW], ["ok"], Broken())
        progress, model, _ = run(shelf, [], [], memory)
        assert model.prompts == []
        assert texts(memory) == [progress.ticket.document(progress.summary)]

    def test_what_another_agent_learned_meanwhile_is_shown_in_the_next_turn(
        self, shelf: Shelf, memory: ProjectMemory, tmp_path: Path
    ) -> None:
        memory.index("shop", ["The cache of the shop is emptied at night."])

        def answer(prompt: str) -> str:
            with ProjectMemory.open(tmp_path / "memory", embedder="none", llm="none") as other:
                other.index("shop", ["QueryTimeout on the orders table means that the index is missing."])
            return "It ends with QueryTimeout on the orders table"

        _, model, _ = run(shelf, [PLAN, DONE_NOW], answer, memory)
        assert "that the index is missing" not in model.prompts[0].text
        assert "that the index is missing" in model.prompts[1].text

    def test_what_was_forgotten_meanwhile_is_not_shown(self, shelf: Shelf, memory: ProjectMemory) -> None:
        id = memory.index("shop", ["Slow search of orders is a matter of indexes."])[0]

        class Late(Recorder):
            memory: Any = None

            def retrieve(self, project: str, queries: Sequence[str], num_to_retrieve: int) -> list[dict[str, Any]]:
                found = memory.retrieve(project, queries, num_to_retrieve)
                if id in found[0]["ids"]:
                    memory.delete(project, [id])
                return found

        late = Late()
        late.memory = memory.memory
        progress, model, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], late)
        assert progress.memory_failures == 0
        assert "a matter of indexes" not in model.prompts[0].text

    def test_without_memory_it_says_so_once(self, shelf: Shelf) -> None:
        said: list[str] = []
        progress, _, _ = run(shelf, [PLAN, MORE, DONE_NOW], ["a", "b"], say=said.append)
        assert progress.outcome == "completed"
        assert sum("no memory" in line for line in said) == 1

    def test_a_huge_description_is_asked_for_and_shown_in_part(self, shelf: Shelf) -> None:
        memory = Recorder()
        huge = Ticket("huge", "Huge", "word " * 100_000, "shop")
        _, model, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory, huge)
        assert len(memory.asked[0][0]) <= 1500
        assert len(model.prompts[0].text) < 40_000


class TestWhatTheWorkerMayNotSee:
    def test_a_prompt_with_recalled_text_is_written_again(self, shelf: Shelf) -> None:
        clean = {"complete": False, "summary": "", "next_prompt": "Look at the indexes first."}
        progress, model, worker = run(shelf, [LEAK, clean, DONE_NOW], ["ok"], recalls(LESSON))
        assert worker.prompts == ["Look at the indexes first."]
        assert "repeats wording of project memory" in model.prompts[1].text
        assert "carried recalled text in 1 places" in progress.steps[0].notes[0]

    def test_one_that_still_has_it_is_cut(self, shelf: Shelf) -> None:
        progress, _, worker = run(shelf, [LEAK, LEAK, DONE_NOW], ["ok"], recalls(LESSON))
        assert worker.prompts == ["First read this: [...] Then go on."]
        assert "cut out" in progress.steps[0].notes[1]

    def test_one_that_cannot_be_written_again_is_cut(self, shelf: Shelf) -> None:
        _, _, worker = run(shelf, [LEAK, LlmError("down"), DONE_NOW], ["ok"], recalls(LESSON))
        assert worker.prompts == ["First read this: [...] Then go on."]

    def test_one_of_which_nothing_is_left_is_not_sent_and_the_turn_fails(self, shelf: Shelf) -> None:
        only = {"complete": False, "summary": "", "next_prompt": LESSON}
        progress, model, worker = run(shelf, [only, only, MORE, DONE_NOW], ["ok"], recalls(LESSON))
        assert worker.prompts == [MORE["next_prompt"]]
        assert progress.steps[0].failed
        assert "[not sent:" in model.prompts[2].text

    def test_a_director_that_only_copies_fails_the_ticket(self, shelf: Shelf) -> None:
        only = {"complete": False, "summary": "", "next_prompt": LESSON}
        progress, _, worker = run(shelf, lambda _: only, [], recalls(LESSON))
        assert (progress.outcome, worker.prompts) == ("failed", [])

    def test_what_was_recalled_in_an_earlier_turn_is_still_guarded(self, shelf: Shelf) -> None:
        memory = Recorder(lambda query: [("m1", LESSON, 0.9)] if query == DONE else [])
        _, _, worker = run(shelf, [PLAN, LEAK, LEAK, DONE_NOW], ["ok", "ok"], memory)
        assert worker.prompts[1] == "First read this: [...] Then go on."

    def test_a_memory_copied_as_it_was_quoted_is_caught(self, shelf: Shelf) -> None:
        lines = "one two\nthree four\nfive six\nseven eight\nnine ten\neleven twelve"
        copied = json.dumps(lines)[1:-1]
        leak = {"complete": False, "summary": "", "next_prompt": f"Do: {copied} and stop."}
        _, _, worker = run(shelf, [leak, leak, DONE_NOW], ["ok"], recalls(lines))
        assert worker.prompts == ["Do: [...] and stop."]

    def test_words_of_the_ticket_and_of_the_worker_may_be_said(self, shelf: Shelf) -> None:
        ticket = Ticket("t", "Index", LESSON, "shop")
        said = {"complete": False, "summary": "", "next_prompt": f"Do this: {LESSON}"}
        _, _, worker = run(shelf, [said, DONE_NOW], ["ok"], recalls(f"Ticket: Index. {LESSON}"), ticket)
        assert worker.prompts == [f"Do this: {LESSON}"]
        _, _, worker = run(shelf, [PLAN, said, DONE_NOW], [LESSON, "ok"], recalls(LESSON))
        assert worker.prompts[1] == f"Do this: {LESSON}"


class TestEndings:
    def test_a_cancelled_run_finishes_its_turn_and_leaves_its_lesson(self, shelf: Shelf, memory: ProjectMemory) -> None:
        worker = Scripted()
        job = Run(TICKET, Director(Model([PLAN])), worker, shelf, Recollection(memory, "shop"))

        def send(prompt: str) -> str:
            job.cancel()
            return "finished the turn"

        worker.send = send  # type: ignore[method-assign]
        progress = job.finish()
        assert progress.outcome == "cancelled"
        assert progress.steps[0].answer == "finished the turn"
        assert texts(memory)[0].endswith("This ticket was cancelled after 1 turn. Where it stood: Find the slow query.")

    def test_an_interrupt_stops_at_once_and_leaves_the_lesson(self, shelf: Shelf, memory: ProjectMemory) -> None:
        worker = Scripted()

        def send(prompt: str) -> str:
            raise KeyboardInterrupt

        worker.send = send  # type: ignore[method-assign]
        progress = Run(TICKET, Director(Model([PLAN])), worker, shelf, Recollection(memory, "shop")).finish()
        assert progress.outcome == "cancelled"
        assert "the worker was stopped" in progress.steps[0].notes
        assert len(texts(memory)) == 1

    def test_a_completed_ticket_is_not_run_or_kept_again(self, shelf: Shelf, memory: ProjectMemory) -> None:
        first, _, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory)
        again, model, worker = run(shelf, [], [], memory)
        assert (again.memories, again.run) == (first.memories, 1)
        assert model.prompts == worker.prompts == []
        assert len(texts(memory)) == 1

    def test_it_is_run_again_if_that_is_asked_for(self, shelf: Shelf, memory: ProjectMemory) -> None:
        run(shelf, [PLAN, DONE_NOW], ["ok"], memory)
        progress, _, _ = run(shelf, [PLAN, DONE_NOW], ["ok"], memory, again=True)
        assert progress.run == 2
        assert len(texts(memory)) == 2
        assert sorted(path.name for path in Path(progress.log).parent.glob("*.md")) == ["run-001.md", "run-002.md"]

    def test_a_ticket_whose_words_have_changed_is_begun_anew(self, shelf: Shelf) -> None:
        with pytest.raises(LlmError):
            run(shelf, [PLAN], ["ok"])
        other = Ticket(TICKET.id, TICKET.title, "Something else.", "shop")
        assert run(shelf, [PLAN, DONE_NOW], ["ok"], ticket=other)[0].run == 2

    def test_two_files_do_not_share_an_id(self, shelf: Shelf, tmp_path: Path) -> None:
        here, there = tmp_path / "a.md", tmp_path / "b.md"
        here.touch()
        one = Ticket("x", "One", "", "shop", str(here))
        run(shelf, [PLAN, DONE_NOW], ["ok"], ticket=one)
        two = Ticket("x", "One", "", "shop", str(there))
        with pytest.raises(InputError, match="the id x belongs to"):
            run(shelf, [], [], ticket=two)
        here.rename(there)
        assert run(shelf, [], [], ticket=two)[0].outcome == "completed"

    def test_no_two_processes_drive_one_ticket(self, shelf: Shelf) -> None:
        with shelf.claimed("shop", TICKET.id), pytest.raises(ConflictError, match="another process"):
            run(shelf, [], [])


class TestResuming:
    def test_a_run_goes_on_wherever_it_was_killed(self, tmp_path: Path, memory: ProjectMemory) -> None:
        """The state after each save is what a killed process leaves; from every one the run comes to its end."""
        states: list[str] = []

        class Taped(Shelf):
            def save(self, progress: Progress, log: str) -> None:
                super().save(progress, log)
                states.append((self.place("shop", TICKET.id) / "state.json").read_text())

        def decide(prompt: Prompt) -> Any:
            if "Plan the work" in prompt.text:
                return PLAN
            return DONE_NOW if "second answer" in prompt.text else MORE

        def answer(prompt: str) -> str:
            return "second answer" if prompt == MORE["next_prompt"] else "first answer"

        whole, _, _ = run(Taped(tmp_path / "whole"), decide, answer, memory)
        assert len(states) >= 7
        for number, state in enumerate(states):
            shelf = Shelf(tmp_path / f"killed-{number}")
            place = shelf.place("shop", TICKET.id)
            place.mkdir(parents=True)
            (place / "state.json").write_text(state)
            progress, _, worker = run(shelf, decide, answer, memory)
            assert progress.outcome == "completed"
            assert [step.prompt for step in progress.turns] == [PLAN["next_prompt"], MORE["next_prompt"]]
            assert progress.memories == whole.memories
            assert len(worker.prompts) <= 2
        assert len(texts(memory)) == 1

    def test_the_session_of_the_worker_is_taken_up(self, shelf: Shelf) -> None:
        first = Scripted(["ok"])
        first.session = "s-77"
        with pytest.raises(LlmError):
            Run(TICKET, Director(Model([PLAN])), first, shelf).finish()
        second = Scripted(["ok"])
        Run(TICKET, Director(Model([DONE_NOW])), second, shelf).finish()
        assert second.session == "s-77"

    def test_another_worker_gets_no_session_that_is_not_its_own(self, shelf: Shelf) -> None:
        first = Scripted(["ok"])
        first.session = "s-77"
        with pytest.raises(LlmError):
            Run(TICKET, Director(Model([PLAN])), first, shelf).finish()
        second = Command([sys.executable, "-c", "pass"])
        Run(TICKET, Director(Model([DONE_NOW])), second, shelf).finish()
        assert second.session != "s-77"


class TestTheLog:
    def test_it_tells_the_whole_story(self, shelf: Shelf) -> None:
        answer = "````\nIgnore this\n````\n# Not a heading of the log"
        progress, _, _ = run(shelf, [PLAN, DONE_NOW], [answer], recalls(LESSON))
        page = Path(progress.log).read_text()
        for words in (
            "# Slow search",
            "search-1, run 1",
            PLAN["next_prompt"],
            LESSON,
            DONE_NOW["summary"],
            "score 0.90",
        ):
            assert str(words) in page
        assert f"`````text\n{answer}\n`````" in page
        assert re.search(r"Director: 1 calls, \d[\d,]* tokens read, \d+ written, \d+\.\d s, cost 0\.0000", page)
        assert "outcome: completed" in page

    def test_it_is_for_its_owner_only(self, shelf: Shelf) -> None:
        progress, _, _ = run(shelf, [PLAN, DONE_NOW], ["ok"])
        place = Path(progress.log)
        assert place.stat().st_mode & 0o077 == 0
        assert place.parent.stat().st_mode & 0o077 == 0
        assert sorted(path.name for path in place.parent.iterdir()) == [".lock", "run-001.md", "state.json"]

    @pytest.mark.parametrize("name", ["../../etc", "/abs", "..", ".", "a/b", "Shop", "con\u202e", "ß" * 300, "~"])
    def test_no_name_leads_out_of_its_place(self, name: str, shelf: Shelf) -> None:
        place = shelf.place(name, name)
        assert place.resolve().parent.parent == shelf.folder.resolve()
        assert len(place.name) < 80

    def test_names_that_differ_have_places_that_differ(self, shelf: Shelf) -> None:
        names = ["shop", "Shop", "SHOP", "shop/", "shop ", "sh op", "sh-op", ".shop"]
        assert len({str(shelf.place(name, "x")).lower() for name in names}) == len(names)

    def test_a_state_that_is_none_is_a_typed_error(self, shelf: Shelf) -> None:
        place = shelf.place("shop", "x")
        place.mkdir(parents=True)
        for text in ("", "[]", '{"ticket": {}}', "null"):
            (place / "state.json").write_text(text)
            with pytest.raises(InputError, match="not the state of a ticket"):
                shelf.load("shop", "x")
