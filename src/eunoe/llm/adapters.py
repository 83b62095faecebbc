"""Models out of what a user already has: a function, a chat model object, a model of their own."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from eunoe.errors import LlmError
from eunoe.llm import loop
from eunoe.llm.contract import Llm, Prompt, Reply

_MODEL_ATTRIBUTES = ("model_name", "model", "model_id", "deployment_name")


class Adapted:
    """A model around a function of the prompt, plain or async; its failures become LlmError."""

    def __init__(self, name: str, function: Callable[[Prompt], Any]) -> None:
        self.name = name
        self._function = function

    def ask(self, prompt: Prompt) -> Reply:
        try:
            answer = self._function(prompt)
            answer = loop.result(answer, prompt.patience) if inspect.isawaitable(answer) else answer
        except LlmError:
            raise
        except Exception as error:
            raise LlmError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        return self._reply(answer)

    def _reply(self, answer: Any) -> Reply:
        if isinstance(answer, str):
            return Reply(answer)
        if isinstance(answer, Reply):
            return answer
        raise LlmError(f"{self.name} gave {type(answer).__name__}; due: text, or a Reply")


def adapt(given: Any) -> Llm | None:
    """The model that an object makes, or None when it makes none."""
    if isinstance(given, type):
        return None
    if callable(getattr(given, "ask", None)):
        return Adapted(_own_name(given) or type(given).__name__, given.ask)
    if callable(getattr(given, "invoke", None)) and callable(getattr(given, "bind", None)):
        return from_langchain(given)
    if _is_pydantic_ai(given):
        from eunoe.llm.pydantic_ai import from_model

        return from_model(given)
    return from_callable(given) if callable(given) else None


def from_callable(function: Callable[[Any], Any], name: str | None = None) -> Adapted:
    """A model from a function of text, or of a Prompt if that is what its parameter is annotated with."""
    name = name or _own_name(function) or getattr(function, "__name__", "") or type(function).__name__
    if _takes_prompt(function):
        return Adapted(name, function)
    return Adapted(name, lambda prompt: function(f"{prompt.task}\n\n{prompt.text}"))


def from_langchain(model: Any, name: str | None = None) -> Adapted:
    """A model from a LangChain chat model."""

    def ask(prompt: Prompt) -> Reply:
        answer = model.invoke([("system", prompt.task), ("human", prompt.text)])
        usage = getattr(answer, "usage_metadata", None) or {}
        return Reply(_words(answer), usage.get("input_tokens", 0), usage.get("output_tokens", 0))

    return Adapted(name or _langchain_name(model), ask)


def _words(answer: Any) -> str:
    """The text of a LangChain message, or of a model that gives plain text."""
    content = getattr(answer, "content", answer)
    if isinstance(content, list):
        return "".join(part if isinstance(part, str) else part.get("text", "") for part in content)
    return str(content)


def _is_pydantic_ai(given: Any) -> bool:
    return any(kind.__module__ == "pydantic_ai.models" and kind.__name__ == "Model" for kind in type(given).__mro__)


def _takes_prompt(function: Any) -> bool:
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    try:
        hints = typing.get_type_hints(call)
    except (NameError, TypeError):
        hints = getattr(call, "__annotations__", {})
    kind = next((kind for name, kind in hints.items() if name != "return"), None)
    return kind is Prompt or kind == "Prompt"


def _own_name(given: Any) -> str:
    name = getattr(given, "name", None)
    return name.strip() if isinstance(name, str) else ""


def _langchain_name(model: Any) -> str:
    names = (getattr(model, attribute, None) for attribute in _MODEL_ATTRIBUTES)
    name = next((name for name in names if isinstance(name, str) and name), None)
    return ":".join(["langchain", type(model).__name__, *([name] if name else [])])
