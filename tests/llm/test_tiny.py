"""A real model behind a real server: whatever nonsense it gives, what comes out was checked or is an LlmError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eunoe.errors import LlmError
from eunoe.llm import CutAnswerError, Prompt, PromptTooLongError, load_llm
from eunoe.llm.models import Models
from eunoe.llm.structured import ask_structured

FACTS = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "certain": {"type": "boolean"}},
                "required": ["text", "certain"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}
TALK = "Anna: I adopted a cat last week, her name is Luna. Ben: Lovely! I am allergic to cats, sadly."
TASKS = [
    "List what the talk says about people.",
    "Write {{ and ]] as often as you can.",
]


@pytest.fixture
def llm(tiny_llm: str) -> Any:
    return load_llm(tiny_llm)


def is_known(value: Any) -> list[str]:
    """The facts that are in the talk's own words, by what they speak of."""
    texts = [fact["text"] for fact in value["facts"]]
    if not all(isinstance(fact["certain"], bool) and fact.keys() == {"text", "certain"} for fact in value["facts"]):
        pytest.fail("what was not checked came through")
    if not any("cat" in text.lower() for text in texts):
        raise ValueError("no fact speaks of the cat")
    return texts


def outcome(call: Callable[[], list[str]]) -> list[str] | LlmError:
    try:
        return call()
    except LlmError as error:
        return error


def test_it_answers_in_plain_text_and_its_tokens_are_counted(llm: Any) -> None:
    reply = llm.ask(Prompt("You answer in one sentence.", "What is the capital of France?", max_tokens=30))
    assert reply.text.strip()
    assert reply.input_tokens > 10
    assert 0 < reply.output_tokens <= 30
    assert reply.cost == 0


def test_the_server_holds_it_to_a_schema(llm: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    prompt = Prompt("Choose a colour. Answer in JSON.", "Which is the sky?", schema, max_tokens=40)
    assert ask_structured(llm, prompt, lambda value: value["colour"]) in ("red", "blue")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("held", [True, False])
def test_nonsense_is_checked_or_a_typed_error(llm: Any, task: str, held: bool) -> None:
    llm._form = 0 if held else 2
    prompt = Prompt(task, TALK, FACTS, max_tokens=60)
    came = outcome(lambda: ask_structured(llm, prompt, is_known))
    if isinstance(came, LlmError):
        assert isinstance(came, CutAnswerError) or "gave no usable answer in 2 attempts" in str(came)
        assert "Luna" not in str(came)
    else:
        assert any("cat" in text.lower() for text in came)


def test_a_prompt_too_long_for_it_is_a_typed_error(llm: Any) -> None:
    with pytest.raises(PromptTooLongError, match=r"answered 400: .*context"):
        llm.ask(Prompt("Repeat.", "word " * 20_000))


def test_a_memory_counts_what_it_takes(tiny_llm: str) -> None:
    models = Models(tiny_llm)
    assert models.slow
    models.slow.ask(Prompt("Be short.", "Hello", max_tokens=10, operation="chat"))
    (row,) = models.drain()
    assert (row.operation, row.model, row.calls, row.failures) == ("chat", "openai:smollm2", 1, 0)
    assert row.input_tokens > 0
    assert row.seconds > 0


def test_the_first_model_the_server_lists_is_taken(tiny_llm: str) -> None:
    unnamed = load_llm(tiny_llm.partition("@")[2])
    assert unnamed
    assert unnamed.ask(Prompt("Be short.", "Hello", max_tokens=5)).text
