"""The script node and what docs/discussions/wilmer.md shows: each action and option is one that works."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion, plugin, script_node
from eunoe.apps.discussion.files import import_folder
from eunoe.apps.discussion.plugin import CreatorSetup, UpdateRequest, run_update, tell_update
from eunoe.apps.discussion.retrievers import DiscussionReader
from eunoe.apps.discussion.update import ChunkFailure, UpdateReport
from eunoe.apps.discussion.workflow import Environment, NodeCall, Workflow, node, run_workflow
from eunoe.apps.discussion.workflow.document import ModelMap, Preset
from eunoe.apps.discussion.workflow.node import NODE_TYPES
from eunoe.errors import ConflictError, InputError, NotAStoreError
from eunoe.server.mcp.discussion import _VARIABLES, DISCUSSION_TOOLS
from eunoe.server.mcp.server import find_profile

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
    plugin._stores.close()


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


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (("summary",), {}, "id of a discussion"),
        (("sumary", "trip"), {}, "there is no action"),
        (("summary", "../trip"), {}, "no id of a discussion"),
        (("recent", "trip"), {"limit": "many"}, "whole number"),
        (("recent", "trip"), {"limit": "--1"}, "whole number"),
        (("recent", "trip"), {"limit": "9" * 5000}, "whole number"),
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
    assert invoke("summary", "trip", on_error="tell").startswith("Error: ")


def test_the_store_stays_open_and_is_opened_again_when_it_was_closed(invoke: Invoke) -> None:
    invoke("update", "trip", messages=messages(4))
    (opened,) = plugin._stores._opened.values()
    invoke("summary", "trip")
    assert list(plugin._stores._opened.values()) == [opened]
    opened.close()
    assert "Aurora" in invoke("conversation", "trip", "Aurora")


def test_a_program_that_has_called_it_ends_cleanly(store: str) -> None:
    call = "Invoke('update', 'trip', store=sys.argv[1], user_message='Hi')"
    code = f"import sys; from eunoe.apps.discussion.script_node import Invoke; {call}"
    done = subprocess.run([sys.executable, "-c", code, store], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(f"{store}-wal").exists()


def turns(invoke: Invoke, first: int, last: int, **options: str) -> list[str]:
    """Hands in one turn after the other, as the workflow of the docs does."""
    return [
        invoke(
            "update",
            "trip",
            user_message=f"On day {day} Carla went to town {day}.",
            assistant_message=f"Town {day} is nice.",
            **options,
        )
        for day in range(first, last)
    ]


@pytest.fixture
def imported(store: str, tmp_path: Path) -> Path:
    """A store with a discussion whose messages nobody knows."""
    folder = tmp_path / "Discussions" / "trip"
    folder.mkdir(parents=True)
    (folder / "memories.json").write_text(json.dumps([{"text_block": "Ann is here.", "hash": "0" * 64}]))
    with eunoe.open(store, embedder="none", llm="none") as memory:
        import_folder(memory, folder.parent)
    return folder.parent


def test_what_is_made_by_default_is_found_by_every_action(invoke: Invoke) -> None:
    turns(invoke, 0, 10)
    assert "Carla" in invoke("search", "trip", "Carla; town 3")
    assert "Carla" in invoke("recent", "trip")


@pytest.mark.usefixtures("imported")
def test_turns_that_are_handed_in_after_an_import_go_on_behind_it(invoke: Invoke, store: str) -> None:
    assert any("made" in told for told in turns(invoke, 0, 10))
    assert invoke("all", "trip").startswith("Ann is here.")
    assert "town 0" in invoke("all", "trip")
    with eunoe.open(store, embedder="none") as memory:
        assert Discussion(memory, "trip").status().import_conflict == ""


@pytest.mark.usefixtures("imported")
def test_a_chat_without_the_place_where_an_import_ends_is_asked_for_it(invoke: Invoke, store: str) -> None:
    with pytest.raises(ConflictError, match="continue_at"):
        invoke("update", "trip", messages=messages(12))
    assert "continue_at" in turns(invoke, 0, 1, on_error="tell")[0]
    with eunoe.open(store, embedder="none") as memory:
        assert "continue_at" in Discussion(memory, "trip").status().import_conflict
    assert "made" in invoke("update", "trip", continue_at="7")
    assert "number 5" not in invoke("all", "trip")
    assert "number 6" in invoke("all", "trip")
    with eunoe.open(store, embedder="none") as memory:
        assert Discussion(memory, "trip").status().import_conflict == ""


def test_notes_and_reasons_are_told(invoke: Invoke, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"fileMemoryWorkflowName": "missing", "embeddingEndpointName": "Local"}))
    told = invoke("update", "trip", messages=messages(12), settings=str(settings), workflows=str(tmp_path))
    assert "Failed: " in told
    assert "missing" in told
    assert "Note: embeddingEndpointName is not supported" in told


def test_without_a_map_every_endpoint_means_the_own_model(invoke: Invoke, store: str, tmp_path: Path) -> None:
    settings, models = tmp_path / "settings.json", tmp_path / "models.json"
    settings.write_text(json.dumps({"endpointName": "Thinker", "preset": "Factual"}))
    assert "made" in invoke("update", "trip", messages=messages(12), settings=str(settings))
    models.write_text(json.dumps({"endpoints": {"Other": "openai:x@http://127.0.0.1:9/v1"}}))
    told = invoke("update", "work", messages=messages(12), settings=str(settings), models=str(models), on_error="tell")
    assert "'Thinker' is not mapped" in told


CHAT = [{"role": ("user", "assistant")[each % 2], "content": f"Otter {each} swims."} for each in range(12)]


@pytest.fixture
def setup(tmp_path: Path) -> CreatorSetup:
    """Settings that name a workflow, which names an endpoint and a preset."""
    node = {"type": "Standard", "endpointName": "Thinker", "preset": "Factual", "prompt": "Sum up: [TextChunk]"}
    (tmp_path / "mine.json").write_text(json.dumps([node]))
    (tmp_path / "settings.json").write_text(json.dumps({"fileMemoryWorkflowName": "mine"}))
    return CreatorSetup.read({"settings": str(tmp_path / "settings.json"), "workflows": str(tmp_path), "models": ""})


def test_without_a_map_workflows_ask_the_own_model(setup: CreatorSetup) -> None:
    with eunoe.open(":memory:", embedder="none", llm=lambda text: "Written by the own model.") as memory:
        report = run_update(Discussion(memory, "trip"), UpdateRequest.of({"messages": json.dumps(CHAT)}), setup)
        assert report.failed == ()
        assert DiscussionReader.of(memory, "trip").recent(1).text == "Written by the own model."


def test_without_any_model_a_workflow_that_needs_one_fails_by_name(setup: CreatorSetup) -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        report = run_update(Discussion(memory, "trip"), UpdateRequest.of({"messages": json.dumps(CHAT)}), setup)
    assert "mine.json" in report.failed[0].error


def test_each_reason_is_told_once() -> None:
    failed = tuple(ChunkFailure("chunk_memory", str(each), "", 1, f"no answer {each % 2}") for each in range(6))
    told = tell_update(UpdateReport(failed=failed, notes=("put off",)))
    assert told.splitlines() == ["Chunks: 6 failed.", "Failed: no answer 0", "Failed: no answer 1", "Note: put off"]


PAGE = Path(__file__).parents[3] / "docs" / "discussions" / "wilmer.md"


BLOCKS = [json.loads(each) for each in re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)]


def blocks_with(key: str) -> list[Any]:
    return [each for each in BLOCKS if key in (each[0] if isinstance(each, list) else each)]


@pytest.fixture
def python_module() -> Iterator[None]:
    """The node of WilmerAI that runs the script node."""

    @node("PythonModule", required=["module_path"], keys=["args", "kwargs"])
    def run(call: NodeCall) -> str:
        assert call.render("module_path").endswith("script_node.py")
        given = {name: call.render_text(text) for name, text in call.node["kwargs"].items()}
        return script_node.Invoke(*call.texts("args"), **given)

    yield
    del NODE_TYPES["PythonModule"]


@pytest.mark.usefixtures("python_module")
def test_the_workflow_of_script_nodes_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUNOE_EMBEDDER", "none")
    monkeypatch.delenv("EUNOE_LLM", raising=False)
    store = str(tmp_path / "store.db")
    (nodes,) = [each for each in BLOCKS if isinstance(each, list) and each[0]["type"] == "Standard"]
    for each in nodes:
        if each["type"] == "PythonModule":
            each["kwargs"] = {**each["kwargs"], "store": store, "on_error": "raise"}
    models = ModelMap(endpoints={"*": lambda text: "Rome; hotel"}, presets={"*": Preset()})
    environment = Environment(models=models)
    with eunoe.open(":memory:", embedder="none", llm="none") as host:
        for day in (*range(20), 19):
            chat = [{"role": "user", "content": f"[DiscussionId]trip[/DiscussionId]On day {day} we fly to Rome."}]
            result = run_workflow(Workflow.of(nodes), memory=host, messages=chat, environment=environment)
    plugin._stores.close()
    assert result.text == "Rome; hotel"
    outputs = {each.title: each.output for each in result.trace}
    assert "fly to Rome" in outputs["Memories"]
    assert "fly to Rome" in outputs["Summary"]
    with eunoe.open(store, embedder="none") as memory:
        log = Discussion(memory, "trip").log.messages()
    assert [each.text for each in log[::2]] == [f"On day {day} we fly to Rome." for day in range(20)]


def test_the_actions_and_options_are_those_of_the_script_node() -> None:
    rows = re.findall(r"^\| `(\w+)`", PAGE.read_text(), re.MULTILINE)
    actions = [*plugin.RETRIEVERS, "update"]
    assert set(rows) >= set(actions)
    named = set(re.findall(r"`(\w+)`", PAGE.read_text()))
    assert named >= {*plugin._READ_OPTIONS, *plugin._UPDATE_OPTIONS}


def test_the_nodes_for_mcp_call_tools_that_are_there() -> None:
    tools = {tool.name: tool for tool in DISCUSSION_TOOLS}
    nodes = [node for block in BLOCKS if isinstance(block, list) for node in block if node["type"] == "MCPToolCall"]
    assert len(nodes) == 3
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE))
    assert set(tools) <= set(rows)
    assert {rows[name] for name in tools} == {*plugin.RETRIEVERS, "update"}
    for each in nodes:
        tool = tools[each["tool"]]
        assert set(each["arguments"]) <= set(tool.arguments)
        assert set(tool.required) <= set(each["arguments"])


def test_the_server_settings_name_the_profile() -> None:
    (stdio,) = blocks_with("command")
    assert stdio["args"][:3] == ["mcp", "--profile", find_profile("discussion").name]
    assert set(_VARIABLES.values()) <= set(re.findall(r"`(\w+)`", PAGE.read_text()))
    (http,) = blocks_with("url")
    assert http["url"].endswith("/mcp/discussion")


def test_the_map_of_models_is_one() -> None:
    (fields,) = blocks_with("endpoints")
    models = ModelMap.of(fields)
    assert models.problems("Thinker", "Factual") == models.problems("Else", "Other") == []
