"""The models of one memory: a slow and a fast one, those that streams name, and what all of them take."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import fields, replace
from typing import Any

from eunoe.errors import LlmError
from eunoe.llm import FAST, load
from eunoe.llm.contract import Llm, Prompt, Reply
from eunoe.model.report import Usage
from eunoe.text.tokens import token_count

AT_ONCE = 4


class Models:
    """Every model of one memory, counted, with a limit on calls at once.

    >>> models = Models(lambda text: "Hello.")
    >>> models.slow.ask(Prompt("Be kind.", "Hi", operation="chat")).text
    'Hello.'
    >>> [(row.operation, row.model, row.calls, row.output_tokens) for row in models.drain()]
    [('chat', '<lambda>', 1, 2)]
    """

    def __init__(self, llm: Any = "auto", fast: Any = None, *, at_once: int | None = None) -> None:
        self._counts = _Counts()
        self._gate = threading.BoundedSemaphore(at_once or _at_once())
        self._named: dict[str, Llm | None] = {}
        self._loading = threading.Lock()
        self.slow = self._counted(load(llm))
        self.fast = self._faster(llm, fast)

    @property
    def names(self) -> str:
        """What the models are called, for people to read."""
        slow = self.slow.name if self.slow else ""
        fast = self.fast.name if self.fast and self.fast is not self.slow else ""
        return ", ".join([*([slow] if slow else []), *([f"{fast} (fast)"] if fast else [])])

    def named(self, spec: str) -> Llm | None:
        """The model that a stream's settings name, which may be "fast"; the slow one if they name none."""
        if spec in ("", "auto", "slow"):
            return self.slow
        if spec == "fast":
            return self.fast
        with self._loading:
            if spec not in self._named:
                self._named[spec] = self._counted(load(spec))
            return self._named[spec]

    def drain(self) -> list[Usage]:
        """What calls took since the last time."""
        return self._counts.drain()

    def _faster(self, llm: Any, fast: Any) -> Llm | None:
        if fast is None and llm != "auto":
            return self.slow
        found = load("auto" if fast is None else fast, FAST)
        return self._counted(found) if found or fast == "none" else self.slow

    def _counted(self, llm: Llm | None) -> Llm | None:
        return Counted(llm, self._counts, self._gate) if llm else None


class Counted:
    """A model whose calls are counted and wait for their turn."""

    def __init__(self, llm: Llm, counts: _Counts, gate: threading.BoundedSemaphore) -> None:
        self.name = llm.name
        self._llm = llm
        self._counts = counts
        self._gate = gate

    def ask(self, prompt: Prompt) -> Reply:
        if not self._gate.acquire(timeout=prompt.patience):
            self._counts.add(Usage(prompt.operation, self.name, calls=1, failures=1))
            raise LlmError(f"{self.name} was busy with other calls for longer than {prompt.patience} s")
        try:
            return self._asked(prompt)
        finally:
            self._gate.release()

    def _asked(self, prompt: Prompt) -> Reply:
        began = time.perf_counter()
        reply: Reply | None = None
        try:
            reply = self._llm.ask(prompt)
            return reply
        finally:
            self._counts.add(_usage(prompt, self.name, reply, time.perf_counter() - began))


class _Counts:
    """What calls took, by operation and model."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Usage] = {}
        self._lock = threading.Lock()

    def add(self, row: Usage) -> None:
        key = (row.operation, row.model)
        with self._lock:
            self._rows[key] = _sum(self._rows.get(key, Usage(*key)), row)

    def drain(self) -> list[Usage]:
        with self._lock:
            rows, self._rows = self._rows, {}
        return list(rows.values())


def _usage(prompt: Prompt, model: str, reply: Reply | None, seconds: float) -> Usage:
    if reply is None:
        return Usage(prompt.operation, model, calls=1, failures=1, seconds=seconds)
    read = reply.input_tokens or token_count(prompt.system) + token_count(prompt.text)
    written = reply.output_tokens or token_count(reply.text)
    return Usage(prompt.operation, model, 1, 0, read, written, seconds, reply.cost)


def _sum(one: Usage, other: Usage) -> Usage:
    names = [each.name for each in fields(Usage)[2:]]
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in names})


def _at_once() -> int:
    text = os.environ.get("EUNOE_LLM_CONCURRENCY", "").strip()
    if text and not (text.isascii() and text.isdecimal() and int(text)):
        raise LlmError(f"EUNOE_LLM_CONCURRENCY is {text!r}: it must be a number of calls, 1 or more")
    return int(text or AT_ONCE)
