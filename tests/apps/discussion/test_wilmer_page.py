"""The nodes and settings that docs/discussions/wilmer.md shows are ones that work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion, plugin, script_node
from eunoe.apps.discussion.workflow import Environment, NodeCall, Workflow, node, run_workflow
from eunoe.apps.discussion.workflow.document import ModelMap, Preset
from eunoe.apps.discussion.workflow.node import NODE_TYPES
from eunoe.server.mcp.discussion import _VARIABLES, DISCUSSION_TOOLS
from eunoe.server.mcp.server import find_profile

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
