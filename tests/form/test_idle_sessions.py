"""Conversations that went quiet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import LlmError
from eunoe.form import former
from eunoe.form.consolidation import Consolidator
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope

SAID = ["I am allergic to peanuts.", "My sister lives in Oslo.", "Please be brief.", "I work as a nurse."]


def talk(number: int) -> Scope:
    return Scope(agent="cook", session=f"s{number}", user="anna")


@contextmanager
def opened(path: Path, llm: Any = "none") -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm=llm, form=False) as memory:
        yield memory


def said(number: int) -> list[str]:
    return [f"{text} {number}" for text in SAID]


def test_quiet_sessions_with_enough_messages_are_formed_and_others_are_not(path: Path) -> None:
    with opened(path) as memory:
        memory.observe(talk(1), said(1))
        memory.observe(talk(2), said(2)[:3])
        assert memory.admin.process_cold_sessions().messages == 0
        assert memory.admin.process_cold_sessions(idle=0).messages == 4
        assert memory.admin.process_cold_sessions(idle=0).messages == 0
        assert memory.status().due_messages == 3
        assert memory.admin.process_cold_sessions(idle=0, minimum=3).messages == 3


def test_what_one_session_learns_reaches_the_user(path: Path) -> None:
    with opened(path) as memory:
        memory.observe(talk(1), said(1))
        memory.admin.process_cold_sessions(idle=0)
        assert any("peanuts" in item.text for item in memory.list({"agent": "cook", "user": "anna"}, exact=True).items)


def test_one_failing_session_does_not_stop_the_others(path: Path) -> None:
    def failing(prompt: Prompt) -> Any:
        return LlmError("not this one") if "peanuts. 3" in prompt.text else {"memories": []}

    with opened(path, ScriptedLlm(failing)) as memory:
        for number in range(6):
            memory.observe(talk(number), said(number))
        report = memory.admin.process_cold_sessions(idle=0, concurrency=2)
        assert report.messages == 20
        assert len(report.failed) == 1
        assert "session=s3" in report.failed[0]
        again = memory.admin.process_cold_sessions(idle=0)
        assert (again.messages, again.failed) == (0, ())  # its time has not come
        assert memory.status().due_messages == 4


def test_a_session_with_a_job_left_behind_is_finished_but_new_messages_wait_for_the_minimum(path: Path) -> None:
    answers = iter([KeyboardInterrupt()])

    def once(prompt: Prompt) -> Any:
        return next(answers, {"memories": []})

    with opened(path, ScriptedLlm(once)) as memory:
        memory.observe(talk(1), said(1))
        with pytest.raises(KeyboardInterrupt):
            memory.form(talk(1))
        memory.observe(talk(1), ["One more."])
        assert memory.admin.process_cold_sessions(idle=0).messages == 4
        assert memory.status().due_messages == 1


def test_a_failed_job_waits_for_its_time_while_new_messages_are_formed(path: Path) -> None:
    def failing(prompt: Prompt) -> Any:
        is_one_of_these = "peanuts. 1" in prompt.text.partition("<conversation>")[2]
        return LlmError("not these") if is_one_of_these else {"memories": []}

    model = ScriptedLlm(failing)
    with opened(path, model) as memory:
        memory.observe(talk(1), said(1))
        assert memory.admin.process_cold_sessions(idle=0).failed
        asked = len(model.prompts)
        memory.observe(talk(1), said(2))
        report = memory.admin.process_cold_sessions(idle=0)
        assert (report.messages, report.failed) == (4, ())
        assert len(model.prompts) == asked + 1


def test_a_summary_that_fails_does_not_keep_others_from_their_turn(path: Path) -> None:
    def failing(prompt: Prompt) -> Any:
        return LlmError("not Anna's") if "Anna" in prompt.text else "Ben likes tea and long walks in the rain."

    with opened(path, ScriptedLlm(failing)) as memory:
        memory.streams.set_preset("user", consolidation_trigger=1)
        for name in ("Anna", "Ben"):
            memory.remember({"user": name.lower()}, f"{name} likes tea and long walks in the rain.", kind="observation")
        assert memory.admin.process_cold_sessions(limit=1).failed
        assert memory.admin.process_cold_sessions(limit=1).consolidated == (Scope(user="ben"),)


def test_no_more_sessions_at_once_than_allowed_and_no_more_in_all_than_the_limit(path: Path) -> None:
    busy, most = 0, 0
    lock, both = threading.Lock(), threading.Barrier(2, timeout=20)

    def counting(prompt: Prompt) -> Any:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        both.wait()
        with lock:
            busy -= 1
        return {"memories": []}

    with opened(path, ScriptedLlm(counting)) as memory:
        for number in range(6):
            memory.observe(talk(number), said(number))
        report = memory.admin.process_cold_sessions(idle=0, limit=4, concurrency=2)
    assert (report.messages, report.failed) == (16, ())
    assert most == 2


def test_a_summary_that_was_never_written_is_written_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = Scope(agent="cook", user="anna")
    with opened(path) as memory:
        memory.streams.set_preset("user", consolidation_trigger=1)
        memory.observe(talk(1), said(1))
        with monkeypatch.context() as stopped:
            stopped.setattr(Consolidator, "write_revision", lambda *_, **__: None)
            memory.form(talk(1))
        assert memory.summaries.revisions(user) == []
        assert user in memory.admin.process_cold_sessions().consolidated
        assert memory.summaries.revisions(user)


def test_quiet_sessions_are_tidied_by_their_settings(path: Path) -> None:
    user = Scope(agent="cook", user="anna")
    with opened(path) as memory:
        for number in range(5):
            memory.remember(user, f"Fact number {number} about Anna.")
        memory.streams.configure(user, keep_best=2)
        memory.observe(talk(1), [{"role": "assistant", "content": text} for text in said(1)])
        assert not memory.admin.process_cold_sessions(idle=0).failed
        assert len(memory.list(user, kinds=["fact"], exact=True).items) == 2


def test_a_fault_in_one_session_is_reported_with_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: former.Former, scope: Scope, *_: object, **__: object) -> FormReport:
        if scope == talk(1):
            raise ZeroDivisionError
        return FormReport(messages=4)

    monkeypatch.setattr(former.Former, "form", broken)
    with opened(path) as memory:
        for number in (1, 2):
            memory.observe(talk(number), said(number))
        report = memory.admin.process_cold_sessions(idle=0)
    assert report.messages == 4
    assert len(report.failed) == 1
    assert "session=s1" in report.failed[0]


def test_a_fault_in_the_clean_up_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(former, "apply_retention", broken)
    with opened(path) as memory:
        memory.streams.set_preset("user", keep_best=1)
        memory.observe(talk(1), said(1))
        report = memory.admin.process_cold_sessions(idle=0)
        assert report.messages == 4
        assert any("ZeroDivisionError" in fault for fault in report.failed)


def test_sessions_that_are_switched_off_do_not_stand_in_the_way(path: Path) -> None:
    with opened(path) as memory:
        for number in (1, 2, 3):
            memory.observe(talk(number), said(number))
        memory.streams.set_preset("user", is_active=False)
        for number in (1, 2):
            memory.streams.configure(talk(number), is_active=False)
        formed = sum(memory.admin.process_cold_sessions(idle=0, limit=1).messages for _ in range(3))
        assert formed == 4
        assert memory.status().due_messages == 8
