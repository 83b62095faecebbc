"""Nodes that ask a model, call other workflows, and hold locks."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.apps.discussion.workflow.conftest import Write

import eunoe
from eunoe.apps.discussion.model import discussion_scope
from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, run_workflow
from eunoe.apps.discussion.workflow.document import MAX_DEPTH, Preset
from eunoe.errors import LlmError, WorkflowError
from eunoe.llm.contract import CutAnswerError, Reply, ScriptedLlm
from eunoe.model.arguments import utc_now

CHAT = [
    {"role": "system", "content": "Be kind."},
    *({"role": role, "content": f"{role} {number}"} for number in range(4) for role in ("user", "assistant")),
]


def run(llm: Any, messages: Any = (), presets: Any = None, **fields: Any) -> str:
    models = ModelMap(endpoints={"*": llm}, presets=presets or {})
    workflow = Workflow.of([{"type": "Standard", **fields}])
    return run_workflow(workflow, messages=messages, environment=Environment(models=models)).text


def test_the_prompts_are_sent() -> None:
    llm = ScriptedLlm(["hello"])
    assert run(llm, prompt="Say it", systemPrompt="You are {{x}}", maxResponseSizeInTokens=77) == "hello"
    assert [(each.system, each.text, each.max_tokens) for each in llm.prompts] == [("You are {x}", "Say it", 77)]


def test_without_a_prompt_the_last_messages_are_sent() -> None:
    llm = ScriptedLlm(["a", "b", "c"])
    run(llm, CHAT)
    run(llm, CHAT, lastMessagesToSendInsteadOfPrompt=1, systemPrompt="Own.")
    run(llm, CHAT, lastMessagesToSendInsteadOfPrompt=2, prompt="  ")
    assert llm.prompts[0].text.startswith("assistant: assistant 1\nuser: user 2")
    assert [(each.system, each.text) for each in llm.prompts[1:]] == [
        ("Own.", "assistant 3"),
        ("Be kind.", "user: user 3\nassistant: assistant 3"),
    ]


def test_with_neither_it_is_an_error() -> None:
    with pytest.raises(WorkflowError, match="no messages to send"):
        run(ScriptedLlm(["a"]))


def test_a_failure_names_the_endpoint_and_the_model() -> None:
    with pytest.raises(WorkflowError, match=r"the endpoint 'Thinker' \(scripted\) failed: it is asleep"):
        run(ScriptedLlm([LlmError("it is asleep")]), prompt="x", endpointName="Thinker")


def test_an_answer_that_is_cut_off_is_taken_with_a_note() -> None:
    cut = CutAnswerError("cut", Reply("half an ans", 5, 3))
    models = ModelMap(endpoints={"*": ScriptedLlm([cut])})
    result = run_workflow(Workflow.of([{"type": "Standard", "prompt": "x"}]), environment=Environment(models=models))
    assert result.text == "half an ans"
    assert "cut off" in result.notes[0]
    assert (result.trace[0].input_tokens, result.trace[0].output_tokens) == (5, 3)


def test_a_preset_limits_tokens_where_the_node_does_not() -> None:
    llm, presets = ScriptedLlm(["a", "b"]), {"Short": Preset(max_tokens=9, temperature=1.0)}
    run(llm, prompt="x", preset="Short", presets=presets)
    run(llm, prompt="x", preset="Short", presets=presets, maxResponseSizeInTokens="{{20}}".strip("{}"))
    assert [(each.max_tokens, each.temperature) for each in llm.prompts] == [(9, 1.0), (20, 1.0)]


def test_without_any_model_it_says_what_to_do() -> None:
    with pytest.raises(WorkflowError, match="no language model"):
        run_workflow(Workflow.of([{"type": "Standard", "prompt": "x"}]))


@pytest.mark.parametrize("limit", ["many", 0, -5, [1]])
def test_a_wrong_limit_is_an_error(limit: Any) -> None:
    with pytest.raises(WorkflowError, match="maxResponseSizeInTokens"):
        run(ScriptedLlm(["a"]), prompt="x", maxResponseSizeInTokens=limit)


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


LOCK = {"type": "WorkflowLock", "workflowLockId": "memories"}


def say(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "StaticResponse", "content": text, **fields}


NODES = [say("reply", returnToUser=True), LOCK, say("after")]


def test_the_lock_is_held_until_the_workflow_ends(memory: eunoe.Memory) -> None:
    for _ in range(2):
        result = run_workflow(Workflow.of(NODES), memory=memory)
        assert (result.text, len(result.trace)) == ("reply", 3)
    assert memory.leases.list("user=default") == []


def test_while_somebody_holds_it_the_workflow_ends_there(memory: eunoe.Memory) -> None:
    lease = memory.leases.acquire("user=default", "workflow_lock:memories", seconds=600)
    assert lease
    result = run_workflow(Workflow.of(NODES), memory=memory)
    assert (result.text, [trace.type for trace in result.trace]) == ("reply", ["StaticResponse", "WorkflowLock"])
    assert "is held" in result.notes[0]
    assert len(run_workflow(Workflow.of(NODES), memory=memory, user="berta").trace) == 3
    memory.leases.release("user=default", lease)
    assert len(run_workflow(Workflow.of(NODES), memory=memory).trace) == 3


def test_it_holds_for_ten_minutes(memory: eunoe.Memory, write: Write) -> None:
    leases = []

    def look(_: Any) -> None:
        leases.extend(memory.leases.list("user=default"))

    run_workflow(Workflow.of([LOCK, say("x")]), memory=memory, environment=Environment(progress=look))
    assert [lease.name for lease in leases] == ["workflow_lock:memories"] * 2
    assert leases[0].is_held
    assert timedelta(minutes=9) < leases[0].until - utc_now() <= timedelta(minutes=10)


def test_it_is_released_when_the_workflow_fails(memory: eunoe.Memory) -> None:
    with pytest.raises(WorkflowError):
        run_workflow(Workflow.of([LOCK, say("{unknown}")]), memory=memory)
    assert memory.leases.list("user=default") == []


def test_a_called_workflow_ends_alone(memory: eunoe.Memory, write: Write) -> None:
    memory.leases.acquire("user=default", "workflow_lock:memories", seconds=600)
    write("sub", [say("s"), LOCK, say("never")])
    main = write("main", [{"type": "CustomWorkflow", "workflowName": "sub"}, say("goes on")])
    result = run_workflow(main, memory=memory)
    assert [trace.output for trace in result.trace] == ["s", "", "s", "goes on"]


def test_without_a_responder_the_result_is_what_stands_before_the_lock(memory: eunoe.Memory) -> None:
    memory.leases.acquire("user=default", "workflow_lock:memories", seconds=600)
    assert run_workflow(Workflow.of([say("a"), say("b"), LOCK, say("c")]), memory=memory).text == "b"
    assert run_workflow(Workflow.of([LOCK, say("c")]), memory=memory).text == ""


def test_a_run_does_not_lock_itself_out(memory: eunoe.Memory, write: Write) -> None:
    write("sub", [LOCK, say("s")])
    main = write("main", [LOCK, LOCK, {"type": "CustomWorkflow", "workflowName": "sub"}, LOCK, say("end")])
    held = []
    environment = Environment(progress=lambda trace: held.append(len(memory.leases.list("user=default"))))
    result = run_workflow(main, memory=memory, environment=environment)
    assert ([trace.output for trace in result.trace], result.notes) == (["", "", "", "s", "s", "", "end"], ())
    assert held == [1] * 7
    assert memory.leases.list("user=default") == []


def test_a_lock_of_a_called_workflow_ends_with_it(memory: eunoe.Memory, write: Write) -> None:
    write("sub", [LOCK, say("s")])
    main = write("main", [{"type": "CustomWorkflow", "workflowName": "sub"}, say("after"), LOCK, say("end")])
    held = []
    environment = Environment(progress=lambda trace: held.append(len(memory.leases.list("user=default"))))
    assert run_workflow(main, memory=memory, environment=environment).text == "end"
    assert held == [1, 1, 0, 0, 1, 1]


def test_where_the_user_is_out_of_reach_the_lock_is_that_of_the_discussion(memory: eunoe.Memory) -> None:
    scope = discussion_scope("trip")
    narrow = memory.restricted(scopes=[scope])
    result = run_workflow(Workflow.of(NODES), memory=narrow, discussion_id="trip")
    assert (len(result.trace), "of the discussion" in result.notes[0]) == (3, True)
    memory.leases.acquire(scope, "workflow_lock:memories", seconds=600)
    assert len(run_workflow(Workflow.of(NODES), memory=narrow, discussion_id="trip").trace) == 2


def test_without_a_store_there_is_nothing_to_share() -> None:
    result = run_workflow(Workflow.of(NODES))
    assert (len(result.trace), "no store" in result.notes[0]) == (3, True)
