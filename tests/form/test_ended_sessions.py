"""Conversations that never become due: formed when they go quiet, when the next one begins, when the memory closes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.form import background
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.scope import Scope

FIRST = Scope(agent="cook", session="s1", user="anna")
SECOND = Scope(agent="cook", session="s2", user="anna")
OTHERS = Scope(agent="cook", session="s3", user="ben")
GROUP = Scope(agent="cook", session="g1")
ANNA = Scope(agent="cook", user="anna")
SAID = ["I am allergic to peanuts.", *(f"Yes, number {number}." for number in range(39))]
NEVER = 100_000.0


def opened(path: Path, llm: Any = "none", idle: float = NEVER, form: Any = True) -> Memory:
    memory = eunoe.open(path, embedder="none", llm=llm, form=form)
    memory.streams.set_preset("session", formation_idle_seconds=idle)
    return memory


def learned(path: Path, *scopes: Scope) -> str:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        kinds: Any = ["fact", "observation"]
        return " ".join(item.text for scope in scopes or [FIRST] for item in memory.list(scope, kinds=kinds).items)


def due(path: Path) -> int:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        return memory.status().due_messages


def notes(event: threading.Event) -> Callable[[Prompt], Any]:
    def answer(prompt: Prompt) -> Any:
        event.set()
        return {"memories": []} if prompt.operation == "extraction" else "Nothing."

    return answer


class TestQuiet:
    def test_forty_short_turns_are_formed_once_it_is_quiet(self, path: Path) -> None:
        asked = threading.Event()
        with opened(path, ScriptedLlm(notes(asked)), idle=0.05) as memory:
            memory.observe(FIRST, SAID)
            assert asked.wait(20)
            assert memory.flush(20)
            assert memory.status().due_messages == 0

    def test_nothing_is_formed_while_it_goes_on(self, path: Path) -> None:
        llm = ScriptedLlm(notes(threading.Event()))
        memory = opened(path, llm, idle=NEVER)
        for text in SAID:
            memory.observe(FIRST, [text])
        assert memory.flush(20)
        assert llm.prompts == []
        assert memory.status().due_messages == 40
        memory.close()

    def test_too_few_messages_wait(self, path: Path) -> None:
        with opened(path, idle=0.01) as memory:
            memory.observe(FIRST, SAID[:3])
            running = memory._engine.background
            assert running
            assert (FIRST, "idle") not in running.work.due
        assert due(path) == 3

    def test_each_message_puts_it_off(self, path: Path) -> None:
        with opened(path, idle=500) as memory:
            memory.observe(FIRST, SAID[:4])
            running = memory._engine.background
            assert running
            first = running.work.due[FIRST, "idle"]
            memory.observe(FIRST, SAID[4:5])
            assert running.work.due[FIRST, "idle"] > first
            assert [thread.name for thread in threading.enumerate()].count("eunoe-form") == 1
        assert "eunoe-form" not in [thread.name for thread in threading.enumerate()]

    def test_a_shorter_wait_is_not_kept_up_by_a_longer_one(self, path: Path) -> None:
        asked = threading.Event()
        with opened(path, ScriptedLlm(notes(asked))) as memory:
            memory.observe(FIRST, SAID[:5])
            memory.streams.set_preset("session", formation_idle_seconds=0.05)
            memory.observe(OTHERS, SAID[:5])
            assert asked.wait(20)
            assert memory.flush(20)
            assert memory.status().due_messages == 5

    def test_one_that_another_process_goes_on_with_is_not_quiet(self, path: Path) -> None:
        with opened(path) as memory, opened(path, form=False) as other:
            memory.observe(FIRST, SAID[:5])
            other.observe(FIRST, SAID[5:7])
            running = memory._engine.background
            assert running
            running.add(FIRST, "idle")
            assert memory.flush(20)
            assert memory.status().due_messages == 7
            assert (FIRST, "idle") in running.work.due

    def test_zero_switches_it_off(self, path: Path) -> None:
        with opened(path, idle=0) as memory:
            memory.observe(FIRST, SAID)
            running = memory._engine.background
            assert running
            assert (FIRST, "idle") not in running.work.due


class TestNext:
    def test_the_next_session_of_a_user_ends_the_one_before(self, path: Path) -> None:
        with opened(path) as memory:
            memory.observe(FIRST, SAID)
            memory.observe(OTHERS, SAID)
            memory.observe(SECOND, ["Hello again."])
            assert memory.flush(20)
            assert "peanuts" in memory.context(SECOND).static
            assert memory.status().due_messages == 41

    def test_also_one_that_a_killed_process_left(self, path: Path) -> None:
        script = """
import os, sys, eunoe
memory = eunoe.open(sys.argv[1], embedder="none", llm="none")
memory.observe(sys.argv[2], ["I am allergic to peanuts.", "Yes.", "No.", "Maybe so.", "Fine."])
os._exit(1)
"""
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        killed = subprocess.run([sys.executable, "-c", script, str(path), str(FIRST)], env=env, timeout=60, check=False)
        assert killed.returncode == 1
        assert due(path) == 5
        with opened(path) as memory:
            memory.observe(SECOND, ["Hello again."])
            assert memory.flush(20)
            assert "peanuts" in memory.context(SECOND).static

    def test_a_group_that_goes_on_is_left_alone(self, path: Path) -> None:
        with opened(path) as memory:
            turns = [
                {"role": "user", "user": who, "content": f"Number {n}"} for n, who in enumerate(["anna", "ben"] * 4)
            ]
            memory.observe(GROUP, turns)
            memory.observe(SECOND, ["Hello."])
            assert memory.flush(20)
            assert memory.status().due_messages == 9

    def test_other_tenants_have_nothing_to_do_with_it(self, path: Path) -> None:
        with opened(path) as memory:
            memory.observe(FIRST.extended({"tenant": "a"}), SAID)
            memory.observe(SECOND.extended({"tenant": "b"}), ["Hello."])
            assert memory.flush(20)
            assert memory.status().due_messages == 41


class TestClose:
    def test_closing_forms_what_is_held(self, path: Path) -> None:
        with opened(path) as memory:
            memory.observe(FIRST, SAID)
            memory.observe(OTHERS, SAID)
        assert due(path) == 0
        assert "peanuts" in learned(path, ANNA)

    def test_also_when_the_process_just_ends(self, path: Path) -> None:
        script = """
import sys, eunoe
memory = eunoe.open(sys.argv[1], embedder="none", llm="none")
memory.streams.set_preset("session", formation_messages=4)
memory.observe(sys.argv[2], ["I am allergic to peanuts.", "Yes.", "No.", "Maybe so.", "Fine."])
"""
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-c", script, str(path), str(FIRST)], env=env, timeout=60, check=True)
        assert due(path) == 0

    @pytest.mark.parametrize("form", [False, "due"])
    def test_not_where_nobody_wants_it(self, path: Path, form: Any) -> None:
        with opened(path, idle=0.01, form=form) as memory:
            memory.observe(FIRST, SAID)
        assert due(path) == 40

    def test_a_model_that_hangs_is_left(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(background, "CLOSE_SECONDS", 0.1)
        asked, answer = threading.Event(), threading.Event()

        def hang(prompt: Prompt) -> Any:
            asked.set()
            assert answer.wait(60)
            return {"memories": []}

        with opened(path, ScriptedLlm(hang)) as memory:
            memory.observe(FIRST, SAID)
            running = memory._engine.background
            assert running
        assert asked.wait(20)
        assert due(path) == 40
        answer.set()
        assert running.flush(20)
        assert due(path) == 40

    def test_what_is_not_begun_in_time_stays_due(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(background, "CLOSE_SECONDS", 0.0)
        llm = ScriptedLlm(notes(threading.Event()))
        with opened(path, llm) as memory:
            memory.observe(FIRST, SAID)
        assert llm.prompts == []
        assert due(path) == 40

    def test_a_process_ends_though_its_model_hangs(self, path: Path) -> None:
        script = """
import sys, threading, eunoe
from eunoe.form import background
background.CLOSE_SECONDS = 0.1
memory = eunoe.open(sys.argv[1], embedder="none", llm=lambda text: threading.Event().wait())
memory.observe(sys.argv[2], ["I am allergic to peanuts.", "Yes.", "No.", "Maybe so.", "Fine."])
if sys.argv[3] == "closed":
    memory.close()
"""
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        for end in ("closed", "open"):
            command = [sys.executable, "-c", script, str(path), str(FIRST), end]
            subprocess.run(command, env=env, timeout=60, check=True)
        assert due(path) == 5


@pytest.mark.parametrize("form", [None, "yes", 1, "idle"])
def test_another_wish_is_refused(path: Path, form: Any) -> None:
    with pytest.raises(InputError, match="form is"):
        eunoe.open(path, embedder="none", llm="none", form=form)


def test_the_command_line_leaves_a_talk_that_goes_on_alone(path: Path) -> None:
    command = [sys.executable, "-m", "eunoe", "observe", str(FIRST), "-", "--store", str(path), "--embedder", "none"]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "EUNOE_LLM": ""}
    for lines in (SAID[:5], SAID[5:7]):
        subprocess.run(command, input="\n".join(lines), text=True, env=env, timeout=60, check=True)
    assert due(path) == 7
    command[4] = str(SECOND)
    subprocess.run(command, input="Hello again.", text=True, env=env, timeout=60, check=True)
    assert due(path) == 1
    assert "peanuts" in learned(path, ANNA)
