"""Workflows as they are written, where their names are found, and the models that they mean."""

import json
from pathlib import Path
from typing import Any

import pytest

from eunoe.apps.discussion.workflow.document import ModelMap, Preset, Workflow, find_workflow
from eunoe.errors import InputError, WorkflowError
from eunoe.llm.contract import Prompt, ScriptedLlm

NODE = {"type": "StaticResponse", "content": "hello"}


def write(path: Path, document: Any = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([NODE] if document is None else document))
    return path


def test_an_object_with_nodes_has_variables() -> None:
    workflow = Workflow.of({"nodes": [NODE], "persona": "a cook", "limit": 3})
    assert (workflow.nodes, workflow.variables) == ((NODE,), {"persona": "a cook", "limit": 3})


def test_the_older_list_has_none() -> None:
    workflow = Workflow.of([NODE, NODE])
    assert (len(workflow.nodes), workflow.variables) == (2, {})


@pytest.mark.parametrize("document", [{}, {"nodes": {}}, "text", 7, None, {"nodes": "x"}, [], {"nodes": []}, [NODE, 3]])
def test_anything_else_is_refused(document: Any) -> None:
    with pytest.raises(WorkflowError):
        Workflow.of(document)


def test_a_file_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(WorkflowError, match=r"broken\.json: not JSON"):
        Workflow.load(tmp_path / "broken.json")


def test_json_that_is_nested_too_deeply_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(WorkflowError, match=r"deep\.json"):
        Workflow.load(tmp_path / "deep.json")


def test_a_name_is_found_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "main.json")
    assert Workflow.load("main", tmp_path).name == "main"
    assert Workflow.load("main.json", tmp_path).path == tmp_path.resolve() / "main.json"


def test_a_name_is_found_beside_the_caller_first(tmp_path: Path) -> None:
    own, top = write(tmp_path / "anna" / "sub.json"), write(tmp_path / "sub.json")
    assert find_workflow(tmp_path, "sub", beside=tmp_path / "anna" / "main.json") == own.resolve()
    assert find_workflow(tmp_path, "sub", beside=tmp_path / "berta" / "main.json") == top.resolve()
    assert find_workflow(tmp_path, "sub", "anna") == own.resolve()


@pytest.mark.parametrize("name", ["../secret", "a/../../secret", "/etc/passwd", "link", "..", "\0"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    outside, folder = write(tmp_path / "secret.json"), tmp_path / "workflows"
    folder.mkdir()
    (folder / "link.json").symlink_to(outside)
    with pytest.raises(WorkflowError):
        find_workflow(folder, name)
    with pytest.raises(WorkflowError):
        find_workflow(folder, "secret", "..")


def test_a_folder_that_is_a_link_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "real" / "main.json")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Workflow.load("main", tmp_path / "link").name == "main"


def test_a_file_maps_endpoints_and_presets(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    endpoints = {
        "Thinker": "openai:big@http://127.0.0.1:1/v1",
        "Worker": {"model": "small", "url": "http://127.0.0.1:1/v1"},
    }
    path.write_text(json.dumps({"endpoints": endpoints, "presets": {"Creative": {"temperature": 0.9}}}))
    models = ModelMap.read(path)
    assert [getattr(models.find(name, "Creative"), "name", "") for name in endpoints] == ["openai:big", "openai:small"]


def test_a_preset_changes_how_a_model_is_asked() -> None:
    llm = ScriptedLlm(["x"])
    models = ModelMap(endpoints={"a": llm}, presets={"p": Preset(temperature=0.7, timeout=9.0)})
    found = models.find("a", "p")
    assert found is not None
    found.ask(Prompt("", "hi"))
    assert (llm.prompts[0].temperature, llm.prompts[0].timeout) == (0.7, 9.0)


def test_an_unmapped_one_is_named() -> None:
    models = ModelMap(endpoints={"a": "openai:x@http://127.0.0.1:1/v1"})
    assert models.problems("a", "") == []
    assert ["'b'" in models.problems("b", "p")[0], "'p'" in models.problems("b", "p")[1]] == [True, True]
    with pytest.raises(WorkflowError, match="'b' is not mapped"):
        models.find("b")


def test_a_star_stands_for_all() -> None:
    llm = ScriptedLlm(["x"])
    models = ModelMap(endpoints={"*": llm}, presets={"*": Preset()})
    assert models.problems("any", "thing") == []
    found = models.find("any", "thing")
    assert found is not None
    assert found.ask(Prompt("", "hi")).text == "x"


def test_no_endpoint_means_the_default() -> None:
    llm = ScriptedLlm([])
    assert ModelMap(default=llm).find() is llm
    assert ModelMap().find() is None


@pytest.mark.parametrize(
    "fields",
    [
        [],
        {"endpoint": {}},
        {"endpoints": []},
        {"endpoints": {"a": 3}},
        {"endpoints": {"a": {"url": "x"}}},
        {"presets": {"a": "hot"}},
        {"presets": {"a": {"top_p": 1}}},
        {"presets": {"a": {"temperature": "hot"}}},
        {"presets": {"a": {"max_tokens": -1}}},
        {"presets": {"a": {"model": 4}}},
    ],
)
def test_a_wrong_map_is_refused(fields: Any) -> None:
    with pytest.raises(InputError):
        ModelMap.of(fields)
