"""How workflows run."""

import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.apps.discussion.workflow.conftest import Write

import eunoe
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import discussion_scope
from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, node, run_workflow
from eunoe.apps.discussion.workflow.node import NODE_TYPES, NodeCall
from eunoe.apps.discussion.workflow.run import NodeFailure
from eunoe.errors import WorkflowError
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.model.arguments import utc_now


def say(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "StaticResponse", "content": text, **fields}


@pytest.mark.parametrize("key", ["returnToUser", "isResponder", "is_responder"])
def test_the_result_is_that_of_the_last_responder_and_later_nodes_run(key: str) -> None:
    result = run_workflow(Workflow.of([say("a", **{key: True}), say("b", **{key: True}), say("c", **{key: False})]))
    assert (result.text, [each.output for each in result.trace]) == ("b", ["a", "b", "c"])


@pytest.mark.parametrize("messages", ["Hello", {"role": "user", "content": "Hello"}])
def test_one_message_is_a_chat(messages: Any) -> None:
    assert run_workflow(Workflow.of([say("{templated_user_prompt_last_ten}")]), messages=messages).text == "user: Hello"


def test_without_a_responder_it_is_that_of_the_last_node() -> None:
    assert run_workflow(Workflow.of([say("a"), say("b")])).text == "b"


def test_the_result_is_given_before_later_nodes_run() -> None:
    events: list[str] = []
    nodes = [say("a", returnToUser=True), say("b", returnToUser=True), say("c")]
    environment = Environment(progress=lambda trace: events.append(f"ended {trace.output}"))
    run_workflow(Workflow.of(nodes), environment=environment, respond=events.append)
    assert events == ["ended a", "ended b", "b", "ended c"]


def test_a_called_workflow_gives_the_result_of_its_caller(write: Write) -> None:
    events: list[str] = []
    write("sub", [say("s", returnToUser=True), say("later")])
    main = write("main", [{"type": "CustomWorkflow", "workflowName": "sub"}])
    environment = Environment(progress=lambda trace: events.append(f"ended {trace.output}"))
    assert run_workflow(main, environment=environment, respond=events.append).text == "s"
    assert events == ["ended s", "s", "ended later", "ended s"]


def test_a_called_workflow_that_is_no_responder_gives_no_result(write: Write) -> None:
    replies: list[str] = []
    write("sub", [say("s", returnToUser=True)])
    main = write("main", [{"type": "CustomWorkflow", "workflowName": "sub"}, say("m")])
    run_workflow(main, respond=replies.append)
    assert replies == ["m"]


def test_a_later_node_that_fails_does_not_take_the_result_away(write: Write) -> None:
    replies: list[str] = []
    write("sub", [say("s", returnToUser=True), say("{unknown}")])
    main = write("main", [{"type": "CustomWorkflow", "workflowName": "sub", "returnToUser": True}, say("never")])
    with pytest.raises(NodeFailure) as caught:
        run_workflow(main, respond=replies.append)
    assert caught.value.result
    assert (caught.value.result.text, replies) == ("s", ["s"])
    assert len(caught.value.result.trace) == 3


def test_a_node_that_fails_before_the_last_responder_leaves_no_result() -> None:
    replies: list[str] = []
    nodes = [say("a", returnToUser=True), say("{unknown}"), say("b", returnToUser=True)]
    with pytest.raises(NodeFailure) as caught:
        run_workflow(Workflow.of(nodes), respond=replies.append)
    assert (caught.value.result, replies) == (None, [])


def test_the_model_of_the_memory_is_that_of_nodes_that_name_none() -> None:
    with eunoe.open(":memory:", embedder="none", llm=lambda text: "of the memory") as memory:
        ask = Workflow.of([{"type": "Standard", "prompt": "hi"}])
        assert run_workflow(ask, memory=memory).text == "of the memory"
        own = Environment(models=ModelMap(default=ScriptedLlm(["own"])))
        assert run_workflow(ask, memory=memory, environment=own).text == "own"


def test_a_trace_has_inputs_output_time_and_tokens() -> None:
    environment = Environment(models=ModelMap(default=ScriptedLlm(["Hello Anna"])))
    trace = run_workflow(
        Workflow.of([{"type": "Standard", "prompt": "Hi", "title": "Greet"}]), environment=environment
    ).trace[0]
    assert (trace.inputs["prompt"], trace.output, trace.models, trace.place) == (
        "Hi",
        "Hello Anna",
        ["scripted"],
        'node 1 "Greet" (Standard)',
    )
    assert trace.seconds > 0
    assert (trace.input_tokens, trace.output_tokens) == (1, 3)


def test_an_unsupported_type_fails_before_any_node_runs(tmp_path: Path) -> None:
    path = tmp_path / "main.json"
    path.write_text(json.dumps([say("a"), {"type": "Telepathy", "title": "Guess"}]))
    with pytest.raises(WorkflowError, match=r'main\.json: node 2 "Guess" \(Telepathy\): .*not supported') as caught:
        run_workflow(Workflow.load(path))
    assert isinstance(caught.value, NodeFailure)
    assert caught.value.traces == []


def test_a_failure_keeps_the_traces_so_far() -> None:
    with pytest.raises(NodeFailure) as caught:
        run_workflow(Workflow.of([say("a"), say("{unknown}")]))
    assert [(trace.number, bool(trace.error)) for trace in caught.value.traces] == [(1, False), (2, True)]


@pytest.fixture
def node_types() -> Any:
    before = dict(NODE_TYPES)
    yield
    NODE_TYPES.clear()
    NODE_TYPES.update(before)


def test_a_node_type_is_one_decorated_function(node_types: None) -> None:
    @node("Uppercase", required=["text"])
    def uppercase(call: NodeCall) -> str:
        return call.render("text").upper()

    assert run_workflow(Workflow.of([{"type": "Uppercase", "text": "{agent1Input}"}]), inputs=["hi"]).text == "HI"


def test_what_a_node_type_raises_is_an_error_of_the_node(node_types: None) -> None:
    @node("Broken")
    def broken(call: NodeCall) -> str:
        raise KeyError("x")

    with pytest.raises(WorkflowError, match=r"node 1 \(Broken\): KeyError"):
        run_workflow(Workflow.of([{"type": "Broken"}]))


def test_a_node_type_of_another_package_cannot_take_a_name() -> None:
    with pytest.raises(WorkflowError, match="'Standard'"):
        node("Standard")(lambda call: "")


def test_a_discussion_is_named_by_id_or_tag(memory: eunoe.Memory) -> None:
    show = Workflow.of([say("{Discussion_Id}|{chat_user_prompt_last_one}")])
    tagged = [{"role": "user", "content": "[DiscussionId]trip[/DiscussionId]Hello"}]
    assert run_workflow(show, memory=memory, messages=tagged).text == "trip|Hello"
    assert run_workflow(show, memory=memory, messages=tagged, discussion_id="own").text == "own|Hello"


@pytest.mark.parametrize("id", ["a/b", "..", "x" * 201, " a"])
def test_an_invalid_id_warns_and_nothing_is_kept(
    memory: eunoe.Memory, id: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        result = run_workflow(Workflow.of([say("{Discussion_Id}.")]), memory=memory, messages=["Hi"], discussion_id=id)
    assert result.text == "."
    assert "without persistence" in result.notes[0]
    assert "without persistence" in caplog.text
    assert memory.scopes() == []


ASK = {"type": "Standard", "prompt": "{time_context_summary}|"}


def texts(memory: eunoe.Memory, id: str = "trip", user: str = "anna") -> list[str]:
    return [each.text for each in DiscussionLog(memory, discussion_scope(id, user)).messages()]


def test_the_messages_are_in_the_log_before_the_first_node_that_asks(memory: eunoe.Memory) -> None:
    logs: list[list[str]] = []

    def answer(prompt: Prompt) -> str:
        logs.append(texts(memory))
        return "x"

    chat = [
        {"role": "user", "content": "[DiscussionId]trip[/DiscussionId]Hi"},
        {"role": "assistant", "content": "Hello"},
    ]
    environment = Environment(models=ModelMap(default=ScriptedLlm(answer)))
    for _ in range(2):
        run_workflow(Workflow.of([say("a"), ASK]), memory=memory, messages=chat, user="anna", environment=environment)
    assert logs == [["Hi", "Hello"]] * 2


def test_texts_alone_write_nothing_and_make_no_discussion(memory: eunoe.Memory, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.glob("memory.db*")}
    nodes = [say("{time_context_summary}{chat_user_prompt_last_one}")]
    run_workflow(Workflow.of({"nodes": nodes, "n": 1}), memory=memory, messages=["Hi"], discussion_id="trip")
    assert {path: path.read_bytes() for path in tmp_path.glob("memory.db*")} == before
    assert memory.scopes() == []


def test_a_called_workflow_takes_the_messages_in_once(memory: eunoe.Memory, write: Write) -> None:
    write("sub", [ASK])
    calls = [{"type": "CustomWorkflow", "workflowName": "sub"}] * 2
    environment = Environment(models=ModelMap(default=ScriptedLlm(["a", "b"])))
    run_workflow(write("main", calls), memory=memory, messages=["Hi"], discussion_id="trip", environment=environment)
    assert texts(memory, user="default") == ["Hi"]


def test_the_context_of_time(memory: eunoe.Memory) -> None:
    llm, later = ScriptedLlm(["x", "y"]), utc_now() + timedelta(hours=2, minutes=1)
    for messages in (["a"], ["a", "b"]):
        environment = Environment(models=ModelMap(default=llm), now=lambda: later)
        run_workflow(Workflow.of([ASK]), memory=memory, messages=messages, discussion_id="t", environment=environment)
    told = "This discussion began 2 hours ago. Before now something was last said in it 2 hours ago.|"
    assert [prompt.text for prompt in llm.prompts] == ["|", told]


def test_a_discussion_without_a_memory_is_an_error() -> None:
    with pytest.raises(WorkflowError, match="needs a memory"):
        run_workflow(Workflow.of([say("x")]), discussion_id="trip")
