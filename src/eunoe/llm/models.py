"""The models of one memory: a slow and a fast one, those that streams name, and what all of them take."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from eunoe.errors import LlmError
from eunoe.llm import FAST, load
from eunoe.llm.contract import Llm, Prompt, Reply
from eunoe.store.books import UsageRow
from eunoe.text.normalize import tokens

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

    def drain(self) -> list[UsageRow]:
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
            self._counts.add(UsageRow(prompt.operation, self.name, calls=1, failures=1))
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
            micros = int((time.perf_counter() - began) * 1e6)
            self._counts.add(_row(prompt, self.name, reply, micros))


class _Counts:
    """What calls took, by operation and model."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], UsageRow] = {}
        self._lock = threading.Lock()

    def add(self, row: UsageRow) -> None:
        key = (row.operation, row.model)
        with self._lock:
            self._rows[key] = _sum(self._rows.get(key, UsageRow(*key)), row)

    def drain(self) -> list[UsageRow]:
        with self._lock:
            rows, self._rows = self._rows, {}
        return list(rows.values())


def _row(prompt: Prompt, model: str, reply: Reply | None, micros: int) -> UsageRow:
    if reply is None:
        return UsageRow(prompt.operation, model, calls=1, failures=1, micros=micros)
    read = reply.input_tokens or tokens(prompt.system) + tokens(prompt.text)
    written = reply.output_tokens or tokens(reply.text)
    return UsageRow(prompt.operation, model, 1, 0, read, written, micros, reply.cost)


def _sum(one: UsageRow, other: UsageRow) -> UsageRow:
    added = {name: getattr(one, name) + getattr(other, name) for name in UsageRow._fields[2:]}
    return one._replace(**added)


def _at_once() -> int:
    text = os.environ.get("EUNOE_LLM_CONCURRENCY", "").strip()
    if text and not (text.isascii() and text.isdecimal() and int(text)):
        raise LlmError(f"EUNOE_LLM_CONCURRENCY is {text!r}: it must be a number of calls, 1 or more")
    return int(text or AT_ONCE)
