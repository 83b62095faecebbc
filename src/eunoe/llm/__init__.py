"""The LLM behind one call. Without one everything still works."""

import os
import re
from contextlib import suppress
from typing import Any, Final

from eunoe.errors import LlmError
from eunoe.llm.adapters import adapt, from_provider
from eunoe.llm.contract import CutAnswerError, DeclinedError, Llm, Prompt, PromptTooLongError, Reply
from eunoe.model.arguments import show

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
    # Modules that need the network are loaded only then: urllib takes long to import.
    kind, _, rest = spec.partition(":")
    if kind in ("http", "https"):
        from eunoe.llm.openai import from_url

        return from_url(spec)
    if kind == "openai" and ":" in spec:
        from eunoe.llm.openai import from_spec

        return from_spec(rest)
    if kind == "anthropic" and ":" in spec:
        from eunoe.llm.anthropic import AnthropicLlm

        return AnthropicLlm(rest.strip())
    return from_provider(spec) if kind and rest else None


def _unknown(spec: object) -> LlmError:
    shown = show(spec) if isinstance(spec, str) else f"an object of type {type(spec).__name__}"
    return LlmError(f"{shown} is not a language model; choose one of: {_CHOICES}")
