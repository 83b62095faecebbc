"""Anthropic's Messages API, with the standard library alone."""

import json
from typing import Any, Final

from eunoe.llm.contract import Prompt
from eunoe.llm.remote import RemoteLlm
from eunoe.text.normalize import replace_surrogates

_VERSION: Final = "2023-06-01"
_INPUT_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicLlm(RemoteLlm):
    """A model behind the Messages API. A structured answer comes as the input of a tool it must call."""

    provider = "anthropic"
    public_url = "https://api.anthropic.com"
    path = "/v1/messages"
    forms = ("tool", "")

    def _headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def _body(self, prompt: Prompt, form: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": prompt.max_tokens,
            "system": replace_surrogates(prompt.system if form else prompt.instructions),
            "messages": [{"role": "user", "content": replace_surrogates(prompt.text)}],
        }
        if self._takes_temperature:
            body["temperature"] = 0
        if form:
            tool = {"name": prompt.name, "description": "Gives the answer.", "input_schema": prompt.schema}
            body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": prompt.name}}
        return body

    def _parse(self, answer: Any) -> tuple[str, Any, Any]:
        parts = answer["content"]
        inputs = [json.dumps(part["input"]) for part in parts if part["type"] == "tool_use"]
        text = inputs[0] if inputs else "".join(part["text"] for part in parts if part["type"] == "text")
        usage = answer.get("usage") or {}
        input_tokens = sum(count for name in _INPUT_COUNTS if isinstance(count := usage.get(name), int))
        return text, input_tokens, usage.get("output_tokens")
