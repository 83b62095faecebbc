"""Every provider that pydantic-ai knows, where that extra is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from eunoe.errors import LlmError
from eunoe.llm import price as prices
from eunoe.llm.adapters import Adapted
from eunoe.llm.contract import Prompt, Reply

if TYPE_CHECKING:
    from pydantic_ai.models import Model


def from_spec(spec: str) -> Adapted:
    """PROVIDER:MODEL."""
    if find_spec("pydantic_ai") is None:
        raise LlmError(f"{spec!r} needs pydantic-ai: pip install 'eunoe[llm]' and the client of the provider")
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    try:
        return from_model(infer_model(spec), spec)
    except (UserError, ImportError, ValueError) as error:
        raise LlmError(f"{spec!r} names no model that can be used: {error}") from error


def from_model(model: Model[Any], name: str | None = None) -> Adapted:
    """A model from one of pydantic-ai's."""
    from pydantic_ai.direct import model_request

    price = prices.given(None)

    async def ask(prompt: Prompt) -> Reply:
        settings: Any = {"max_tokens": prompt.max_tokens, **({"timeout": prompt.patience} if prompt.patience else {})}
        answer = await model_request(model, _messages(prompt), model_settings=settings)
        read, written = answer.usage.input_tokens, answer.usage.output_tokens
        listed = prices.listed(answer.provider_name or "", answer.model_name or "", read, written)
        return Reply(_words(answer), read, written, price.of(read, written) if price else listed)

    return Adapted(name or f"{model.system}:{model.model_name}", ask)


def _messages(prompt: Prompt) -> Any:
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart

    return [ModelRequest(parts=[SystemPromptPart(prompt.task), UserPromptPart(prompt.text)])]


def _words(answer: Any) -> str:
    from pydantic_ai.messages import TextPart

    return "".join(part.content for part in answer.parts if isinstance(part, TextPart))
