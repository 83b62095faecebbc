"""The LLMs of one memory: a slow and a fast one, those that streams name, and what all of them take."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import Any, Final

from eunoe.errors import LlmError
from eunoe.llm import FAST_LLM_VARIABLE, load_llm
from eunoe.llm.contract import AnswerError, CutAnswerError, Llm, Prompt, Reply
from eunoe.model.arguments import utc_now
from eunoe.model.result import LlmReport, ModelCall, Usage
from eunoe.model.scope import Scope
from eunoe.text.sentences import token_count

_CONCURRENCY_VARIABLE: Final = "EUNOE_LLM_CONCURRENCY"
_DEFAULT_CONCURRENCY: Final = 4
MAX_ROOM_TOKENS: Final = 32_000
"""What an answer that was cut off is given at most: what most models can write. One that still goes on does not end."""
_ROOM_FACTORS: Final = (1, 2, 4)
_FULL_SHARE: Final = 0.9
"""Servers stop a few tokens before or after the limit."""
_CHECK: Final = Prompt("Answer with one word.", "Are you there?", max_tokens=200, operation="test", timeout=60.0)
"""Asks for so little that the answer costs next to nothing; a model that thinks first has room for that."""
MAX_CALLS: Final = 10_000
"""Calls that are kept, the latest."""
_COUNTS: Final = tuple(field.name for field in fields(Usage) if field.name not in ("operation", "model"))
_MEASURES: Final = ("seconds", "input_tokens", "output_tokens", "cost")
_asked_for: ContextVar[Scope | None] = ContextVar("asked_for", default=None)


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
        self._calls: deque[ModelCall] = deque(maxlen=MAX_CALLS)
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

    def drain_calls(self) -> list[ModelCall]:
        """Return the calls since the last time, in their order."""
        with self._counting:
            calls = list(self._calls)
            self._calls.clear()
        return calls

    def check(self) -> LlmReport:
        """Ask the slow LLM for one word. Raise LlmError if there is none."""
        if not isinstance(self.slow, _CountedLlm):
            raise LlmError("there is no language model: open the memory with llm=..., or set EUNOE_LLM")
        calls, problem = list[ModelCall](), ""
        try:
            self.slow.noting(calls.append).ask(_CHECK)
        except LlmError as error:
            problem = str(error) or type(error).__name__
        totals = [sum(getattr(call, name) for call in calls) for name in _MEASURES]
        return LlmReport(self.slow.name, problem, *totals)

    def _load(self, spec: Any, *variable: str) -> Llm | None:
        llm = load_llm(spec, *variable)
        return _CountedLlm(llm, self._add, self._gate) if llm else None

    def _add(self, call: ModelCall) -> None:
        key = (call.operation, call.model)
        usage = Usage(*key, 1, bool(call.error), call.input_tokens, call.output_tokens, call.seconds, call.cost)
        with self._counting:
            self._calls.append(call)
            total = self._usage.get(key, Usage(*key))
            self._usage[key] = replace(total, **{name: getattr(total, name) + getattr(usage, name) for name in _COUNTS})


class _CountedLlm:
    """An LLM whose calls are counted and wait for their turn."""

    def __init__(self, llm: Llm, add: Callable[[ModelCall], None], gate: threading.BoundedSemaphore) -> None:
        self.name = llm.name
        self._llm = llm
        self._add = add
        self._gate = gate

    def noting(self, note: Callable[[ModelCall], None]) -> "_CountedLlm":
        """The same, with its calls told to somebody else too."""

        def add(call: ModelCall) -> None:
            self._add(call)
            note(call)

        return _CountedLlm(self._llm, add, self._gate)

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
                written = error.reply.output_tokens if error.reply else 0
                # More room does not help an answer that a smaller limit cut off.
                if room >= MAX_ROOM_TOKENS or 0 < written < _FULL_SHARE * room:
                    raise
            except LlmError:
                if cut is None:
                    raise
                break  # with so much room it does not answer at all
        assert cut is not None
        raise cut

    def _ask_once(self, prompt: Prompt) -> Reply:
        call = ModelCall(prompt.operation, self.name, utc_now(), _asked_for.get())
        if not self._gate.acquire(timeout=prompt.timeout):
            self._add(replace(call, error="busy"))
            raise LlmError(f"{self.name} was busy with other calls for longer than {prompt.timeout} s")
        start = time.perf_counter()
        try:
            reply = self._llm.ask(prompt)
            call = _with_tokens(call, prompt, reply)
            return reply
        except BaseException as error:
            billed = error.reply if isinstance(error, AnswerError) else None
            # What failed, in words that repeat nothing that was asked or answered.
            status = getattr(error.__cause__, "status", 0)  # of a server that refused
            kind = f"{type(error).__name__} {status}" if status else type(error).__name__
            call = replace(_with_tokens(call, prompt, billed), error=kind)
            raise
        finally:
            self._gate.release()
            self._add(replace(call, seconds=time.perf_counter() - start))


@contextmanager
def asking_for(scope: Scope) -> Iterator[None]:
    """Note the calls of this thread as made for the memory of a scope."""
    before = _asked_for.set(scope)
    try:
        yield
    finally:
        _asked_for.reset(before)


def _with_tokens(call: ModelCall, prompt: Prompt, reply: Reply | None) -> ModelCall:
    """Count what a reply took, estimated where the model does not say."""
    if reply is None:
        return call
    read = reply.input_tokens or token_count(prompt.system) + token_count(prompt.text)
    return replace(
        call, input_tokens=read, output_tokens=reply.output_tokens or token_count(reply.text), cost=reply.cost
    )


def _concurrency() -> int:
    text = os.environ.get(_CONCURRENCY_VARIABLE, "").strip()
    if text and not (text.isascii() and text.isdecimal() and int(text)):
        raise LlmError(f"{_CONCURRENCY_VARIABLE} is {text!r}: it must be a number of calls, 1 or more")
    return int(text or _DEFAULT_CONCURRENCY)
