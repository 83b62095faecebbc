"""Count the functions, files and changes of file that one verb passes through.

    python tools/trace.py            # a table
    python tools/trace.py recall -v  # and each function with its number of calls

Comprehensions, generator expressions and lambdas count as part of the function around them.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import eunoe

PACKAGE = str(Path(eunoe.__file__).parent)
INNER = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")
SESSION = {"agent": "cook", "user": "anna", "session": "monday"}
USER = {"agent": "cook", "user": "anna"}
TALK = [
    {"role": "user", "content": "I'm allergic to peanuts and I live in Turin.", "time": "2026-03-02T18:00"},
    {"role": "assistant", "content": "Noted. What shall we cook?", "time": "2026-03-02T18:01"},
    {"role": "user", "content": "My sister Lea comes on Friday. Always give me weights in grams.",
     "time": "2026-03-02T18:02"},
    {"role": "assistant", "content": "Then 300 grams of rice for the two of you.", "time": "2026-03-02T18:03"},
    {"role": "user", "content": "I decided to buy a new pan last week.", "time": "2026-03-02T18:04"},
]  # fmt: skip


class Trace:
    """The calls into the package while it is on, in this thread and in those that start meanwhile."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        self.changes = 0
        self._files: dict[int, str] = {}

    def __enter__(self) -> Trace:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name in INNER:
            return
        thread = threading.get_ident()
        self.changes += self._files.get(thread, code.co_filename) != code.co_filename
        self._files[thread] = code.co_filename
        self.calls[code] += 1

    @property
    def files(self) -> set[str]:
        return {code.co_filename for code in self.calls}


def opened() -> Any:
    memory = eunoe.open(":memory:", form=False)
    return memory.sync if hasattr(memory, "sync") else memory


def recall() -> Trace:
    with opened() as memory:
        memory.observe(SESSION, TALK)
        memory.recall(SESSION, "What pan did she buy last week?")
        with Trace() as trace:
            memory.recall(SESSION, "Who comes to visit on Friday?")
    return trace


def context() -> Trace:
    with opened() as memory:
        memory.observe(SESSION, TALK)
        memory.form(SESSION)
        memory.context(SESSION, "What pan did she buy last week?")
        with Trace() as trace:
            memory.context(SESSION, "Who comes to visit on Friday?", tokens=500)
    return trace


def form() -> Trace:
    with opened() as memory:
        memory.remember(USER, "Anna lives in Milan.", metadata={"memory_key": "anna/home"})
        memory.observe(SESSION, TALK)
        memory.recall(USER, "warm")
        with Trace() as trace:
            memory.form(SESSION)
    return trace


def observe() -> Trace:
    with opened() as memory:
        memory.observe(SESSION, TALK[:2])
        with Trace() as trace:
            memory.observe(SESSION, TALK)
    return trace


VERBS: dict[str, Callable[[], Trace]] = {"observe": observe, "recall": recall, "context": context, "form": form}


def main() -> None:
    names = [name for name in sys.argv[1:] if name in VERBS] or list(VERBS)
    print(f"{'verb':10}{'functions':>10}{'files':>7}{'changes of file':>17}{'calls':>7}")
    for name in names:
        trace = VERBS[name]()
        print(f"{name:10}{len(trace.calls):10}{len(trace.files):7}{trace.changes:17}{trace.calls.total():7}")
        if "-v" in sys.argv:
            for code, count in sorted(
                trace.calls.items(), key=lambda pair: (pair[0].co_filename, pair[0].co_firstlineno)
            ):
                print(f"  {count:5} {code.co_filename.removeprefix(PACKAGE + '/')}:{code.co_qualname}")


if __name__ == "__main__":
    main()
