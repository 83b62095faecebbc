"""The node that asks a language model."""

from typing import Any

import pytest

from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, run_workflow
from eunoe.apps.discussion.workflow.document import Preset
from eunoe.errors import LlmError, WorkflowError
from eunoe.llm.contract import CutAnswerError, Reply, ScriptedLlm

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
