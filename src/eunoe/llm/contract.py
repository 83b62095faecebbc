"""What an LLM is asked, what it answers, and what it must be able to do."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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
