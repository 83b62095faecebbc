"""Hooks as real processes: they leave in time, lose nothing, and never trouble the assistant."""

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.hooks import HookRunner

import eunoe
from eunoe.assistants.hook import hook_folder, spool_folder
from eunoe.assistants.intake import read_notes, take_in, waiting_events
from eunoe.assistants.recall import is_worth_waiting


def prompt(text: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": text, **fields}


def start(name: str = "SessionStart") -> dict[str, str]:
    return {"session_id": "s1", "hook_event_name": name, "source": "startup"}


def line(role: str, text: object) -> str:
    row = {"type": role, "timestamp": "2026-11-16T08:00:00Z", "message": {"role": role, "content": text}}
    return json.dumps(row) + "\n"


def remember(store: Path) -> None:
    with eunoe.open(store, embedder="none") as memory:
        memory.remember("user=anna", "Anna likes green tea.")


def test_a_prompt_is_captured(run_hook: HookRunner) -> None:
    assert run_hook("prompt", prompt("I moved to Rome.")) == b""
    assert run_hook.messages() == [("user", "I moved to Rome.")]


def test_a_transcript_is_read_once(run_hook: HookRunner, tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    names = {"transcript_path": str(transcript)}
    transcript.write_text(line("user", "Hello.") + line("assistant", [{"type": "text", "text": "Hi!"}]))
    run_hook("prompt", prompt("I moved to Rome.", **names))
    run_hook.settle()
    with transcript.open("a") as file:
        file.write(line("user", "I moved to Rome.") + line("assistant", "Noted.") + line("user", "yes"))
    run_hook("compaction", prompt("", **names))
    run_hook("answer", prompt("", **names, last_assistant_message="Noted."))
    run_hook("prompt", prompt("yes", **names))
    with transcript.open("a") as file:
        file.write(line("assistant", "Good.") + line("user", "yes"))
    run_hook("end", prompt("", **names))
    assert run_hook.messages() == [
        ("user", "Hello."),
        ("assistant", "Hi!"),
        ("user", "I moved to Rome."),
        ("assistant", "Noted."),
        ("user", "yes"),
        ("assistant", "Good."),
        ("user", "yes"),
    ]


def test_a_transcript_that_vanishes_or_is_cut_stores_nothing_twice(run_hook: HookRunner, tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    names = {"transcript_path": str(transcript)}
    said = line("user", "Hello.") + line("assistant", "Hi!")
    transcript.write_text(said + line("user", "Bye."))
    run_hook("prompt", prompt("Bye.", **names))
    run_hook.settle()
    transcript.unlink()
    run_hook("answer", prompt("", **names, last_assistant_message="See you."))
    run_hook.settle()
    transcript.write_text(said)
    run_hook("end", prompt("", **names))
    assert run_hook.messages() == [
        ("user", "Hello."),
        ("assistant", "Hi!"),
        ("user", "Bye."),
        ("assistant", "See you."),
    ]


@pytest.mark.parametrize(
    ("assistant", "asked", "answered"),
    [
        ("codex", {"session_id": "s1", "prompt": "Q"}, {"session_id": "s1", "last_assistant_message": "A"}),
        ("cursor", {"conversation_id": "s1", "prompt": "Q"}, {"conversation_id": "s1", "text": "A"}),
        ("gemini", {"session_id": "s1", "prompt": "Q"}, {"session_id": "s1", "prompt": "Q", "prompt_response": "A"}),
        (
            "windsurf",
            {"trajectory_id": "s1", "tool_info": {"user_prompt": "Q"}},
            {"trajectory_id": "s1", "tool_info": {"response": "A"}},
        ),
    ],
)
def test_events_of_each_assistant_are_understood(
    run_hook: HookRunner, assistant: str, asked: object, answered: object
) -> None:
    run_hook("prompt", asked, assistant)
    run_hook("answer", answered, assistant)
    assert run_hook.messages() == [("user", "Q"), ("assistant", "A")]


def test_what_is_private_is_not_even_in_the_spool(run_hook: HookRunner) -> None:
    with sqlite3.connect(run_hook.store) as holder:
        holder.execute("BEGIN IMMEDIATE")  # so that the event waits
        run_hook("prompt", prompt("My pin <private>is 1234</private> is safe. <private>5678"))
        (event,) = waiting_events(str(run_hook.store))
        content = event.read_text()
        assert event.stat().st_mode & 0o777 == 0o600
        assert event.parent.parent.stat().st_mode & 0o777 == 0o700
        holder.rollback()
    holder.close()
    assert "1234" not in content
    assert "5678" not in content
    assert run_hook.messages() == [("user", "My pin  is safe.")]


def test_a_hook_leaves_while_the_store_is_locked_and_nothing_is_lost(run_hook: HookRunner) -> None:
    remember(run_hook.store)
    with sqlite3.connect(run_hook.store) as holder:
        holder.execute("BEGIN IMMEDIATE")
        run_hook("start", start())
        run_hook("prompt", prompt("I moved to Rome."))
        run_hook("end", prompt(""))
        assert holder.in_transaction
        assert len(waiting_events(str(run_hook.store))) == 2
        holder.rollback()
    holder.close()
    assert run_hook.messages() == [("user", "I moved to Rome.")]


def test_a_damaged_store_costs_nothing_but_time(run_hook: HookRunner) -> None:
    content = run_hook.store.read_bytes()
    run_hook.store.write_bytes(b"no store" * 100)
    assert run_hook("start", start()) == b""
    run_hook("prompt", prompt("I moved to Rome."))
    assert take_in(str(run_hook.store)) == 0
    assert read_notes(Path(hook_folder(str(run_hook.store))))["unknown"]["error"] == "NotAStoreError"
    run_hook.store.write_bytes(content)
    assert run_hook.messages() == [("user", "I moved to Rome.")]


def test_ten_at_once(run_hook: HookRunner) -> None:
    processes = [run_hook.start("prompt") for _ in range(10)]
    for number, process in enumerate(processes):
        assert process.stdin
        process.stdin.write(json.dumps(prompt(f"Message {number}.")).encode())
        process.stdin.close()
        process.stdin = None
    assert [process.communicate() for process in processes] == [(b"", b"")] * 10
    assert [process.returncode for process in processes] == [0] * 10
    assert sorted(run_hook.messages()) == [("user", f"Message {number}.") for number in range(10)]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b'{"a": ', b"\xff\xfe", b"[" * 100_000, b'{"session_id": 5, "prompt": {}}']
)
def test_nonsense_is_passed_over(run_hook: HookRunner, content: bytes) -> None:
    for event in ("start", "prompt", "answer"):
        assert run_hook(event, content) == b""
    assert run_hook.messages() == []


def test_an_assistant_that_never_closes_the_input_is_left(run_hook: HookRunner) -> None:
    process = run_hook.start("prompt")
    assert process.wait(timeout=60) == 0
    assert process.communicate() == (b"", b"")


def test_words_it_does_not_know_are_no_error(run_hook: HookRunner) -> None:
    assert run_hook("dance", prompt("x")) == b""
    assert not Path(spool_folder(str(run_hook.store))).exists()


def test_modules_in_the_project_are_not_run(run_hook: HookRunner) -> None:
    (run_hook.folder / "eunoe").mkdir()
    for name in ("json.py", "typing.py", "numpy.py", "eunoe/__init__.py"):
        (run_hook.folder / name).write_text("open('evil', 'w')")
    run_hook("start", start())
    run_hook("prompt", prompt("I moved to Rome."))
    assert run_hook.messages() == [("user", "I moved to Rome.")]
    assert not (run_hook.folder / "evil").exists()


@pytest.mark.parametrize("assistant", ["claude-code", "codex", "gemini"])
def test_what_is_remembered_is_said_at_the_start(run_hook: HookRunner, assistant: str) -> None:
    remember(run_hook.store)
    answer = json.loads(run_hook("start", start(), assistant))
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "Anna likes green tea." in answer["hookSpecificOutput"]["additionalContext"]


def test_cursor_takes_it_in_another_form(run_hook: HookRunner) -> None:
    remember(run_hook.store)
    answer = json.loads(run_hook("start", start("sessionStart"), "cursor"))
    assert list(answer) == ["additional_context"]
    assert "Anna likes green tea." in answer["additional_context"]


def test_an_empty_memory_says_nothing(run_hook: HookRunner) -> None:
    assert run_hook("start", start()) == b""


def test_what_was_late_at_the_start_comes_with_the_first_prompt(run_hook: HookRunner) -> None:
    remember(run_hook.store)
    run_hook.start_late_child("s1")
    with eunoe.open(run_hook.store, embedder="none") as memory:
        memory.forget("user=anna", everything=True)
        memory.remember("user=anna", "Anna likes black coffee.")
    answer = json.loads(run_hook("prompt", prompt("Hello.")))
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert "black coffee" in answer["hookSpecificOutput"]["additionalContext"]
    assert "green tea" not in answer["hookSpecificOutput"]["additionalContext"]
    assert run_hook.late_children[0].wait(60) == 0
    assert run_hook("prompt", prompt("And again.")) == b""


def test_nobody_waits_for_a_prompt_that_was_quicker(run_hook: HookRunner) -> None:
    remember(run_hook.store)
    run_hook("prompt", prompt("Hello."))
    run_hook.settle()
    event = {"assistant": "claude-code", "scope": "user=anna", "session": "s1", "time": 0.0}
    assert not is_worth_waiting(str(run_hook.store), event)
    assert not is_worth_waiting(str(run_hook.store), event | {"session": "s1", "time": time.time() - 60})
    assert is_worth_waiting(str(run_hook.store), event | {"session": "s2"})
    for number in range(8):
        (Path(hook_folder(str(run_hook.store))) / f"late-{number}").touch()
    assert not is_worth_waiting(str(run_hook.store), event | {"session": "s2"})
    assert is_worth_waiting(str(run_hook.store), event | {"session": "s2", "time": time.time() + 3600})


def test_the_end_of_a_session_ends_the_wait(run_hook: HookRunner) -> None:
    remember(run_hook.store)
    late = run_hook.start_late_child("s1")
    assert run_hook("end", prompt("")) == b""
    assert run_hook.late_children[0].wait(60) == 0
    assert not late.exists()


def test_what_was_recalled_is_not_learned_again(run_hook: HookRunner, tmp_path: Path) -> None:
    remember(run_hook.store)
    answer = json.loads(run_hook("start", start()))
    context = answer["hookSpecificOutput"]["additionalContext"]
    transcript = tmp_path / "t.jsonl"
    tool_result = [{"type": "tool_result", "content": "Anna likes green tea."}]
    reminder = f"<system-reminder>{context}</system-reminder>What shall I drink?"
    transcript.write_text(line("user", reminder) + line("user", tool_result) + line("assistant", f"{context} Tea!"))
    run_hook("prompt", prompt(f"What shall I drink? {context}", transcript_path=str(transcript)))
    run_hook("end", prompt("", transcript_path=str(transcript)))
    assert run_hook.messages() == [("user", "What shall I drink?"), ("assistant", "Tea!")]


def test_the_command_line_does_the_same(run_hook: HookRunner) -> None:
    command = ["hook", "prompt", "--assistant", "Claude Code", "--scope", "user=anna", "--store", str(run_hook.store)]
    content = json.dumps(prompt("I moved to Rome.")).encode()
    words = [sys.executable, "-P", "-m", "eunoe", *command]
    done = subprocess.run(words, input=content, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    assert run_hook.messages() == [("user", "I moved to Rome.")]
