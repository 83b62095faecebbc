"""What models behind HTTP have in common: they learn what their server accepts, and say what calls cost."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from eunoe.errors import LlmError
from eunoe.llm import price as prices
from eunoe.llm.contract import Prompt, Reply
from eunoe.llm.price import Price
from eunoe.net.endpoint import Endpoint, Failed, is_plain_url, is_visible_ascii

TIMEOUT, ATTEMPTS = 120.0, 4

_REFUSED = (400, 404, 415, 422, 501)


class KeyMissing(LlmError):
    """A model needs a key that is not set here."""


class Remote(ABC):
    """A model behind an address."""

    forms: tuple[str, ...]
    """The ways of asking for structured answers, the best one first; the last leaves it to the words of the prompt."""
    path: str

    def __init__(
        self,
        name: str,
        base: str,
        headers: Mapping[str, str],
        *,
        key: str,
        provider: str,
        price: str | Price | None,
        timeout: float | None,
        attempts: int,
    ) -> None:
        self.name = name
        self._provider = provider
        self._price = price if isinstance(price, Price) else prices.given(price)
        self._form = 0
        self._temperature = True
        patience = timeout or _seconds("EUNOE_LLM_TIMEOUT", TIMEOUT)
        self._server = Endpoint(base, headers, key=key, timeout=patience, attempts=attempts, reading=_reason)

    def ask(self, prompt: Prompt) -> Reply:
        forms = range(self._form, len(self.forms)) if prompt.schema is not None else [len(self.forms) - 1]
        refused: Failed | None = None
        for form in forms:
            try:
                reply = self._reply(prompt, self._answer(prompt, self.forms[form]))
            except _Refused as trouble:
                refused = refused or trouble.failed
                continue
            if prompt.schema is not None:
                self._form = form
            return reply
        raise LlmError(str(refused)) from refused

    def _answer(self, prompt: Prompt, form: str) -> bytes:
        try:
            return self._accepted(prompt, form)
        except Failed as trouble:
            if trouble.status in _REFUSED:
                raise _Refused(trouble) from trouble
            raise LlmError(str(trouble)) from trouble

    def _accepted(self, prompt: Prompt, form: str) -> bytes:
        """The answer; what the server names as not accepted is left out or put in another way, and stays so."""
        while True:
            try:
                return self._server.ask(self.path, self._body(prompt, form), patience=prompt.patience)
            except Failed as trouble:
                if trouble.status not in _REFUSED or not self._adapt(trouble.said):
                    raise

    def _adapt(self, refusal: str) -> bool:
        """Whether the body will be another one after this refusal."""
        if self._temperature and "temperature" in refusal:
            self._temperature = False
            return True
        return False

    def _reply(self, prompt: Prompt, answer: bytes) -> Reply:
        try:
            read = json.loads(answer)
            text, input_tokens, output_tokens = self._read(read)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise LlmError(f"{self.name} gave something that is not an answer: {type(error).__name__}") from error
        if not text.strip():
            raise LlmError(f"{self.name} gave an empty answer{_why_empty(read)}")
        return Reply(text, input_tokens, output_tokens, self._cost(input_tokens, output_tokens))

    def _cost(self, input_tokens: int, output_tokens: int) -> float:
        if self._price is not None:
            return self._price.of(input_tokens, output_tokens)
        return prices.listed(self._provider, self.name.partition(":")[2], input_tokens, output_tokens)

    @abstractmethod
    def _body(self, prompt: Prompt, form: str) -> dict[str, Any]: ...

    @abstractmethod
    def _read(self, answer: Any) -> tuple[str, int, int]:
        """The words of an answer, and the tokens read and written."""


class _Refused(Exception):
    def __init__(self, failed: Failed) -> None:
        super().__init__(str(failed))
        self.failed = failed


def checked_base(base: str) -> str:
    if not is_plain_url(base):
        raise LlmError("The address of a model must look like http://host:port/v1, with no user or password")
    return base.rstrip("/")


def checked_key(key: str | None, variable: str) -> str:
    key = (key or os.environ.get(variable) or "").strip()
    if not is_visible_ascii(key):
        raise LlmError(f"The API key has characters that no key has; check {variable} or api_key")
    return key


def count(value: Any) -> int:
    """A number of tokens as a server gives it; 0 if it gives none."""
    return value if isinstance(value, int) and value > 0 else 0


def _seconds(variable: str, default: float) -> float:
    text = os.environ.get(variable)
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise LlmError(f"{variable} is {text!r}: it must be a number of seconds")
    return seconds


def _reason(refusal: str) -> str:
    """Why a server refused, in its own words; the rest of what it says may repeat the words of the prompt."""
    try:
        said = json.loads(refusal)
    except (ValueError, RecursionError):
        return refusal
    for name in ("error", "message", "detail"):
        said = said.get(name, said) if isinstance(said, dict) else said
    return said if isinstance(said, str) else "no reason that can be shown"


def _why_empty(answer: Any) -> str:
    ended = json.dumps(answer)
    return ": it used up its tokens before it began" if '"length"' in ended or '"max_tokens"' in ended else ""
