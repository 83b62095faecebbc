"""A stand-in for a model, which answers what a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

from eunoe.errors import LlmError
from eunoe.llm.contract import Prompt, Reply


class Scripted:
    """Answers from a list in turn, or from a function of the prompt; keeps the prompts it was asked.

    An answer is text, a Reply, an exception to raise, or anything else that JSON can hold.

    >>> model = Scripted(["Hello.", {"facts": []}])
    >>> model.ask(Prompt("Be kind.", "Hi")).text, model.ask(Prompt("List facts.", "Hi")).text
    ('Hello.', '{"facts": []}')
    >>> [prompt.text for prompt in model.prompts]
    ['Hi', 'Hi']
    """

    def __init__(self, answers: Iterable[Any] | Callable[[Prompt], Any] = (), name: str = "scripted") -> None:
        self.name = name
        self.prompts: list[Prompt] = []
        self._function = answers if callable(answers) else None
        self._answers = iter(() if callable(answers) else answers)
        self._lock = threading.Lock()

    def ask(self, prompt: Prompt) -> Reply:
        with self._lock:
            self.prompts.append(prompt)
            answer = None if self._function else self._next()
        return _reply(self._function(prompt) if self._function else answer)

    def _next(self) -> Any:
        for answer in self._answers:
            return answer
        raise LlmError(f"The script of {self.name} has no answer left")


def _reply(answer: Any) -> Reply:
    if isinstance(answer, BaseException):
        raise answer
    if isinstance(answer, Reply):
        return answer
    return Reply(answer if isinstance(answer, str) else json.dumps(answer))
