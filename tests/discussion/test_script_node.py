"""The script node: loaded anew for each call, it reads and updates discussions."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.discussion import Discussion, script_call, script_node
from eunoe.discussion.workflow import Environment, Workflow, run_workflow
from eunoe.errors import InputError, NotAStoreError

Invoke = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def invoke(store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Invoke]:
    """Calls the file as the host does: loaded anew each time."""
    monkeypatch.setenv("EUNOE_EMBEDDER", "none")
    monkeypatch.delenv("EUNOE_LLM", raising=False)

    def call(*args: str, **kwargs: str) -> str:
        spec = importlib.util.spec_from_file_location("node", script_node.__file__)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        result = module.Invoke(*args, **{"store": store, **kwargs})
        assert isinstance(result, str)
        return result

    yield call
    script_call._stores.close()


@pytest.fixture
def settings(tmp_path: Path) -> str:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"both": True, "lookbackStartTurn": 1}))
    return str(path)


def messages(count: int) -> str:
    roles = ("user", "assistant")
    return json.dumps(
        [{"role": roles[each % 2], "content": f"Anna booked hotel Aurora number {each}."} for each in range(count)]
    )


def test_it_updates_and_reads(invoke: Invoke, settings: str) -> None:
    told = invoke("update", "trip", messages=messages(21), settings=settings)
    assert "Chunks: 8 made" in told
    assert "Aurora" in invoke("search", "trip", "Aurora; Berlin")
    assert "Aurora" in invoke("conversation", "trip", "Aurora", limit="1")
    assert "Aurora" in invoke("summary", "trip")
    assert len(invoke("recent", "trip", limit="2").split("--ChunkBreak--")) == 2
    assert len(invoke("recent", "trip", limit="-1").split("--ChunkBreak--")) == 4
    assert invoke("first", "trip", limit="1") != invoke("recent", "trip", limit="1")
    assert "No chunk was due" in invoke("update", "trip")


def test_turn_by_turn(invoke: Invoke, store: str) -> None:
    for number in range(3):
        invoke("update", "trip", user_message=f"Question {number}?", assistant_message=f"Answer {number}.")
    invoke("update", "trip", user_message="Question 2?", assistant_message="A better answer.")
    with eunoe.open(store, embedder="none") as memory:
        texts = [message.text for message in Discussion(memory, "trip").log.messages()]
    assert texts == ["Question 0?", "Answer 0.", "Question 1?", "Answer 1.", "Question 2?", "A better answer."]


def test_reading_makes_no_file_and_finds_nothing(invoke: Invoke, store: str) -> None:
    assert invoke("summary", "trip") == ""
    assert invoke("search", "trip", "Rome", host_messages="true").startswith("No relevant memories")
    assert invoke("summary", "", "") == ""
    assert not Path(store).exists()


def test_users_do_not_meet(invoke: Invoke, settings: str) -> None:
    invoke("update", "trip", messages=messages(12), settings=settings, user="anna")
    assert invoke("all", "trip", user="ben") == invoke("all", "trip") == ""
    assert invoke("all", "trip", user="anna")


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (("summary",), {}, "id of a discussion"),
        (("sumary", "trip"), {}, "there is no action"),
        (("summary", "../trip"), {}, "no id of a discussion"),
        (("recent", "trip"), {"limit": "many"}, "whole number"),
        (("recent", "trip"), {"limt": "2"}, "no option"),
        (("recent", "trip", "Rome"), {}, "takes nothing"),
        (("update", "trip"), {"messages": "Hello"}, "JSON list"),
        (("update", "trip"), {"messages": "[]", "user_message": "Hello"}, "not both"),
        (("update", "trip"), {"force": "perhaps"}, "true or false"),
        (("summary", "trip"), {"on_error": "hide"}, "on_error"),
    ],
)
def test_mistakes_are_named(invoke: Invoke, args: tuple[str, ...], kwargs: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        invoke(*args, **kwargs)


def test_an_error_is_raised_unless_an_empty_text_is_wanted(invoke: Invoke, store: str) -> None:
    Path(store).write_text("no store at all, but some text that is long enough to look at")
    with pytest.raises(NotAStoreError):
        invoke("summary", "trip")
    assert invoke("summary", "trip", on_error="empty") == ""


def test_the_store_stays_open_and_is_opened_again_when_it_was_closed(invoke: Invoke) -> None:
    invoke("update", "trip", messages=messages(4))
    (opened,) = script_call._stores._opened.values()
    invoke("summary", "trip")
    assert list(script_call._stores._opened.values()) == [opened]
    opened.close()
    assert "Aurora" in invoke("conversation", "trip", "Aurora")


def test_a_program_that_has_called_it_ends_cleanly(store: str) -> None:
    call = "Invoke('update', 'trip', store=sys.argv[1], user_message='Hi')"
    code = f"import sys; from eunoe.discussion.script_node import Invoke; {call}"
    done = subprocess.run([sys.executable, "-c", code, store], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(f"{store}-wal").exists()


def test_a_workflow_runs_it_as_a_node(invoke: Invoke, store: str) -> None:
    invoke("update", "trip", messages=messages(4))
    node: dict[str, Any] = {
        "type": "PythonModule",
        "module_path": script_node.__file__,
        "args": ["conversation", "{Discussion_Id}", "{agent1Input}"],
        "kwargs": {"store": store},
    }
    environment = Environment(allow_python=True)
    with eunoe.open(store, embedder="none") as memory:
        result = run_workflow(
            Workflow.of([node]), memory=memory, discussion_id="trip", inputs=["Aurora"], environment=environment
        )
    assert "Aurora" in result.text
