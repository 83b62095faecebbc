"""What an LLM is asked, what it answers, and what it must be able to do."""

import json
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Protocol

from eunoe.errors import LlmError


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to an LLM."""

    system: str
    """What it is to do. Written by us alone: nothing that was said or recalled stands here."""
    text: str
    """What it is to do it with."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer; None for plain text."""
    name: str = "answer"
    max_tokens: int = 2000
    """How long the answer may be. A model that thinks first gets more room for that."""
    operation: str = ""
    """What it is for, in the counts: extraction, consolidation, graph, query, answer, chat, test."""
    timeout: float | None = None
    """Seconds to wait at most, attempts and pauses included; None: what the model's own settings allow."""
    temperature: float = 0.0
    """How freely it is answered. Models that take none, or are objects of other libraries, keep their own."""

    @property
    def instructions(self) -> str:
        """What to do, with the form of the answer spelled out for a model that is not held to it otherwise."""
        if self.schema is None:
            return self.system
        return f"{self.system}\n\nAnswer with JSON alone, in the form of this JSON Schema:\n{json.dumps(self.schema)}"


@dataclass(frozen=True, slots=True)
class Reply:
    """What an LLM answered, and what that took."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    finish_reason: str = "stop"
    """How it ended, in the model's own word. One that was cut is mostly not given, but raises CutAnswerError."""


class AnswerError(LlmError):
    """A model answered, and that is no answer."""

    def __init__(self, message: str, reply: Reply | None = None) -> None:
        super().__init__(message)
        self.reply = reply
        """What came and what it took: it is billed all the same. None if nothing was."""


class CutAnswerError(AnswerError):
    """The answer breaks off at the limit of tokens."""


class DeclinedError(AnswerError):
    """The model, or a filter in front of it, refuses to answer this prompt."""


class PromptTooLongError(LlmError):
    """The prompt does not fit into the model's context."""


class Llm(Protocol):
    """A model behind one call. It may block, may be called from many threads, and raises LlmError when it fails."""

    name: str

    def ask(self, prompt: Prompt) -> Reply: ...


class ScriptedLlm:
    """Answers from a list in turn, or from a function of the prompt; keeps the prompts it was asked.

    An answer is text, a Reply, an exception to raise, or anything else that JSON can hold.

    >>> llm = ScriptedLlm(["Hello.", {"facts": []}])
    >>> llm.ask(Prompt("Be kind.", "Hi")).text, llm.ask(Prompt("List facts.", "Hi")).text
    ('Hello.', '{"facts": []}')
    >>> [prompt.text for prompt in llm.prompts]
    ['Hi', 'Hi']
    """

    def __init__(self, answers: Iterable[Any] | Callable[[Prompt], Any] = (), name: str = "scripted") -> None:
        self.name = name
        self.prompts: list[Prompt] = []
        self._function = answers if callable(answers) else None
        self._answers = iter(() if callable(answers) else answers)
        self._lock = threading.Lock()

    def ask(self, prompt: Prompt) -> Reply:
        none_left = LlmError(f"The script of {self.name} has no answer left")
        with self._lock:
            self.prompts.append(prompt)
            answer = None if self._function else next(self._answers, none_left)
        if self._function:
            answer = self._function(prompt)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Reply):
            return answer
        return Reply(answer if isinstance(answer, str) else json.dumps(answer))


_CUT: Final = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
_DECLINED: Final = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "recitation", "prohibited_content", "blocklist", "spii"}
    | {"guardrail_intervened"}
)
"""The words of all providers for the two ways in which an answer ends too soon."""
_TOO_LONG_STATUS: Final = 413
_TOO_LONG: Final = re.compile(
    r"context[ _](?:length|window|size|limit)|(?:prompt|input|request) (?:is )?too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|token count[^.]{0,40} exceeds|reduce (?:the|your) (?:length|prompt)"
    r"|tokens \+ .?max_new_tokens|exceed_context",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(r"content[ _](?:filter|management|policy)|usage policy|flagged", re.IGNORECASE)
_ANSWER_LIMIT: Final = re.compile(r"max_?(?:completion_|output_|new_)?tokens|output tokens|completion", re.IGNORECASE)


def whole_reply(name: str, reply: Reply, ending: object) -> Reply:
    """Return an answer that is whole; raise for one that was cut or declined, or is empty, with what it took."""
    word = str(ending or "").lower().rpartition(".")[2]
    if word in _CUT:
        raise CutAnswerError(f"{name} used up its tokens before its answer was complete", reply)
    if word in _DECLINED:
        raise DeclinedError(f"{name} declined to answer", reply)
    if not reply.text.strip():
        raise AnswerError(f"{name} gave an empty answer", reply)
    return reply


def refusal_error(message: str, words: str, status: int = 0) -> LlmError:
    """Return the error for what a server says in place of an answer."""
    if status == _TOO_LONG_STATUS or _TOO_LONG.search(words):
        return PromptTooLongError(message)
    return DeclinedError(message) if _FILTERED.search(words) else LlmError(message)


def names_answer_limit(words: str) -> bool:
    """Return whether a refusal may go away if the answer is given less room."""
    return bool(_ANSWER_LIMIT.search(words))


def names_context(words: str) -> bool:
    """Return whether a refusal is about all that the model can hold at once."""
    return bool(_TOO_LONG.search(words))


def find_reason(refusal: str) -> str:
    """Return why a server refused, in its own words; the rest may repeat the words of the prompt."""
    return _read_reason(refusal)[0]


def reason_words(refusal: str) -> str:
    """Return why a server refused, with its codes."""
    return " ".join(_read_reason(refusal))


def _read_reason(refusal: str) -> list[str]:
    try:
        reason = json.loads(refusal)
    except (ValueError, RecursionError):
        return [refusal]
    codes: list[Any] = []
    for name in ("error", "message", "detail"):
        if isinstance(reason, dict):
            codes += [reason.get("code"), reason.get("type")]
            reason = reason.get(name, reason)
    shown = reason if isinstance(reason, str) else "no reason that can be shown"
    return [shown, *(code for code in codes if isinstance(code, str))]


class Price(NamedTuple):
    """The price of a million tokens read and of a million written."""

    input: float
    output: float


def configured_price(text: str | None = None) -> Price | None:
    """Return the price in a setting, else in the environment, else None.

    >>> configured_price("0.25/2")
    Price(input=0.25, output=2.0)
    """
    text = text or os.environ.get("EUNOE_LLM_PRICE")
    if not text:
        return None
    try:
        price = Price(*map(float, text.split("/")))
    except (ValueError, TypeError):
        price = Price(-1, -1)
    if not all(math.isfinite(part) and part >= 0 for part in price):
        raise LlmError(f"The price {text!r} must be written IN/OUT, the prices of a million tokens, such as 0.25/2")
    return price


def call_cost(price: Price | None, provider: str, model: str, input_tokens: int, output_tokens: int) -> float:
    """Return what a call costs by a price, else by the list; 0 where there is no list, or the model is not in it."""
    if price:
        return (input_tokens * price.input + output_tokens * price.output) / 1_000_000
    if not provider or find_spec("genai_prices") is None:
        return 0.0
    from genai_prices import Usage, calc_price

    try:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        return float(calc_price(usage, model, provider_id=provider).total_price)
    except LookupError:
        return 0.0
