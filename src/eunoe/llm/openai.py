"""Any OpenAI-compatible /chat/completions endpoint, with the standard library alone."""

import json
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from eunoe.errors import LlmError
from eunoe.llm.contract import Prompt
from eunoe.llm.remote import RemoteLlm
from eunoe.net.endpoint import EndpointError
from eunoe.text.normalize import replace_surrogates

_SPECS: Final = 'write "openai:MODEL", "openai:MODEL@http://host:port/v1" or "http://host:port/v1?model=NAME"'


class OpenAILlm(RemoteLlm):
    """A chat model behind an endpoint; without a model's name the first that the server lists."""

    provider = "openai"
    public_url = "https://api.openai.com/v1"
    path = "/chat/completions"
    forms = ("json_schema", "json_object", "")

    _limit_field = "max_tokens"

    def _headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _body(self, prompt: Prompt, form: str) -> dict[str, Any]:
        contents = {"system": prompt.system if form == "json_schema" else prompt.instructions, "user": prompt.text}
        body: dict[str, Any] = {
            "model": self._model or self._first_model(),
            "messages": [{"role": role, "content": replace_surrogates(text)} for role, text in contents.items()],
            self._limit_field: prompt.max_tokens,
        }
        if self._takes_temperature:
            body["temperature"] = 0
        if form:
            body["response_format"] = {"type": form}
        if form == "json_schema":
            schema = {"name": prompt.name, "schema": prompt.schema, "strict": _is_strict(prompt.schema)}
            body["response_format"]["json_schema"] = schema
        return body

    def _first_model(self) -> str:
        with self._learning:
            if not self._model:
                try:
                    name = json.loads(self._server.request("/models"))["data"][0]["id"]
                except (ValueError, TypeError, LookupError, RecursionError):
                    name = None
                if not isinstance(name, str) or not name:
                    raise EndpointError(f"{self._server.base}/models lists no model: name one with ?model=NAME")
                self._model = name
        return self._model

    def _adapt(self, refusal: str) -> bool:
        if self._limit_field == "max_tokens" and "max_completion_tokens" in refusal:
            self._limit_field = "max_completion_tokens"
            return True
        return super()._adapt(refusal)

    def _parse(self, answer: Any) -> tuple[str, Any, Any]:
        message = answer["choices"][0]["message"]
        if message.get("refusal"):
            raise LlmError(f"{self.name} declined to answer")
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content)
        usage = answer.get("usage") or {}
        text = content if isinstance(content, str) else ""
        return text, usage.get("prompt_tokens"), usage.get("completion_tokens")


def from_spec(rest: str) -> OpenAILlm:
    """Make an LLM from MODEL, MODEL@URL or MODEL@URL?price=IN/OUT."""
    model, at, url = rest.partition("@http")
    if "@" in model or not model.strip():
        raise LlmError(f'"openai:{model}" names no model: {_SPECS}')
    return from_url("http" + url, model.strip()) if at else OpenAILlm(model.strip())


def from_url(url: str, model: str = "") -> OpenAILlm:
    """Make an LLM from URL, with ?model=NAME and &price=IN/OUT."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise LlmError(f"This is not the address of a model: {_SPECS}") from None
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := query.keys() - {"model", "price"}:
        raise LlmError(
            f"Unknown in the address of a model: {', '.join(sorted(unknown))}; model and price may stand there"
        )
    base = urlunsplit(parts._replace(query=""))
    return OpenAILlm(model or query.get("model", ""), base_url=base, price=query.get("price"))


def _is_strict(schema: Any) -> bool:
    """Return whether a schema obeys the narrower rules that a strict answer asks for."""
    if isinstance(schema, list | tuple):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties", {})
    is_whole = schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties)
    inner = [*properties.values(), schema.get("items"), schema.get("anyOf")]
    return (schema.get("type") != "object" or is_whole) and all(map(_is_strict, inner))
