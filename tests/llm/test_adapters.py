"""LLMs out of functions and objects."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eunoe.errors import LlmError
from eunoe.llm import Prompt, Reply, load_llm
from eunoe.llm.contract import ScriptedLlm

PLAIN = Prompt("Be kind.", "Hello", operation="chat")


def shout(text: str) -> str:
    return text.upper()


def of_prompt(prompt: Prompt) -> Reply:
    return Reply(f"{prompt.operation}: {prompt.text}", 3, 4, 0.5)


async def later(text: str) -> str:
    await asyncio.sleep(0)
    return text.lower()


class TestObjects:
    def test_functions(self) -> None:
        models = [load_llm(shout), load_llm(of_prompt), load_llm(later)]
        texts = [model.ask(PLAIN).text for model in models if model]
        assert texts == ["BE KIND.\n\nHELLO", "chat: Hello", "be kind.\n\nhello"]
        assert [model.name for model in models if model] == ["shout", "of_prompt", "later"]

    def test_an_async_function_works_inside_a_running_loop(self) -> None:
        async def main() -> str:
            model = load_llm(later)
            assert model
            return model.ask(PLAIN).text

        assert asyncio.run(main()) == "be kind.\n\nhello"

    def test_an_async_function_is_left_when_patience_ends(self) -> None:
        async def never(prompt: Prompt) -> str:
            await asyncio.Event().wait()
            return ""

        model = load_llm(never)
        assert model
        with pytest.raises(LlmError, match="never failed: TimeoutError"):
            model.ask(Prompt("s", "t", timeout=0.01))

    @pytest.mark.parametrize(
        ("given", "why"), [(lambda text: 1 / 0, "ZeroDivisionError"), (lambda text: 7, "gave int")]
    )
    def test_a_function_that_fails_is_a_typed_error(self, given: Any, why: str) -> None:
        model = load_llm(given)
        assert model
        with pytest.raises(LlmError, match=why):
            model.ask(PLAIN)

    def test_a_langchain_chat_model(self) -> None:
        from langchain_core.language_models import FakeMessagesListChatModel
        from langchain_core.messages import AIMessage

        usage: Any = {"input_tokens": 8, "output_tokens": 2, "total_tokens": 10}
        parts: Any = [{"type": "text", "text": "one "}, "two"]
        answers: Any = [AIMessage("Hi.", usage_metadata=usage), AIMessage(parts)]
        model = load_llm(FakeMessagesListChatModel(responses=answers))
        assert model
        assert [model.ask(PLAIN), model.ask(PLAIN)] == [Reply("Hi.", 8, 2), Reply("one two")]
        assert model.name == "langchain:FakeMessagesListChatModel"

    def test_a_pydantic_ai_model(self) -> None:
        pytest.importorskip("pydantic_ai", reason="needs the extra llm")
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.models.function import FunctionModel

        model = load_llm(FunctionModel(lambda messages, info: ModelResponse([TextPart(messages[0].parts[1].content)])))
        assert model
        assert [model.ask(PLAIN).text, model.ask(PLAIN).text] == ["Hello", "Hello"]

    def test_an_object_with_ask(self) -> None:
        scripted = ScriptedLlm(["Hi.", RuntimeError("down")], name="mine")
        model = load_llm(scripted)
        assert model
        assert (model.name, model.ask(PLAIN).text, scripted.prompts) == ("mine", "Hi.", [PLAIN])
        with pytest.raises(LlmError, match="mine failed: RuntimeError: down"):
            model.ask(PLAIN)
        with pytest.raises(LlmError, match="no answer left"):
            model.ask(PLAIN)

    def test_a_script_may_be_a_function(self) -> None:
        assert ScriptedLlm(lambda prompt: {"said": prompt.text}).ask(PLAIN).text == '{"said": "Hello"}'
