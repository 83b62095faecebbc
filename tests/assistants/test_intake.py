"""What hooks leave is taken in once, whoever does it and however often it is interrupted."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.hooks import HookRunner
from tests.support.live_server import LiveServer

import eunoe
from eunoe.assistants.hook import hook_folder, read_event, spool_folder, write_to_spool
from eunoe.assistants.intake import read_notes, take_in, waiting_events
from eunoe.errors import StoreFullError
from eunoe.memory import Memory
from eunoe.server.config import ServerConfig


def leave(store: Path, text: str, **changes: Any) -> Path:
    """Leave an event as a hook does."""
    options = {"event": "prompt", "assistant": "codex", "scope": "user=anna"}
    event = read_event(json.dumps({"session_id": "s1", "prompt": text}).encode(), options)
    write_to_spool(str(store), event | changes)
    return waiting_events(str(store))[-1]


def test_an_event_that_comes_back_is_not_stored_twice(run_hook: HookRunner) -> None:
    event = leave(run_hook.store, "I moved to Rome.")
    content = event.read_bytes()
    assert take_in(str(run_hook.store)) == 1
    event.write_bytes(content)  # as if the process had been killed before it removed it
    assert take_in(str(run_hook.store)) == 1
    assert run_hook.messages() == [("user", "I moved to Rome.")]


def test_the_same_words_said_twice_are_two_messages(run_hook: HookRunner) -> None:
    leave(run_hook.store, "yes")
    leave(run_hook.store, "yes")
    assert run_hook.messages() == [("user", "yes"), ("user", "yes")]


def test_a_store_that_fails_keeps_the_events_in_order(run_hook: HookRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        leave(run_hook.store, f"Message {number}.")
    with eunoe.open(run_hook.store, embedder="none", form=False) as memory:
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise StoreFullError("no room")

            patch.setattr(Memory, "observe", fail)
            assert take_in(str(run_hook.store), memory) == 0
        assert len(waiting_events(str(run_hook.store))) == 3
        assert read_notes(Path(hook_folder(str(run_hook.store))))["codex"]["error"] == "StoreFullError"
        assert take_in(str(run_hook.store), memory) == 3
    assert [text for _, text in run_hook.messages()] == ["Message 0.", "Message 1.", "Message 2."]
    assert read_notes(Path(hook_folder(str(run_hook.store))))["codex"]["error"] == ""


@pytest.mark.parametrize(
    "changes", [{"scope": "no scope"}, {"time": "soon"}, {"prompt": None}, {"session": 5}, {"assistant": ["x"]}]
)
def test_an_event_that_cannot_be_read_is_set_aside(run_hook: HookRunner, changes: dict[str, Any]) -> None:
    leave(run_hook.store, "broken", **changes)
    leave(run_hook.store, "I moved to Rome.")
    assert take_in(str(run_hook.store)) == 2
    assert [path.suffix for path in Path(spool_folder(str(run_hook.store))).iterdir()] == [".refused"]
    assert run_hook.messages() == [("user", "I moved to Rome.")]


def test_half_a_character_is_replaced(run_hook: HookRunner) -> None:
    leave(run_hook.store, "I moved \ud83d to Rome.")
    assert run_hook.messages() == [("user", "I moved ? to Rome.")]


def test_a_huge_text_becomes_several_messages(run_hook: HookRunner) -> None:
    leave(run_hook.store, "a" * 500_000 + "b")
    assert [len(text) for _, text in run_hook.messages()] == [500_000, 1]


def test_a_long_transcript_is_stored_whole(run_hook: HookRunner, tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    rows = [{"type": "user", "message": {"content": f"Message {number}."}} for number in range(1_250)]
    transcript.write_text("".join(json.dumps(row) + "\n" for row in rows))
    leave(run_hook.store, "", assistant="claude-code", transcript=str(transcript))
    assert take_in(str(run_hook.store)) == 1
    with eunoe.open(run_hook.store, embedder="none", form=False) as memory:
        assert memory.status().messages == 1_250


def test_notes_hold_nothing_that_was_said(run_hook: HookRunner) -> None:
    leave(run_hook.store, "I moved to Rome.")
    run_hook.settle()
    files = [path for path in Path(hook_folder(str(run_hook.store))).rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if b"Rome" in path.read_bytes()] == []
    assert {path.stat().st_mode & 0o077 for path in files if path.suffix == ".json"} == {0}


def test_one_process_takes_in_at_a_time(run_hook: HookRunner) -> None:
    event = leave(run_hook.store, "I moved to Rome.")
    with open(Path(hook_folder(str(run_hook.store))) / "intake.lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert take_in(str(run_hook.store)) == 0
        assert event.exists()
    assert take_in(str(run_hook.store)) == 1


def test_sessions_of_long_ago_are_not_kept(run_hook: HookRunner) -> None:
    leave(run_hook.store, "I moved to Rome.")
    run_hook.settle()
    (known,) = Path(hook_folder(str(run_hook.store))).glob("sessions/*")
    os.utime(known, (0, 0))
    leave(run_hook.store, "Hello.", session="s2")
    run_hook.settle()
    assert not known.exists()


def test_a_running_server_is_handed_the_messages(run_hook: HookRunner) -> None:
    config = ServerConfig(target=str(run_hook.store), embedder="none", llm="none", port=0, worker=False)
    server = LiveServer(config)
    server.services.write_address(server.origin)
    try:
        with eunoe.connect(server.origin, server.owner) as memory:
            memory.remember("user=anna", "Anna likes green tea.")
            run_hook("prompt", {"session_id": "s1", "prompt": "I moved to Rome."}, "codex")
            run_hook.settle()
            found = memory.list("user=anna/session=s1").items
            answer = run_hook("start", {"session_id": "s2"}, "codex")
    finally:
        server.stop()
    assert [item.text for item in found] == ["I moved to Rome."]
    assert "Anna likes green tea." in json.loads(answer)["hookSpecificOutput"]["additionalContext"]
