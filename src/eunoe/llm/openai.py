"""Any OpenAI-compatible /chat/completions endpoint, with the standard library alone."""

import json
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from eunoe.errors import LlmError
from eunoe.llm.contract import Prompt
from eunoe.llm.remote import RemoteLlm, arguments_text
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

    def _body(self, prompt: Prompt, form: str, max_tokens: int) -> dict[str, Any]:
        contents = {"system": prompt.system if form == "json_schema" else prompt.instructions, "user": prompt.text}
        body: dict[str, Any] = {
            "model": self._model or self._first_model(),
            "messages": [{"role": role, "content": replace_surrogates(text)} for role, text in contents.items()],
            self._limit_field: max_tokens,
        }
        if self._takes_temperature:
            body["temperature"] = prompt.temperature
        if self._effort:
            body["reasoning_effort"] = self._effort
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
        if self._effort and "reasoning_effort" in refusal:
            self._effort = ""
            return True
        return super()._adapt(refusal)

    def _read(self, answer: Any) -> tuple[str, Any]:
        choice = answer["choices"][0]
        message = choice["message"]
        content, calls = message.get("content"), message.get("tool_calls")
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content)
        text = content if isinstance(content, str) else ""
        if not text.strip() and calls:
            text = arguments_text(calls[0]["function"]["arguments"])
        if message.get("reasoning_content") or text.lstrip().startswith("<think>"):
            self._thinks = True
        return text, "refusal" if message.get("refusal") else choice.get("finish_reason")

    def _count_tokens(self, usage: dict[str, Any]) -> tuple[Any, Any]:
        if (usage.get("completion_tokens_details") or {}).get("reasoning_tokens"):
            self._thinks = True
        return usage.get("prompt_tokens"), usage.get("completion_tokens")


def from_spec(rest: str) -> OpenAILlm:
    """Make an LLM from MODEL or MODEL@URL, each with ?price=IN/OUT and &effort=WORD."""
    named, at, url = rest.partition("@http")
    model, _, query = named.partition("?")
    if "@" in model or not model.strip():
        raise LlmError(f'"openai:{model}" names no model: {_SPECS}')
    return from_url("http" + url, model.strip()) if at else OpenAILlm(model.strip(), **_read_query(query))


def from_url(url: str, model: str = "") -> OpenAILlm:
    """Make an LLM from URL, with ?model=NAME, &price=IN/OUT and &effort=WORD."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise LlmError(f"This is not the address of a model: {_SPECS}") from None
    query = _read_query(parts.query, "model")
    named = query.pop("model", "")
    return OpenAILlm(model or named, base_url=urlunsplit(parts._replace(query="")), **query)


def _read_query(text: str, *names: str) -> dict[str, Any]:
    query, known = dict(parse_qsl(text, keep_blank_values=True)), (*names, "price", "effort")
    if unknown := query.keys() - set(known):
        raise LlmError(
            f"Unknown in the address of a model: {', '.join(sorted(unknown))}; {', '.join(known)} may stand there"
        )
    return query


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
