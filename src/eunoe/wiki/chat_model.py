"""The chat model that wiki agents use, from the same words as Eunoe's other models."""

from __future__ import annotations

import os
import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from eunoe.errors import LlmError, MissingPackageError
from eunoe.llm import LLM_VARIABLE
from eunoe.net.endpoint import check_base_url

try:
    from langchain.chat_models import init_chat_model
    from langchain_core.language_models import BaseChatModel
except ImportError as error:
    raise MissingPackageError("eunoe.wiki needs LangChain and LangGraph: pip install 'eunoe[wiki]'") from error

_CHOICES: Final = (
    '"openai:MODEL", "anthropic:MODEL", "PROVIDER:MODEL" of LangChain, "openai:MODEL@http://host:port/v1" or '
    '"http://host:port/v1?model=NAME"'
)
_NO_KEY: Final = "none"
"""Own servers ask for no key; the client asks for some text."""


def load_chat_model(spec: str | BaseChatModel = "auto") -> BaseChatModel:
    """Return the chat model that a text names; "auto" is what EUNOE_LLM names. A model is returned as it is."""
    if isinstance(spec, BaseChatModel):
        return spec
    text = (os.environ.get(LLM_VARIABLE, "") if spec == "auto" else spec).strip()
    if text in ("", "none"):
        raise LlmError(f"a wiki needs a chat model: name one with --model or {LLM_VARIABLE}: {_CHOICES}")
    model, settings = _read_spec(text)
    try:
        loaded: BaseChatModel = init_chat_model(model, **settings)
    except ImportError as error:
        raise MissingPackageError(f"{model!r} needs a package of its provider: {_first_line(error)}") from error
    except Exception as error:  # each provider has errors of its own for a key that is missing
        raise LlmError(f"{model!r} cannot be used: {_first_line(error)}") from error
    return loaded


def _read_spec(text: str) -> tuple[str, dict[str, Any]]:
    """The words of LangChain for a model, and its settings."""
    if text.startswith(("http://", "https://")):
        return _at_address(text)
    if text.startswith("openai:") and "@http" in text:
        name, _, url = text.removeprefix("openai:").partition("@http")
        return _at_address(f"http{url}", name)
    if not re.fullmatch(r"[a-z][a-z0-9_-]*:\S+", text):
        raise LlmError(f"this names no chat model: {text!r}; write {_CHOICES}")
    return text, {}


def _at_address(url: str, name: str = "") -> tuple[str, dict[str, Any]]:
    query = dict(parse_qsl(urlsplit(url).query))
    name = name or query.get("model", "")
    if not name:
        raise LlmError(f"the address names no model; write {_CHOICES}")
    settings: dict[str, Any] = {
        "base_url": check_base_url(url.partition("?")[0], LlmError),
        "api_key": os.environ.get("OPENAI_API_KEY") or _NO_KEY,
    }
    if effort := query.get("effort"):
        settings["reasoning_effort"] = effort
    return f"openai:{name}", settings


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
