"""The language model: a guest behind one seam. Without one everything still works."""

from __future__ import annotations

import os
import re
from typing import Any

from eunoe.errors import LlmError
from eunoe.llm.contract import Llm, Prompt, Reply

__all__ = ["CHOICES", "FAST", "SLOW", "Llm", "Prompt", "Reply", "check_model_spec", "load"]

SLOW, FAST = "EUNOE_LLM", "EUNOE_LLM_FAST"
_BUILT_IN = ("http", "https", "openai", "anthropic")
_PROVIDED = re.compile(rf"(?!(?:{'|'.join(_BUILT_IN)}):)[a-z][\w./-]*:[^\s:](?:\S*[^\s:])?", re.IGNORECASE)
CHOICES = (
    '"auto"',
    '"none"',
    '"openai:MODEL"',
    '"openai:MODEL@http://host:port/v1"',
    '"http://host:port/v1?model=NAME"',
    '"anthropic:MODEL"',
    '"PROVIDER:MODEL" of pydantic-ai',
    "a function from text to text",
    "a LangChain or pydantic-ai model object",
    "an object with `ask`",
)


def load(spec: Any = "auto", variable: str = SLOW) -> Llm | None:
    """The model a setting names, or None for none at all; "auto" is what the environment variable names.

    >>> load(lambda text: text.upper()).ask(Prompt("shout", "hello")).text
    'SHOUT\\n\\nHELLO'
    """
    if spec == "auto":
        spec = os.environ.get(variable, "").strip() or None
    if spec is None or spec == "none":
        return None
    return _named(spec.strip()) if isinstance(spec, str) else _given(spec)


def check_model_spec(spec: str) -> None:
    """Refuses what can name no model anywhere. A key or an extra that is missing here may be there elsewhere, and which
    providers pydantic-ai knows depends on its version.

    >>> check_model_spec("anthropic:claude"), check_model_spec("groq:llama")
    (None, None)
    """
    if spec in ("", "auto", "slow", "fast", "none") or _PROVIDED.fullmatch(spec.strip()):
        return
    from eunoe.llm.remote import KeyMissing

    kind = spec.strip().partition(":")[0]
    try:
        if kind not in _BUILT_IN:
            raise _unknown(spec)
        _named(spec.strip())
    except KeyMissing:
        return


def _named(spec: str) -> Llm:
    kind, colon, rest = spec.partition(":")
    if kind in ("http", "https"):
        from eunoe.llm.openai import from_url

        return from_url(spec)
    if kind == "openai" and colon:
        from eunoe.llm.openai import from_spec

        return from_spec(rest)
    if kind == "anthropic" and colon:
        from eunoe.llm.anthropic import Anthropic

        return Anthropic(rest.strip())
    if kind and rest:
        from eunoe.llm import pydantic_ai

        return pydantic_ai.from_spec(spec)
    raise _unknown(spec)


def _given(spec: Any) -> Llm:
    from eunoe.llm.adapters import adapt

    model = adapt(spec)
    if model is None:
        raise _unknown(spec)
    return model


def _unknown(spec: object) -> LlmError:
    shown = repr(spec) if isinstance(spec, str) else f"an object of type {type(spec).__name__}"
    return LlmError(f"{shown} is not a language model; choose one of: {', '.join(CHOICES)}")
