"""A stand-in for an LLM, which answers what a test tells it to."""

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

from eunoe.errors import LlmError
from eunoe.llm.contract import Prompt, Reply


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
