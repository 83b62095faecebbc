"""Chat models that say what a test has written for them, so that real agents run without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

Answer = AIMessage | str | Exception | Callable[[list[BaseMessage]], "AIMessage | str"]


class ScriptedModel(BaseChatModel):
    """Gives its answers in order, and the last one for ever. A function is called with what the model was sent."""

    answers: list[Any]
    requests: list[list[BaseMessage]] = []  # noqa: RUF012 (pydantic copies it for each model)
    tool_names: list[str] = []  # noqa: RUF012
    _next: int = PrivateAttr(0)

    def __init__(self, *answers: Answer, **options: Any) -> None:
        super().__init__(answers=list(answers), **options)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        self.tool_names = [tool["name"] if isinstance(tool, dict) else tool.name for tool in tools]
        return self

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        self.requests.append(messages)
        answer = self.answers[min(self._next, len(self.answers) - 1)]
        self._next += 1
        if isinstance(answer, Exception):
            raise answer
        answer = answer(messages) if callable(answer) else answer
        return AIMessage(answer) if isinstance(answer, str) else answer.model_copy(update={"id": None})

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])


class StreamingModel(ScriptedModel):
    """The same, word by word."""

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        for word in answer.text.split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(word + " "))
        calls = [
            {"name": call["name"], "args": str(call["args"]).replace("'", '"'), "id": call["id"], "index": place}
            for place, call in enumerate(answer.tool_calls)
        ]
        yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=calls, chunk_position="last"))


def tool_call(name: str, text: str = "", id: str = "", **arguments: Any) -> AIMessage:
    """An answer that calls one tool, with a text or without."""
    return AIMessage(text, tool_calls=[{"name": name, "args": arguments, "id": id or f"call-{name}"}])
