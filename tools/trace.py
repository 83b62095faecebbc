"""Count the functions, files and changes of file that a verb passes through: how far a reader has to go to follow it.

    python tools/trace.py                        a table
    python tools/trace.py recall --verbose       each function with its number of calls
    PYTHONPATH=OTHER/src python tools/trace.py --json    another version of the package, to be compared

A change of file is a call of a function of the package that stands in another file than the one called before it in the
same thread. Comprehensions, generator expressions and lambdas count as part of the function around them; methods that
dataclasses and named tuples generate have no file and do not count. Threads that start meanwhile count as well. Since
they may be quicker or slower, each verb runs several times and the most common result is taken.

- `recall`, cold: the first recall in a memory that has just observed a conversation.
- `context`, warm: asked for a second time.
- `form` of a conversation of one message.
- `observe` of a conversation of five messages in a new memory.

Everything is imported before the first measurement, and another memory has gone through the same steps.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import eunoe

PACKAGE = str(Path(eunoe.__file__).parent)
RUNS = 5
SESSION = {"agent": "cook", "user": "anna", "session": "monday"}
QUESTION = "Who comes to visit on Friday?"
TALK = [
    {"role": "user", "content": "I'm allergic to peanuts and I live in Turin.", "time": "2026-03-02T18:00"},
    {"role": "assistant", "content": "Noted. What shall we cook?", "time": "2026-03-02T18:01"},
    {"role": "user", "content": "My sister Lea comes on Friday. Always give me weights in grams.",
     "time": "2026-03-02T18:02"},
    {"role": "assistant", "content": "Then 300 grams of rice for the two of you.", "time": "2026-03-02T18:03"},
    {"role": "user", "content": "I decided to buy a new pan last week.", "time": "2026-03-02T18:04"},
]  # fmt: skip
_INNER = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")


class Figures(NamedTuple):
    functions: int
    files: int
    changes: int
    calls: int


class Trace:
    """The calls into the package while it is on, in this thread and in those that start meanwhile."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        self._changes = 0
        self._last_files: dict[int, str] = {}

    def __enter__(self) -> Trace:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name not in _INNER:
            thread = threading.get_ident()
            self._changes += self._last_files.get(thread, code.co_filename) != code.co_filename
            self._last_files[thread] = code.co_filename
            self.calls[code] += 1

    @property
    def figures(self) -> Figures:
        files = {code.co_filename for code in self.calls}
        return Figures(len(self.calls), len(files), self._changes, self.calls.total())


class Scenario(NamedTuple):
    prepare: Callable[[Any], object]
    act: Callable[[Any], object]

    def run(self) -> Trace:
        memory = eunoe.open(":memory:", form=False)
        with getattr(memory, "sync", memory) as blocking:  # before the two faces were told apart
            self.prepare(blocking)
            with Trace() as trace:
                self.act(blocking)
        return trace


def prepare_context(memory: Any) -> None:
    memory.observe(SESSION, TALK)
    memory.form(SESSION)
    memory.context(SESSION, QUESTION, tokens=500)
    memory.flush()


def prepare_form(memory: Any) -> None:
    memory.observe(SESSION, TALK[:1])
    memory.flush()


SCENARIOS = {
    "recall": Scenario(lambda memory: memory.observe(SESSION, TALK), lambda memory: memory.recall(SESSION, QUESTION)),
    "context": Scenario(prepare_context, lambda memory: memory.context(SESSION, QUESTION, tokens=500)),
    "form": Scenario(prepare_form, lambda memory: memory.form(SESSION)),
    "observe": Scenario(lambda memory: None, lambda memory: memory.observe(SESSION, TALK)),
}


def most_common(traces: list[Trace]) -> Trace:
    figures = Counter(trace.figures for trace in traces).most_common(1)[0][0]
    return next(trace for trace in traces if trace.figures == figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verbs", nargs="*", metavar="VERB", help=f"some of {', '.join(SCENARIOS)}; all if left out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--verbose", "-v", action="store_true", help="print each function with its number of calls")
    options = parser.parse_args()
    if unknown := set(options.verbs) - set(SCENARIOS):
        parser.error(f"unknown verb {', '.join(sorted(unknown))}")
    for scenario in SCENARIOS.values():
        scenario.run()
    names = options.verbs or list(SCENARIOS)
    traces = {name: most_common([SCENARIOS[name].run() for _ in range(RUNS)]) for name in names}
    if options.json:
        print(json.dumps({name: trace.figures._asdict() for name, trace in traces.items()}, indent=2))
        return
    print(f"{'verb':10}{'functions':>10}{'files':>7}{'changes of file':>17}{'calls':>7}")
    for name, trace in traces.items():
        functions, files, changes, calls = trace.figures
        print(f"{name:10}{functions:10}{files:7}{changes:17}{calls:7}")
        for code, count in sorted(trace.calls.items(), key=lambda pair: (pair[0].co_filename, pair[0].co_firstlineno)):
            if options.verbose:
                print(f"  {count:5} {code.co_filename.removeprefix(PACKAGE + '/')}:{code.co_qualname}")


if __name__ == "__main__":
    main()
