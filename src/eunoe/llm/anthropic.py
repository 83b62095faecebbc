"""Anthropic's Messages API, with the standard library alone."""

from __future__ import annotations

import json
import os
from typing import Any

from eunoe.errors import LlmError
from eunoe.llm.contract import Prompt
from eunoe.llm.price import Price
from eunoe.llm.remote import ATTEMPTS, KeyMissing, Remote, checked_base, checked_key, count
from eunoe.text.normalize import replace_surrogates

BASE_URL = "https://api.anthropic.com"

_VERSION = "2023-06-01"
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Anthropic(Remote):
    """A model behind the Messages API. A structured answer comes as the input of a tool it must call."""

    forms = ("tool", "")
    path = "/v1/messages"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        price: str | Price | None = None,
        timeout: float | None = None,
        attempts: int = ATTEMPTS,
    ) -> None:
        if not model.strip():
            raise LlmError('The model is missing: write "anthropic:MODEL"')
        base = checked_base(base_url or os.environ.get("ANTHROPIC_BASE_URL") or BASE_URL).removesuffix("/v1")
        key = checked_key(api_key, "ANTHROPIC_API_KEY")
        if base == BASE_URL and not key:
            raise KeyMissing("api.anthropic.com needs a key: set ANTHROPIC_API_KEY or pass api_key")
        super().__init__(
            f"anthropic:{model}",
            base,
            {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})},
            key=key,
            provider="anthropic" if base == BASE_URL else "",
            price=price,
            timeout=timeout,
            attempts=attempts,
        )
        self._model = model

    def _body(self, prompt: Prompt, form: str) -> dict[str, Any]:
        return {
            "model": self._model,
            "max_tokens": prompt.max_tokens,
            "system": replace_surrogates(prompt.system if form else prompt.task),
            "messages": [{"role": "user", "content": replace_surrogates(prompt.text)}],
            **({"temperature": 0} if self._temperature else {}),
            **_tool(prompt, form),
        }

    def _read(self, answer: Any) -> tuple[str, int, int]:
        parts = answer["content"]
        called = [json.dumps(part["input"]) for part in parts if part["type"] == "tool_use"]
        text = called[0] if called else "".join(part["text"] for part in parts if part["type"] == "text")
        usage = answer.get("usage") or {}
        return text, sum(count(usage.get(name)) for name in _READ), count(usage.get("output_tokens"))


def _tool(prompt: Prompt, form: str) -> dict[str, Any]:
    if not form:
        return {}
    tool = {"name": prompt.name, "description": "Gives the answer.", "input_schema": prompt.schema}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": prompt.name}}
