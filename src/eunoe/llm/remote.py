"""LLMs behind HTTP: they learn what their server accepts, and say what calls cost."""

import json
import os
import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

from eunoe.errors import LlmError
from eunoe.llm.contract import Prompt, Reply
from eunoe.llm.price import Price, call_cost, configured_price
from eunoe.net.endpoint import Endpoint, EndpointError, check_base_url, find_key

_ATTEMPTS: Final = 4
_TIMEOUT_VARIABLE: Final = "EUNOE_LLM_TIMEOUT"
_DEFAULT_TIMEOUT_SECONDS: Final = 120.0
_REFUSED_STATUSES: Final = (400, 404, 415, 422, 501)
"""What servers answer to a body that they do not accept."""


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
        self._server = Endpoint(
            base,
            self._headers(key),
            key=key,
            timeout=timeout or _default_timeout(),
            attempts=attempts,
            find_reason=_find_reason,
        )

    def ask(self, prompt: Prompt) -> Reply:
        first = self._form if prompt.schema is not None else len(self.forms) - 1
        refusal: EndpointError | None = None
        for form in range(first, len(self.forms)):
            try:
                answer = self._request(prompt, self.forms[form])
            except EndpointError as error:
                if error.status not in _REFUSED_STATUSES:
                    raise LlmError(str(error)) from error
                refusal = refusal or error
                continue
            reply = self._reply(answer)
            if prompt.schema is not None:
                self._form = form
            return reply
        raise LlmError(str(refusal)) from refusal

    def _request(self, prompt: Prompt, form: str) -> bytes:
        """Return the answer; what the server names as not accepted is left out or put in another way, and stays so."""
        while True:
            try:
                return self._server.request(self.path, self._body(prompt, form), max_seconds=prompt.timeout)
            except EndpointError as error:
                if error.status not in _REFUSED_STATUSES or not self._adapt(error.refusal):
                    raise

    def _adapt(self, refusal: str) -> bool:
        """Return whether the body will be another one after this refusal."""
        if self._takes_temperature and "temperature" in refusal:
            self._takes_temperature = False
            return True
        return False

    def _reply(self, answer: bytes) -> Reply:
        try:
            content = json.loads(answer)
            text, *tokens = self._parse(content)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise LlmError(f"{self.name} gave something that is not an answer: {type(error).__name__}") from error
        if not text.strip():
            ended = json.dumps(content)
            is_cut = '"length"' in ended or '"max_tokens"' in ended
            why = ": it used up its tokens before it began" if is_cut else ""
            raise LlmError(f"{self.name} gave an empty answer{why}")
        input_tokens, output_tokens = (count if isinstance(count, int) and count > 0 else 0 for count in tokens)
        cost = call_cost(self._price, self._price_list, self._model, input_tokens, output_tokens)
        return Reply(text, input_tokens, output_tokens, cost)

    @abstractmethod
    def _headers(self, key: str) -> dict[str, str]: ...

    @abstractmethod
    def _body(self, prompt: Prompt, form: str) -> dict[str, Any]: ...

    @abstractmethod
    def _parse(self, answer: Any) -> tuple[str, Any, Any]:
        """Return the words of an answer, and the tokens read and written, as the server counts them."""


def _default_timeout() -> float:
    text = os.environ.get(_TIMEOUT_VARIABLE)
    try:
        seconds = float(text) if text else _DEFAULT_TIMEOUT_SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise LlmError(f"{_TIMEOUT_VARIABLE} is {text!r}: it must be a number of seconds")
    return seconds


def _find_reason(refusal: str) -> str:
    """Return why a server refused, in its own words; the rest may repeat the words of the prompt."""
    try:
        reason = json.loads(refusal)
    except (ValueError, RecursionError):
        return refusal
    for name in ("error", "message", "detail"):
        reason = reason.get(name, reason) if isinstance(reason, dict) else reason
    return reason if isinstance(reason, str) else "no reason that can be shown"
