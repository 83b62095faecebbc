"""Forming behind the reply."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

import eunoe
from eunoe.errors import LlmError
from eunoe.form import extraction
from eunoe.form.background import Background
from eunoe.form.chunk import Proposal
from eunoe.form.former import Former
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope

TALK = Scope(agent="cook", session="s1", user="anna")
OTHER = Scope(agent="cook", session="s2", user="anna")
SAID = ["I am allergic to peanuts.", "My sister lives in Oslo.", "Please be brief."]


@contextmanager
def opened(path: Path, llm: Any = "none") -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm=llm) as memory:
        memory.streams.set_preset("session", formation_messages=3, formation_minimum=1)
        yield memory


class FormerStub:
    """Stands for a former: notes what it is to form, and does what it is told to do then."""

    def __init__(self, act: Callable[[Scope], None] = lambda _: None) -> None:
        self.formed: list[Scope] = []
        self._act = act

    def form(self, scope: Scope, **_: object) -> FormReport:
        self.formed.append(scope)
        self._act(scope)
        return FormReport()


def background_of(former: FormerStub) -> Background:
    return Background(lambda: cast("Former", former))


def workers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("eunoe-form")]


def test_a_conversation_that_is_due_is_formed_behind_the_reply(path: Path) -> None:
    with opened(path) as memory:
        memory.observe(TALK, SAID[:2])
        assert memory.flush(20)
        assert memory.status().due_messages == 2
        memory.observe(TALK, SAID[2:])
        assert memory.flush(20)
        assert memory.status().due_messages == 0
        assert memory.list(TALK, kinds=["fact", "observation"]).items
    assert workers() == []


def test_remembered_observations_are_summed_up_behind_the_reply_once_enough_wait(path: Path) -> None:
    anna = Scope(agent="cook", user="anna")
    with opened(path) as memory:
        memory.streams.set_preset("user", consolidation_trigger=2)
        for text, revisions in (("Anna lives in Turin.", 0), ("Anna keeps two cats.", 1)):
            memory.remember(anna, text, kind="observation")
            assert memory.flush(20)
            assert len(memory.summaries.revisions(anna)) == revisions
        memory.streams.set_preset("user", consolidation_prompt="")
        memory.remember_many(anna, [{"text": f"Anna has {n} plates.", "kind": "observation"} for n in range(9)])
        assert memory.flush(20)
        assert len(memory.summaries.revisions(anna)) == 1
    assert workers() == []


def test_observe_does_not_wait_for_the_model_and_close_lets_it_finish(path: Path) -> None:
    asked = threading.Event()
    background: list[Background] = []

    def slow(prompt: Prompt) -> Any:
        asked.set()
        deadline = time.monotonic() + 20
        while background[0].work.is_open:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return {"memories": []}

    with opened(path, ScriptedLlm(slow)) as memory:
        memory.streams.set_preset("session", chunk_tokens=8)
        running = memory._engine.background
        assert running
        background.append(running)
        receipts = memory.observe(TALK, SAID)
        assert [receipt.outcome for receipt in receipts] == ["stored"] * 3
        assert asked.wait(20)
        assert not memory.flush(0.01)
    assert workers() == []
    with opened(path) as memory:
        assert memory.status().due_messages == 0


def test_a_failing_model_stops_nothing_and_is_told_of_in_the_log(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(path, ScriptedLlm(lambda _: LlmError("out of order"))) as memory:
        memory.observe(TALK, SAID)
        assert memory.flush(20)
        status = memory.status()
        assert (status.due_messages, status.failing) == (3, 1)
        memory.observe(TALK, ["One more.", "And another.", "And a third."])
        assert memory.flush(20)
        assert memory.status().failing == 2
    assert "out of order" in caplog.text


def test_no_conversation_is_formed_twice_at_once_and_one_that_is_added_meanwhile_is_formed_again() -> None:
    began, go_on = threading.Event(), threading.Event()

    def wait(_: Scope) -> None:
        began.set()
        assert go_on.wait(20)

    former = FormerStub(wait)
    background = background_of(former)
    background.add(TALK)
    assert began.wait(20)
    for scope in (TALK, OTHER, TALK, OTHER):
        background.add(scope)
    assert len(workers()) == 1
    go_on.set()
    assert background.flush(20)
    assert former.formed == [TALK, TALK, OTHER]
    background.close()


def test_what_is_added_after_the_thread_has_ended_starts_it_again() -> None:
    background = background_of(FormerStub())
    for _ in range(20):
        background.add(TALK)
        assert background.flush(20)
    background.close()
    background.add(TALK)
    assert background.flush(0)
    assert workers() == []


def test_a_store_that_is_closed_underneath_is_logged_without_noise(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as memory:
        engine = memory._engine
        assert engine.former
        background = Background(lambda: engine.former)
    with caplog.at_level(logging.WARNING, "eunoe"):
        background.add(TALK)
        assert background.flush(20)
        background.close()
    (record,) = caplog.records
    assert record.exc_info is None
    assert "has to wait" in record.message


def test_a_fault_in_the_program_does_not_end_the_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(scope: Scope) -> None:
        if scope == TALK:
            raise ZeroDivisionError

    former = FormerStub(fail)
    background = background_of(former)
    background.add(TALK)
    background.add(OTHER)
    assert background.flush(20)
    assert former.formed == [TALK, OTHER]
    assert "ZeroDivisionError" in caplog.text
    background.close()


def test_memories_of_several_conversations_are_all_formed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_each(targets: Any, readings: Any) -> list[Proposal]:
        return [Proposal(0, "fact", each.turn.text, (each.turn.id,)) for each in readings]

    monkeypatch.setattr(extraction, "extract_extractively", one_each)
    talks = [Scope(session=f"s{number}", user="anna") for number in range(10)]
    with opened(path) as memory:
        for talk in talks:
            memory.observe(talk, [f"{text} {talk['session']}" for text in SAID])
        assert memory.flush(30)
        assert memory.status().due_messages == 0
        assert all(len(memory.list(talk, kinds=["fact"]).items) == 3 for talk in talks)


def test_a_process_that_never_closes_still_ends_and_a_forked_one_does_not_hang(path: Path) -> None:
    script = """
import os, sys, eunoe
memory = eunoe.open(sys.argv[1], embedder="none", llm="none")
memory.streams.set_preset("session", formation_messages=1, formation_minimum=1)
memory.observe("session=s1/user=anna", ["I am allergic to peanuts."])
assert memory.flush(20)
pid = os.fork()
if pid == 0:
    background = memory._engine.background
    background.add("session=s1/user=anna")
    background.flush(5)
    background.close()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
memory.observe("session=s1/user=anna", ["I moved to Rome."])
"""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, timeout=60, capture_output=True, env=env, text=True
    )
    assert done.stdout.split() == ["0"]
    with opened(path) as memory:
        # A process that ends may not start threads any more: what was not formed by then is due.
        memory.form("session=s1/user=anna")
        assert (memory.status().messages, memory.status().due_messages) == (2, 0)
