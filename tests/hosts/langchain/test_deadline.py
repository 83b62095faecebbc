"""A memory that fails or is slow never fails a run and never blocks an event loop."""

import asyncio
import gc
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from tests.hosts.langchain.conftest import human, recalled, said
from tests.support.chat_models import ScriptedModel
from tests.support.waiting import wait_until

from eunoe.errors import StoreBusyError
from eunoe.hosts.langchain import MemoryMiddleware
from eunoe.hosts.langchain.deadline import Deadline
from eunoe.memory import Memory

THREAD: Any = {"configurable": {"thread_id": "t1"}}
SCOPE = "thread=t1/user=anna"
Invoke = Callable[..., Any]


def ainvoke(agent: Any, *arguments: Any) -> Any:
    return asyncio.run(agent.ainvoke(*arguments))


def invoke(agent: Any, *arguments: Any) -> Any:
    return agent.invoke(*arguments)


both_ways = pytest.mark.parametrize("call", [invoke, ainvoke], ids=["blocking", "async"])


@pytest.fixture
def gate() -> Iterator[Event]:
    """What slow work waits for; it is let through at the end, so that no thread stays behind."""
    event = Event()
    yield event
    event.set()


@both_ways
def test_a_closed_memory_costs_the_memory_alone(
    call: Invoke, memory: Memory, agent_of: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    agent = agent_of(ScriptedModel("Hello."))
    memory.close()
    assert call(agent, human("A secret."))["messages"][-1].text == "Hello."
    assert "ClosedError" in caplog.text
    assert "secret" not in caplog.text


@both_ways
def test_what_is_recalled_too_late_is_left_out(
    call: Invoke, memory: Memory, gate: Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory.remember("user=anna", "Anna likes tea.")
    monkeypatch.setattr(Memory, "context", lambda *_, **__: gate.wait(60))
    model = ScriptedModel("Hello.")
    agent = create_agent(model, middleware=[MemoryMiddleware(memory, recall_seconds=0.01)])
    assert call(agent, human("Do I like tea?"))["messages"][-1].text == "Hello."
    assert recalled(model.requests[0]) == []
    assert "TimeoutError" in caplog.text


@both_ways
def test_what_is_learned_too_late_is_learned_behind_the_run(
    call: Invoke, memory: Memory, gate: Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    observe = Memory.observe

    def observe_late(*arguments: Any) -> Any:
        gate.wait(60)
        return observe(*arguments)

    monkeypatch.setattr(Memory, "observe", observe_late)
    agent = create_agent(ScriptedModel("Hello."), middleware=[MemoryMiddleware(memory, learn_seconds=0.01)])
    assert call(agent, human("I like tea."))["messages"][-1].text == "Hello."
    assert said(memory) == []
    assert "2 messages are not known to be learned" in caplog.text
    gate.set()
    wait_until(lambda: said(memory) == ["user: I like tea.", "assistant: Hello."])


@both_ways
def test_what_could_not_be_learned_is_learned_by_the_next_run(
    call: Invoke, memory: Memory, agent_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_of(ScriptedModel("First.", "Second."), checkpointer=InMemorySaver())
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "observe", lambda *_: (_ for _ in ()).throw(StoreBusyError("busy")))
        call(agent, human("One."), THREAD)
    assert said(memory, SCOPE) == []
    call(agent, human("Two."), THREAD)
    assert [line.split()[-1] for line in said(memory, SCOPE)] == ["One.", "First.", "Two.", "Second."]


def test_a_memory_that_may_only_be_read_piles_nothing_up(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    memory.remember("user=anna", "Anna likes tea.")
    model = ScriptedModel("Hello.")
    reader = MemoryMiddleware(memory.restricted(rights=["read"]))
    agent = create_agent(model, middleware=[reader], checkpointer=InMemorySaver())
    for _ in range(2):
        agent.invoke(human("Do I like tea?"), THREAD)
    assert all(map(recalled, model.requests))
    assert agent.get_state(THREAD).values["eunoe_log"]["waiting"] == []
    assert caplog.text.count("2 messages are not known to be learned: AccessError") == 2


def test_what_waits_is_learned_for_whom_it_was_said(
    memory: Memory, agent_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_of(ScriptedModel("First.", "Second."), checkpointer=InMemorySaver())
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "observe", lambda *_: (_ for _ in ()).throw(StoreBusyError("busy")))
        agent.invoke(human("Anna's words."), THREAD)
    agent.invoke(human("Ben's words.", user_id="ben"), THREAD)
    assert said(memory, SCOPE) == ["user: Anna's words.", "assistant: First."]
    assert said(memory, "thread=t1/user=ben") == ["user: Ben's words.", "assistant: Second."]


def test_the_event_loop_turns_while_the_memory_works(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Event()
    context, observe = Memory.context, Memory.observe

    def wait_for_the_loop(verb: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            assert gate.wait(60)  # only the loop opens it: a blocked one never would
            gate.clear()
            return verb(*arguments, **options)

        return call

    monkeypatch.setattr(Memory, "context", wait_for_the_loop(context))
    monkeypatch.setattr(Memory, "observe", wait_for_the_loop(observe))
    agent = create_agent(
        ScriptedModel("Hello."), middleware=[MemoryMiddleware(memory, recall_seconds=90, learn_seconds=90)]
    )

    async def talk() -> None:
        run = asyncio.create_task(agent.ainvoke(human("I like tea.")))
        while not run.done():
            gate.set()
            await asyncio.sleep(0.001)
        await run

    asyncio.run(talk())
    assert said(memory) == ["user: I like tea.", "assistant: Hello."]


@pytest.mark.parametrize("is_async", [False, True])
def test_work_that_fails_after_its_deadline_is_logged(
    is_async: bool, gate: Event, caplog: pytest.LogCaptureFixture
) -> None:
    deadline = Deadline("learning", 0.01, finishes=True)

    def fail() -> None:
        gate.wait(60)
        raise StoreBusyError("secret")

    async def wait_for_it() -> None:
        with pytest.raises(TimeoutError):
            await deadline.arun(fail)

    with caplog.at_level(logging.WARNING, "eunoe"):
        if is_async:
            asyncio.run(wait_for_it())
        else:
            with pytest.raises(TimeoutError):
                deadline.run(fail)
        gate.set()
        wait_until(lambda: "StoreBusyError" in caplog.text)
    assert "secret" not in caplog.text


HANGING = """
import sys, time
from eunoe.hosts.langchain.deadline import Deadline
work = lambda: time.sleep(3600)
for number in range(12):
    try:
        Deadline("recall", 0.01, finishes=False).run(work)
    except TimeoutError:
        pass
print("end")
"""
LATE = """
import time
from pathlib import Path
from eunoe.hosts.langchain.deadline import Deadline
deadline = Deadline("learning", 0.01, finishes=True)

def work():
    time.sleep(0.2)
    print("written", flush=True)

try:
    deadline.run(work)
except TimeoutError:
    print("late", flush=True)
"""


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_work_that_hangs_does_not_keep_the_program_from_ending() -> None:
    assert run_python(HANGING) == "end\n"


def test_a_write_that_is_late_is_done_before_the_program_ends() -> None:
    assert run_python(LATE) == "late\nwritten\n"


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "eunoe-many"]


def test_there_are_no_more_threads_than_said_and_they_end_with_their_owner() -> None:
    gate = Event()
    work = Deadline("many", 60, finishes=False, threads=2)
    with ThreadPoolExecutor(5) as pool:
        done = [pool.submit(work.run, lambda: gate.wait(60)) for _ in range(5)]
        wait_until(lambda: len(names()) == 2)
        gate.set()
        assert all(each.result(60) for each in done)
    assert len(names()) == 2
    del work
    gc.collect()
    wait_until(lambda: not names())


def test_every_thread_works_while_others_hang_and_is_used_again() -> None:
    gate = Event()
    work = Deadline("many", 60, finishes=False)
    assert len({work.run(get_ident) for _ in range(20)}) == 1
    with ThreadPoolExecutor(7) as pool:
        hanging = [pool.submit(work.run, lambda: gate.wait(60)) for _ in range(7)]
        wait_until(lambda: len(names()) == 7)
        assert work.run(lambda: "done") == "done"
        assert not any(each.done() for each in hanging)
        gate.set()


def test_an_error_is_raised_for_who_waits_and_the_thread_lives_on() -> None:
    work = Deadline("many", 60, finishes=False, threads=1)
    with pytest.raises(ZeroDivisionError):
        work.run(lambda: 1 // 0)
    assert work.run(lambda: "done") == "done"
