"""LLMs behind HTTP: they learn what their server accepts, and say what calls cost."""

import json
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPResponse
from math import inf
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from eunoe.errors import LlmError
from eunoe.llm.contract import (
    AnswerError,
    Price,
    Prompt,
    Reply,
    call_cost,
    configured_price,
    find_reason,
    names_answer_limit,
    names_context,
    reason_words,
    refusal_error,
    whole_reply,
)
from eunoe.net.http import HttpClient, HttpError, Retry, check_base_url, find_key
from eunoe.text.normalize import replace_surrogates

_ATTEMPTS: Final = 4
_MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Some hundred thousand tokens, more than any answer of ours; read as JSON it takes some fifty times as much memory."""
_TIMEOUT_VARIABLE: Final = "EUNOE_LLM_TIMEOUT"
_DEFAULT_TIMEOUT_SECONDS: Final = 120.0
_REFUSED_STATUSES: Final = (400, 404, 415, 422, 501)
"""What servers answer to a body that they do not accept."""
_THINKING_TOKENS: Final = 8000
"""Room for the thoughts of a model that thinks before it answers: some thousand are usual."""
_MIN_ANSWER_TOKENS: Final = 256
"""Below this no answer of ours would be complete."""
_EFFORT_VARIABLE: Final = "EUNOE_LLM_EFFORT"


class KeyMissingError(LlmError):
    """A model needs a key that is not set here."""


class RemoteLlm(ABC):
    """A model behind an address. The public one of its provider needs a key and a model's name."""

    provider: ClassVar[str]
    public_url: ClassVar[str]
    path: ClassVar[str]
    forms: ClassVar[tuple[str, ...]]
    """The ways of asking for structured answers, the best one first; the last leaves it to the words of the prompt."""

    def __init__(
        self,
        model: str = "",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        price: str | Price | None = None,
        effort: str | None = None,
        timeout: float | None = None,
        attempts: int = _ATTEMPTS,
    ) -> None:
        variables = self.provider.upper()
        base = check_base_url(base_url or os.environ.get(f"{variables}_BASE_URL") or self.public_url, LlmError)
        base = base.removesuffix("/v1") if self.path.startswith("/v1/") else base
        key = find_key(api_key, f"{variables}_API_KEY", LlmError)
        is_public = base == self.public_url
        if is_public and not model:
            raise LlmError(f'The model is missing: write "{self.provider}:MODEL"')
        if is_public and not key:
            host = base.split("/")[2]
            raise KeyMissingError(f"{host} needs a key: set {variables}_API_KEY or pass api_key")
        self.name = f"{self.provider}:{model}" if model else base
        self._model = model
        self._price = price if isinstance(price, Price) else configured_price(price)
        self._price_list = self.provider if is_public else ""
        self._learning = threading.Lock()
        self._form = 0
        self._takes_temperature = True
        self._effort = configured_effort(effort)
        self._thinks = bool(self._effort)
        self._max_tokens = sys.maxsize
        self._server = HttpClient(
            base,
            headers={"Content-Type": "application/json", **self._headers(key)},
            secret=key,
            timeout=timeout or _default_timeout(),
            retry=Retry(attempts),
            max_answer_bytes=_MAX_ANSWER_BYTES,
            find_reason=find_reason,
        )

    def ask(self, prompt: Prompt) -> Reply:
        first = self._form if prompt.schema is not None else len(self.forms) - 1
        refusal: HttpError | None = None
        for form in range(first, len(self.forms)):
            try:
                answer = self._request(prompt, self.forms[form])
            except HttpError as error:
                failure = refusal_error(str(error), reason_words(error.refusal), error.status)
                if error.status not in _REFUSED_STATUSES or type(failure) is not LlmError:
                    raise failure from error
                refusal = refusal or error
                continue
            reply = self._reply(answer)
            if prompt.schema is not None:
                self._form = form
            return reply
        raise LlmError(str(refusal)) from refusal

    @property
    def model(self) -> str:
        """The model's name; empty where the server chooses it."""
        return self._model

    def open(self, body: Mapping[str, Any]) -> HTTPResponse:
        """Return the answer to a whole request of the server's own API, as it comes; raise HttpError."""
        return self._server.open("POST", self.path, json.dumps(body).encode())

    def _request(self, prompt: Prompt, form: str) -> bytes:
        """Return the answer; what the server names as not accepted is left out or put in another way, and stays so."""
        limit = min(prompt.max_tokens + self._thinks * _THINKING_TOKENS, self._max_tokens)
        while True:
            try:
                body = json.dumps(self._body(prompt, form, limit)).encode()
                return self._server.request("POST", self.path, body, within=prompt.timeout or inf)
            except HttpError as error:
                words = reason_words(error.refusal)
                if error.status not in _REFUSED_STATUSES:
                    raise
                if self._adapt(error.refusal):
                    continue
                if not names_answer_limit(words) or limit <= _MIN_ANSWER_TOKENS:
                    raise
                limit = max(limit // 2, _MIN_ANSWER_TOKENS)
                if not names_context(words):  # what fits into the context depends on the prompt
                    self._max_tokens = limit

    def _adapt(self, refusal: str) -> bool:
        """Return whether the body will be another one after this refusal."""
        if self._takes_temperature and "temperature" in refusal:
            self._takes_temperature = False
            return True
        return False

    def _reply(self, answer: bytes) -> Reply:
        reply = None
        try:
            content = json.loads(answer)
            usage = content.get("usage")
            counts = self._count_tokens(usage if isinstance(usage, dict) else {})
            read, written = (count if isinstance(count, int) and count > 0 else 0 for count in counts)
            cost = call_cost(self._price, self._price_list, self._model, read, written)
            reply = Reply("", read, written, cost)
            text, ending = self._read(content)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            message = f"{self.name} gave something that is not an answer: {type(error).__name__}"
            raise AnswerError(message, reply) from error
        return whole_reply(self.name, replace(reply, text=text), ending)

    @abstractmethod
    def _headers(self, key: str) -> dict[str, str]: ...

    @abstractmethod
    def _body(self, prompt: Prompt, form: str, max_tokens: int) -> dict[str, Any]: ...

    @abstractmethod
    def _read(self, answer: Any) -> tuple[str, Any]:
        """Return the words of an answer, and the server's word for how it ended."""

    @abstractmethod
    def _count_tokens(self, usage: dict[str, Any]) -> tuple[Any, Any]:
        """Return the tokens read and written, as the server counts them."""


def arguments_text(arguments: Any) -> str:
    """Return the arguments of a tool as JSON: they come as an object, or as JSON already."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def configured_effort(given: str | None = None) -> str:
    """Return how hard a model is to think, such as `low`, as given or as the environment says; empty if none does."""
    effort = (given or os.environ.get(_EFFORT_VARIABLE) or "").strip().lower()
    if effort and not (effort.isascii() and effort.isalpha()):
        raise LlmError(
            f"The effort {effort!r} must be one word that the model knows, such as low; see {_EFFORT_VARIABLE}"
        )
    return effort


def _default_timeout() -> float:
    text = os.environ.get(_TIMEOUT_VARIABLE)
    try:
        seconds = float(text) if text else _DEFAULT_TIMEOUT_SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise LlmError(f"{_TIMEOUT_VARIABLE} is {text!r}: it must be a number of seconds")
    return seconds


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
                    name = json.loads(self._server.request("GET", "/models"))["data"][0]["id"]
                except (ValueError, TypeError, LookupError, RecursionError):
                    name = None
                if not isinstance(name, str) or not name:
                    raise HttpError(f"{self._server.base}/models lists no model: name one with ?model=NAME")
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
