"""Anthropic's Messages API, with the standard library alone."""

from typing import Any, Final

from eunoe.llm.contract import Prompt
from eunoe.llm.remote import RemoteLlm, arguments_text
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

    def _body(self, prompt: Prompt, form: str, max_tokens: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": max_tokens,
            "system": replace_surrogates(prompt.system if form else prompt.instructions),
            "messages": [{"role": "user", "content": replace_surrogates(prompt.text)}],
        }
        if self._takes_temperature:
            body["temperature"] = prompt.temperature
        if form:
            tool = {"name": prompt.name, "description": "Gives the answer.", "input_schema": prompt.schema}
            body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": prompt.name}}
        return body

    def _read(self, answer: Any) -> tuple[str, Any]:
        parts = answer["content"]
        inputs = [arguments_text(part["input"]) for part in parts if part["type"] == "tool_use"]
        text = inputs[0] if inputs else "".join(part["text"] for part in parts if part["type"] == "text")
        return text, answer.get("stop_reason")

    def _count_tokens(self, usage: dict[str, Any]) -> tuple[Any, Any]:
        counts = (usage.get(name) for name in _INPUT_COUNTS)
        return sum(count for count in counts if isinstance(count, int)), usage.get("output_tokens")
