"""The chat model that wiki agents use, from the same words as Eunoe's other models."""

from __future__ import annotations

import os
import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from eunoe.errors import LlmError, MissingPackageError
from eunoe.llm import LLM_VARIABLE, load_llm
from eunoe.llm.remote import KeyMissingError
from eunoe.net.endpoint import check_base_url

try:
    from langchain.chat_models import init_chat_model
    from langchain_core.language_models import BaseChatModel
    from pydantic import ValidationError
except ImportError as error:
    raise MissingPackageError("eunoe.apps.wiki needs LangChain and LangGraph: pip install 'eunoe[wiki]'") from error

_CHOICES: Final = (
    '"openai:MODEL", "anthropic:MODEL", "PROVIDER:MODEL" of LangChain, "openai:MODEL@http://host:port/v1" or '
    '"http://host:port/v1?model=NAME"'
)
_MAX_REASON_CHARACTERS: Final = 300
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
        provider, _, name = model.partition(":")
        loaded: BaseChatModel = init_chat_model(name, model_provider=provider, **settings)
    except ImportError as error:
        raise MissingPackageError(f"{model!r} needs a package of its provider: {_reason(error)}") from error
    except Exception as error:  # each provider has errors of its own for a key that is missing
        raise LlmError(f"{model!r} cannot be used: {_reason(error)}") from error
    return loaded


def _read_spec(text: str) -> tuple[str, dict[str, Any]]:
    """The words of LangChain for a model, and its settings."""
    kind, _, rest = text.partition(":")
    if kind in ("http", "https"):
        return _at_address(text)
    if kind == "openai" and "@http" in rest:
        name, _, url = rest.partition("@http")
        return _at_address(f"http{url}", name)
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", kind) or not rest:
        raise LlmError(f"this names no chat model: {text!r}; write {_CHOICES}")
    if kind in ("openai", "anthropic"):
        _check_key(text)
    name, _, query = rest.partition("?")
    return f"{kind}:{name}", _effort(query)


def _at_address(url: str, name: str = "") -> tuple[str, dict[str, Any]]:
    query = urlsplit(url).query
    name = name or dict(parse_qsl(query)).get("model", "")
    if not name:
        raise LlmError(f"the address names no model; write {_CHOICES}")
    base = check_base_url(url.partition("?")[0], LlmError)
    key = os.environ.get("OPENAI_API_KEY") or _NO_KEY
    return f"openai:{name}", {"base_url": base, "api_key": key, **_effort(query)}


def _effort(query: str) -> dict[str, Any]:
    effort = dict(parse_qsl(query)).get("effort")
    return {"reasoning_effort": effort} if effort else {}


def _check_key(text: str) -> None:
    """Their clients would ask without a key."""
    try:
        load_llm(text)
    except KeyMissingError:
        raise LlmError(f"{text!r} needs a key: set {text.partition(':')[0].upper()}_API_KEY") from None


def _reason(error: Exception) -> str:
    """What the error of a provider says, on one line."""
    text = "; ".join(each["msg"] for each in error.errors()) if isinstance(error, ValidationError) else str(error)
    return " ".join(text.split())[:_MAX_REASON_CHARACTERS] or type(error).__name__
