"""Any OpenAI-compatible /chat/completions endpoint, with the standard library alone."""

from __future__ import annotations

import json
import os
import threading
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from eunoe.errors import LlmError
from eunoe.llm.contract import Prompt
from eunoe.llm.price import Price
from eunoe.llm.remote import ATTEMPTS, KeyMissing, Remote, checked_base, checked_key, count
from eunoe.net.endpoint import Failed
from eunoe.text.normalize import replace_surrogates

BASE_URL = "https://api.openai.com/v1"

_USAGE = 'write "openai:MODEL", "openai:MODEL@http://host:port/v1" or "http://host:port/v1?model=NAME"'


class OpenAI(Remote):
    """A chat model behind an endpoint; without a model's name the first that the server lists."""

    forms = ("json_schema", "json_object", "")
    path = "/chat/completions"

    def __init__(
        self,
        model: str = "",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        price: str | Price | None = None,
        timeout: float | None = None,
        attempts: int = ATTEMPTS,
    ) -> None:
        base = checked_base(base_url or os.environ.get("OPENAI_BASE_URL") or BASE_URL)
        key = checked_key(api_key, "OPENAI_API_KEY")
        public = base == BASE_URL
        if public and not model:
            raise LlmError(f"The model is missing: {_USAGE}")
        if public and not key:
            raise KeyMissing("api.openai.com needs a key: set OPENAI_API_KEY or pass api_key")
        super().__init__(
            f"openai:{model}" if model else base,
            base,
            {"Authorization": f"Bearer {key}"} if key else {},
            key=key,
            provider="openai" if public else "",
            price=price,
            timeout=timeout,
            attempts=attempts,
        )
        self._model = model
        self._limit = "max_tokens"
        self._asking = threading.Lock()

    def _body(self, prompt: Prompt, form: str) -> dict[str, Any]:
        system = prompt.system if form == "json_schema" else prompt.task
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt.text}]
        return {
            "model": self._model or self._first(),
            "messages": [{**message, "content": replace_surrogates(message["content"])} for message in messages],
            self._limit: prompt.max_tokens,
            **({"temperature": 0} if self._temperature else {}),
            **_response_format(prompt, form),
        }

    def _first(self) -> str:
        """The first model that the server lists."""
        with self._asking:
            self._model = self._model or _listed(self._server.ask("/models"), self._server.base)
        return self._model

    def _adapt(self, refusal: str) -> bool:
        if self._limit == "max_tokens" and "max_completion_tokens" in refusal:
            self._limit = "max_completion_tokens"
            return True
        return super()._adapt(refusal)

    def _read(self, answer: Any) -> tuple[str, int, int]:
        message = answer["choices"][0]["message"]
        if message.get("refusal"):
            raise LlmError(f"{self.name} declined to answer")
        usage = answer.get("usage") or {}
        return _words(message.get("content")), count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))


def from_spec(rest: str) -> OpenAI:
    """MODEL, MODEL@URL or MODEL@URL?price=IN/OUT."""
    model, at, url = rest.partition("@http")
    if "@" in model or not model.strip():
        raise LlmError(f'"openai:{model}" names no model: {_USAGE}')
    return _at("http" + url, model.strip()) if at else OpenAI(model.strip())


def from_url(url: str) -> OpenAI:
    """URL, with ?model=NAME and &price=IN/OUT."""
    return _at(url, "")


def _at(url: str, model: str) -> OpenAI:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise LlmError(f"This is not the address of a model: {_USAGE}") from None
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := asked.keys() - {"model", "price"}:
        raise LlmError(
            f"Unknown in the address of a model: {', '.join(sorted(unknown))}; model and price may stand there"
        )
    base = urlunsplit(parts._replace(query=""))
    return OpenAI(model or asked.get("model", ""), base_url=base, price=asked.get("price"))


def _listed(answer: bytes, base: str) -> str:
    try:
        name = json.loads(answer)["data"][0]["id"]
    except (ValueError, TypeError, LookupError, RecursionError):
        name = None
    if not isinstance(name, str) or not name:
        raise Failed(f"{base}/models lists no model: name one with ?model=NAME")
    return name


def _response_format(prompt: Prompt, form: str) -> dict[str, Any]:
    if form == "json_schema" and prompt.schema is not None:
        wanted = {"name": prompt.name, "schema": prompt.schema, "strict": _is_strict(prompt.schema)}
        return {"response_format": {"type": form, "json_schema": wanted}}
    return {"response_format": {"type": form}} if form else {}


def _is_strict(schema: Any) -> bool:
    """Whether a schema obeys the narrower rules that a strict answer asks for."""
    if isinstance(schema, list | tuple):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    whole = schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties or ())
    return (schema.get("type") != "object" or whole) and all(map(_is_strict, _within(schema)))


def _within(schema: dict[str, Any]) -> list[Any]:
    return [*schema.get("properties", {}).values(), schema.get("items"), schema.get("anyOf")]


def _words(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content if isinstance(content, str) else ""
