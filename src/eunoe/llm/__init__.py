"""The LLM behind one call. Without one everything still works."""

from __future__ import annotations

import atexit
import inspect
import os
import re
import threading
import typing
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from eunoe.errors import LlmError
from eunoe.llm.contract import (
    CutAnswerError,
    DeclinedError,
    Llm,
    Prompt,
    PromptTooLongError,
    Reply,
    call_cost,
    configured_price,
    refusal_error,
    whole_reply,
)
from eunoe.model.arguments import own_name, show

if TYPE_CHECKING:
    import asyncio

    from pydantic_ai.models import Model

_LANGCHAIN_MODEL_ATTRIBUTES: Final = ("model_name", "model", "model_id", "deployment_name")
_LANGCHAIN_LIMITS: Final = ("max_tokens", "max_output_tokens", "num_predict")
"""Where a model keeps how long its answers may be; one that has no limit is given none."""
_LANGCHAIN_ENDINGS: Final = ("finish_reason", "stop_reason", "done_reason")


class FunctionLlm:
    """An LLM around a function of the prompt, plain or async; its failures become LlmError."""

    def __init__(self, name: str, function: Callable[[Prompt], Any]) -> None:
        self.name = name
        self._function = function

    def ask(self, prompt: Prompt) -> Reply:
        try:
            answer = self._function(prompt)
            answer = _wait_for(answer, prompt.timeout) if inspect.isawaitable(answer) else answer
        except LlmError:
            raise
        except Exception as error:
            message = f"{self.name} failed: {type(error).__name__}: {error}"
            raise refusal_error(message, str(error), getattr(error, "status_code", 0)) from error
        if not isinstance(answer, str | Reply):
            raise LlmError(f"{self.name} gave {type(answer).__name__}; due: text, or a Reply")
        return Reply(answer) if isinstance(answer, str) else answer


def adapt(given: Any) -> Llm | None:
    """Make an LLM of an object; None if it cannot be one."""
    if isinstance(given, type):
        return None
    if callable(getattr(given, "ask", None)):
        return FunctionLlm(own_name(given) or type(given).__name__, given.ask)
    if callable(getattr(given, "invoke", None)) and callable(getattr(given, "bind", None)):
        return _from_langchain(given)
    if any(kind.__module__ == "pydantic_ai.models" and kind.__name__ == "Model" for kind in type(given).__mro__):
        return _from_pydantic_ai(given)
    if not callable(given):
        return None
    name = own_name(given) or getattr(given, "__name__", "") or type(given).__name__
    if _takes_prompt(given):
        return FunctionLlm(name, given)
    return FunctionLlm(name, lambda prompt: given(f"{prompt.instructions}\n\n{prompt.text}"))


def _from_langchain(model: Any) -> FunctionLlm:
    names = (getattr(model, attribute, None) for attribute in _LANGCHAIN_MODEL_ATTRIBUTES)
    suffix = next((f":{name}" for name in names if isinstance(name, str) and name), "")
    name = f"langchain:{type(model).__name__}{suffix}"
    limits = {field: limit for field in _LANGCHAIN_LIMITS if isinstance(limit := getattr(model, field, None), int)}

    def ask(prompt: Prompt) -> Reply:
        more = {field: prompt.max_tokens for field, limit in limits.items() if 0 < limit < prompt.max_tokens}
        answer = model.invoke([("system", prompt.instructions), ("human", prompt.text)], **more)
        content = getattr(answer, "content", answer)
        if isinstance(content, list):
            content = "".join(part if isinstance(part, str) else part.get("text", "") for part in content)
        usage, details = (getattr(answer, part, None) or {} for part in ("usage_metadata", "response_metadata"))
        reply = Reply(str(content), usage.get("input_tokens", 0), usage.get("output_tokens", 0))
        return whole_reply(name, reply, next((details[word] for word in _LANGCHAIN_ENDINGS if word in details), ""))

    return FunctionLlm(name, ask)


def from_provider(spec: str) -> FunctionLlm:
    """Make an LLM from PROVIDER:MODEL, for every provider that pydantic-ai knows."""
    if find_spec("pydantic_ai") is None:
        raise LlmError(f"{spec!r} needs pydantic-ai: pip install 'eunoe[llm]' and the client of the provider")
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    try:
        return _from_pydantic_ai(infer_model(spec), spec)
    except (UserError, ImportError, ValueError) as error:
        raise LlmError(f"{spec!r} names no model that can be used: {error}") from error


def _from_pydantic_ai(model: Model[Any], name: str = "") -> FunctionLlm:
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, TextPart, UserPromptPart

    from eunoe.llm.remote import configured_effort

    price, effort = configured_price(), configured_effort()
    name = name or f"{model.system}:{model.model_name}"

    async def ask(prompt: Prompt) -> Reply:
        settings: Any = {"max_tokens": prompt.max_tokens, "timeout": prompt.timeout, "openai_reasoning_effort": effort}
        settings = {setting: value for setting, value in settings.items() if value}
        request = ModelRequest(parts=[SystemPromptPart(prompt.instructions), UserPromptPart(prompt.text)])
        answer = await model_request(model, [request], model_settings=settings)
        text = "".join(part.content for part in answer.parts if isinstance(part, TextPart))
        tokens = answer.usage.input_tokens, answer.usage.output_tokens
        cost = call_cost(price, answer.provider_name or "", answer.model_name or "", *tokens)
        return whole_reply(name, Reply(text, *tokens, cost), answer.finish_reason)

    return FunctionLlm(name, ask)


def _takes_prompt(function: Any) -> bool:
    """Whether its parameter is annotated with Prompt; otherwise it is a function of text."""
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    try:
        hints = typing.get_type_hints(call)
    except (NameError, TypeError):
        hints = getattr(call, "__annotations__", {})
    kind = next((kind for name, kind in hints.items() if name != "return"), None)
    return kind is Prompt or kind == "Prompt"


_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""By process id: a forked child has none of its parent's threads."""
_starting = threading.Lock()


def _wait_for(awaitable: Awaitable[Any], timeout: float | None) -> Any:
    """One event loop in a thread of its own serves all: clients keep connections, which belong to their loop."""

    import asyncio  # slow to import, and plain functions do without it

    async def wait() -> Any:
        return await awaitable

    with _starting:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="eunoe-llm", daemon=True)
            thread.start()
            atexit.register(_stop, loop, thread)
    future = asyncio.run_coroutine_threadsafe(wait(), loop)
    try:
        return future.result(timeout)
    finally:
        future.cancel()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join(1)
    if not loop.is_running():
        loop.close()


__all__ = [
    "FAST_LLM_VARIABLE",
    "LLM_VARIABLE",
    "CutAnswerError",
    "DeclinedError",
    "Llm",
    "Prompt",
    "PromptTooLongError",
    "Reply",
    "check_model_spec",
    "load_llm",
]

LLM_VARIABLE: Final = "EUNOE_LLM"
FAST_LLM_VARIABLE: Final = "EUNOE_LLM_FAST"

_BUILT_IN: Final = ("http", "https", "openai", "anthropic")
_PROVIDER_SPEC: Final = re.compile(rf"(?!(?:{'|'.join(_BUILT_IN)}):)[a-z][\w./-]*:[^\s:](?:\S*[^\s:])?", re.IGNORECASE)
_CHOICES: Final = (
    '"auto", "none", "openai:MODEL", "openai:MODEL@http://host:port/v1", "http://host:port/v1?model=NAME", '
    '"anthropic:MODEL", "PROVIDER:MODEL" of pydantic-ai, a function from text to text, '
    "a LangChain or pydantic-ai model object, an object with `ask`"
)


def load_llm(spec: Any = "auto", variable: str = LLM_VARIABLE) -> Llm | None:
    """Load the LLM that a setting names; None for none at all. "auto" is what the environment variable names.

    >>> load_llm(lambda text: text.upper()).ask(Prompt("shout", "hello")).text
    'SHOUT\\n\\nHELLO'
    """
    if spec == "auto":
        spec = os.environ.get(variable, "").strip() or "none"
    if spec is None or spec == "none":
        return None
    llm = _load_named(spec.strip()) if isinstance(spec, str) else adapt(spec)
    if llm is None:
        raise _unknown(spec)
    return llm


def check_model_spec(spec: str) -> None:
    """Refuse what can name no model anywhere. A key or an extra that is missing here may be there elsewhere.

    >>> check_model_spec("anthropic:claude"), check_model_spec("groq:llama")
    (None, None)
    """
    from eunoe.llm.remote import KeyMissingError

    if spec in ("", "auto", "slow", "fast", "none") or _PROVIDER_SPEC.fullmatch(spec.strip()):
        return
    if spec.strip().partition(":")[0] not in _BUILT_IN:
        raise _unknown(spec)
    with suppress(KeyMissingError):
        load_llm(spec)


def _load_named(spec: str) -> Llm | None:
    # Modules that need the network are loaded only then: they take long to import.
    kind, _, rest = spec.partition(":")
    if ":" not in spec or kind not in _BUILT_IN:
        return from_provider(spec) if kind and rest else None
    from eunoe.llm import remote

    if kind == "anthropic":
        return remote.AnthropicLlm(rest.strip())
    return remote.from_spec(rest) if kind == "openai" else remote.from_url(spec)


def _unknown(spec: object) -> LlmError:
    shown = show(spec) if isinstance(spec, str) else f"an object of type {type(spec).__name__}"
    return LlmError(f"{shown} is not a language model; choose one of: {_CHOICES}")
