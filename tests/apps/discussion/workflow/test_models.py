"""Endpoints and presets, and the models that they mean."""

import json
from pathlib import Path
from typing import Any

import pytest

from eunoe.apps.discussion.workflow.document import ModelMap, Preset
from eunoe.errors import InputError, WorkflowError
from eunoe.llm.contract import Prompt, ScriptedLlm


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
