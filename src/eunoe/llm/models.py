"""The LLMs of one memory: a slow and a fast one, those that streams name, and what all of them take."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

from eunoe.errors import LlmError
from eunoe.llm import FAST_LLM_VARIABLE, load_llm
from eunoe.llm.contract import AnswerError, CutAnswerError, Llm, Prompt, Reply
from eunoe.model.report import Usage
from eunoe.text.tokens import token_count

_CONCURRENCY_VARIABLE: Final = "EUNOE_LLM_CONCURRENCY"
_DEFAULT_CONCURRENCY: Final = 4
MAX_ROOM_TOKENS: Final = 32_000
"""What an answer that was cut off is given at most: what most models can write. One that still goes on does not end."""
_ROOM_FACTORS: Final = (1, 2, 4)
_FULL_SHARE: Final = 0.9
"""Servers stop a few tokens before or after the limit."""
_COUNTS: Final = tuple(field.name for field in fields(Usage) if field.name not in ("operation", "model"))


class Models:
    """Every LLM of one memory, counted, with a limit on calls at once.

    >>> models = Models(lambda text: "Hello.")
    >>> models.slow.ask(Prompt("Be kind.", "Hi", operation="chat")).text
    'Hello.'
    >>> [(usage.operation, usage.model, usage.calls, usage.output_tokens) for usage in models.drain()]
    [('chat', '<lambda>', 1, 2)]
    """

    def __init__(self, llm: Any = "auto", fast: Any = None, *, concurrency: int | None = None) -> None:
        self._usage: dict[tuple[str, str], Usage] = {}
        self._counting = threading.Lock()
        self._gate = threading.BoundedSemaphore(concurrency or _concurrency())
        self._by_spec: dict[str, Llm | None] = {}
        self._loading = threading.Lock()
        self.slow = self._load(llm)
        self.fast = self.slow
        if fast is not None or llm == "auto":
            found = self._load("auto" if fast is None else fast, FAST_LLM_VARIABLE)
            self.fast = found if found or fast == "none" else self.slow

    @property
    def names(self) -> str:
        """What the LLMs are called, for people to read."""
        names = [self.slow.name] if self.slow else []
        if self.fast and self.fast is not self.slow:
            names.append(f"{self.fast.name} (fast)")
        return ", ".join(names)

    def get(self, spec: str) -> Llm | None:
        """Return the LLM that a stream's settings name, which may be "fast"; the slow one if they name none."""
        if spec in ("", "auto", "slow"):
            return self.slow
        if spec == "fast":
            return self.fast
        with self._loading:
            if spec not in self._by_spec:
                self._by_spec[spec] = self._load(spec)
            return self._by_spec[spec]

    def drain(self) -> list[Usage]:
        """Return what calls took since the last time, by operation and LLM."""
        with self._counting:
            usage, self._usage = self._usage, {}
        return list(usage.values())

    def _load(self, spec: Any, *variable: str) -> Llm | None:
        llm = load_llm(spec, *variable)
        return _CountedLlm(llm, self._add, self._gate) if llm else None

    def _add(self, usage: Usage) -> None:
        key = (usage.operation, usage.model)
        with self._counting:
            total = self._usage.get(key, Usage(*key))
            self._usage[key] = replace(total, **{name: getattr(total, name) + getattr(usage, name) for name in _COUNTS})


class _CountedLlm:
    """An LLM whose calls are counted and wait for their turn."""

    def __init__(self, llm: Llm, add: Callable[[Usage], None], gate: threading.BoundedSemaphore) -> None:
        self.name = llm.name
        self._llm = llm
        self._add = add
        self._gate = gate

    def ask(self, prompt: Prompt) -> Reply:
        """Ask, and after an answer that was cut off ask again with more room."""
        end = None if prompt.timeout is None else time.monotonic() + prompt.timeout
        cut: CutAnswerError | None = None
        for factor in _ROOM_FACTORS:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            room = max(min(prompt.max_tokens * factor, MAX_ROOM_TOKENS), prompt.max_tokens)
            try:
                return self._ask_once(replace(prompt, max_tokens=room, timeout=left))
            except CutAnswerError as error:
                cut = error
                if room >= MAX_ROOM_TOKENS or not _used_up(error.reply, room):
                    raise
            except LlmError:
                if cut is None:
                    raise
                break  # with so much room it does not answer at all
        assert cut is not None
        raise cut

    def _ask_once(self, prompt: Prompt) -> Reply:
        usage = Usage(prompt.operation, self.name, calls=1, failures=1)
        if not self._gate.acquire(timeout=prompt.timeout):
            self._add(usage)
            raise LlmError(f"{self.name} was busy with other calls for longer than {prompt.timeout} s")
        start, billed = time.perf_counter(), None
        try:
            billed = self._llm.ask(prompt)
            usage = replace(usage, failures=0)
            return billed
        except AnswerError as error:
            billed = error.reply
            raise
        finally:
            self._gate.release()
            self._add(replace(_with_tokens(usage, prompt, billed), seconds=time.perf_counter() - start))


def _used_up(reply: Reply | None, room: int) -> bool:
    """Whether an answer ended where its room did; more of it does not help one that a smaller limit cut off."""
    return reply is None or not reply.output_tokens or reply.output_tokens >= _FULL_SHARE * room


def _with_tokens(usage: Usage, prompt: Prompt, reply: Reply | None) -> Usage:
    """Count what a reply took, estimated where the model does not say."""
    if reply is None:
        return usage
    read = reply.input_tokens or token_count(prompt.system) + token_count(prompt.text)
    return replace(
        usage, input_tokens=read, output_tokens=reply.output_tokens or token_count(reply.text), cost=reply.cost
    )


def _concurrency() -> int:
    text = os.environ.get(_CONCURRENCY_VARIABLE, "").strip()
    if text and not (text.isascii() and text.isdecimal() and int(text)):
        raise LlmError(f"{_CONCURRENCY_VARIABLE} is {text!r}: it must be a number of calls, 1 or more")
    return int(text or _DEFAULT_CONCURRENCY)
