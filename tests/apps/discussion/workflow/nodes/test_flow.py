"""Workflows that call others."""

from pathlib import Path
from typing import Any

import pytest
from tests.apps.discussion.workflow.conftest import Write

from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, run_workflow
from eunoe.apps.discussion.workflow.document import MAX_DEPTH
from eunoe.errors import WorkflowError
from eunoe.llm.contract import ScriptedLlm


def say(text: str) -> dict[str, Any]:
    return {"type": "StaticResponse", "content": text}


def call(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "CustomWorkflow", "workflowName": name, **fields}


def test_a_called_workflow_gets_scoped_variables_and_the_chat(write: Write) -> None:
    write("sub", {"nodes": [say("{agent1Input}+{agent2Input}+{chat_user_prompt_last_one}+{own}")], "own": "o"})
    main = write(
        "main", {"nodes": [say("A"), call("sub", scoped_variables=["{agent1Output}", "{mine}"])], "mine": "{m}"}
    )
    result = run_workflow(main, messages=["hi"])
    assert result.text == "A+{m}+hi+o"
    assert [trace.workflow for trace in result.trace] == ["main", "main -> sub", "main"]


def test_variables_and_outputs_of_the_caller_are_not_seen(write: Write) -> None:
    write("sub", [say("{mine}")])
    main = write("main", {"nodes": [call("sub")], "mine": "x"})
    with pytest.raises(WorkflowError, match=r"sub\.json \(called by main\): node 1 .*\{mine\} is no placeholder"):
        run_workflow(main)


def test_the_first_prompt_may_be_overridden(write: Write) -> None:
    llm = ScriptedLlm(["x"])
    write("sub", [{"type": "Standard", "prompt": "old", "systemPrompt": "old"}])
    main = write("main", [call("sub", firstNodePromptOverride="new {agent1Input}", scoped_variables=["in"])])
    run_workflow(main, environment=Environment(models=ModelMap(default=llm)))
    assert (llm.prompts[0].text, llm.prompts[0].system) == ("new in", "old")


@pytest.mark.parametrize("key", ["workflowUserFolderOverride", "folder"])
def test_a_folder_may_be_named(write: Write, tmp_path: Path, key: str) -> None:
    write("sub", [say("top")])
    write("shared/sub", [say("shared")])
    main = write("main", [call("sub", **{key: "shared"}), call("sub"), say("{agent1Output} {agent2Output}")])
    assert run_workflow(main, environment=Environment(workflows=tmp_path / "workflows")).text == "shared top"


def test_a_missing_one_shows_the_chain(write: Write) -> None:
    write("middle", [call("gone")])
    with pytest.raises(WorkflowError, match=r"no workflow 'gone' in .*: main -> middle -> gone"):
        run_workflow(write("main", [call("middle")]))


def test_a_recursive_one_shows_the_chain(write: Write) -> None:
    write("b", [call("a")])
    with pytest.raises(WorkflowError, match=r"calls itself: a -> b -> a"):
        run_workflow(write("a", [call("b")]))
    with pytest.raises(WorkflowError, match=r"calls itself: self -> self"):
        run_workflow(write("self", [call("{agent1Input}")]), inputs=["./self"])


def test_a_chain_that_is_too_long_ends(write: Write) -> None:
    for number in range(MAX_DEPTH + 2):
        write(f"w{number}", [call(f"w{number + 1}")])
    with pytest.raises(WorkflowError, match=f"more than {MAX_DEPTH} workflows"):
        run_workflow(write("w0", [call("w1")]))


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", ""])
def test_a_name_leads_nowhere_else(write: Write, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.json").write_text("[]")
    with pytest.raises(WorkflowError, match=r"main\.json: node 1"):
        run_workflow(write("main", [call("{agent1Input}")]), inputs=[name])


def test_a_workflow_without_a_file_has_no_folder() -> None:
    with pytest.raises(WorkflowError, match="--workflows"):
        run_workflow(Workflow.of([call("x")]))


@pytest.mark.parametrize(
    ("value", "result"), [("python", "py:P"), (" PYTHON\n", "py:P"), ("rust", "other:D"), ("default", "other:D")]
)
def test_a_condition_chooses_the_workflow(write: Write, value: str, result: str) -> None:
    write("py", [say("py:{agent1Input}")])
    write("other", [say("other:{agent1Input}")])
    node = {
        "type": "ConditionalCustomWorkflow",
        "conditionalKey": "{agent1Input}",
        "conditionalWorkflows": {"Python": "py", "Default": "other"},
        "scoped_variables": ["P" if result.startswith("py") else "D"],
    }
    assert run_workflow(write("main", [node]), inputs=[value]).text == result


def test_a_condition_without_a_way_is_an_error(write: Write) -> None:
    node = {"type": "ConditionalCustomWorkflow", "conditionalKey": "x", "conditionalWorkflows": {"y": "y"}}
    with pytest.raises(WorkflowError, match="neither 'x' nor Default"):
        run_workflow(write("main", [node]))
    with pytest.raises(WorkflowError, match="must be an object"):
        run_workflow(write("main", [{**node, "conditionalWorkflows": ["y"]}]))


def test_a_route_may_have_prompts_or_a_text_of_its_own(write: Write) -> None:
    llm = ScriptedLlm(["x"])
    write("sub", [{"type": "Standard", "prompt": "old"}])
    node = {
        "type": "ConditionalCustomWorkflow",
        "conditionalKey": "{agent1Input}",
        "conditionalWorkflows": {"A": "sub"},
        "routeOverrides": {"a": {"systemPromptOverride": "sys", "promptOverride": "new"}},
        "UseDefaultContentInsteadOfWorkflow": "none for {agent1Input}",
    }
    main, environment = write("main", [node]), Environment(models=ModelMap(default=llm))
    assert run_workflow(main, inputs=["a"], environment=environment).text == "x"
    assert (llm.prompts[0].system, llm.prompts[0].text) == ("sys", "new")
    assert run_workflow(main, inputs=["b"], environment=environment).text == "none for b"
