"""What memory adds to a turn of a LangChain agent: the same agent with and without it, turn about."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import eunoe
from bench import Result, StatusLine, silent
from bench.forming import made_up_sentence
from bench.metrics import latency, measure_ms, score_views
from eunoe.cli.display import View
from eunoe.errors import MissingPackageError
from eunoe.memory import Memory

try:
    from langchain.agents import create_agent
    from langchain_core.language_models import FakeListChatModel

    from eunoe.hosts.langchain import MemoryMiddleware
except ImportError as error:
    raise MissingPackageError("this bench needs LangChain: pip install 'eunoe[langchain]'") from error

_BATCH_SIZE: Final = 1000
_WARM_UP_TURNS: Final = 10
_SENTENCES: Final = 9973
"""Different questions; a prime, so that they take turns evenly."""
_USER: Final = {"agent_id": "bench", "user_id": "anna"}
_RUN: Final = {**_USER, "session_id": "s1"}
_LABELS: Final = {
    "bare_ms": "a turn without memory",
    "recall_ms": "the same with recall",
    "memory_ms": "the same with recall and learning",
}


class _Model(FakeListChatModel):
    """Always gives the same answer, at once."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self


def measure(*, turns: int = 500, atoms: int = 10_000, embedder: str = "auto", progress: StatusLine = silent) -> Result:
    """Milliseconds of a turn at the median and the 95th percentile, and what recall adds to the median."""
    with tempfile.TemporaryDirectory() as folder, eunoe.open(Path(folder) / "agent.db", embedder=embedder) as memory:
        progress(f"filling a memory of {atoms:,}")
        _fill(memory, atoms)
        progress("taking turns")
        times = _measure(memory, turns)
    return {
        **{name: latency(values) for name, values in times.items()},
        "recall_adds_ms": round(median(times["recall_ms"]) - median(times["bare_ms"]), 3),
        "turns": turns,
        "atoms": atoms,
    }


def rows(result: Result) -> list[View]:
    rows = {label: result[name] for name, label in _LABELS.items()}
    return score_views("", [rows], f"recall adds {result['recall_adds_ms']:.2f} ms at the median", cell="{:.2f} ms")


def _fill(memory: Memory, atoms: int) -> None:
    for start in range(0, atoms, _BATCH_SIZE):
        numbers = range(start, min(start + _BATCH_SIZE, atoms))
        memory.remember_many(_USER, list(map(made_up_sentence, numbers)))
    memory.flush()


def _measure(memory: Memory, turns: int) -> dict[str, list[float]]:
    """The agents that write nothing take turns, so that both see the same machine; then the one that learns."""
    create = partial(create_agent, _Model(responses=["I see."]))
    readers = {"bare_ms": create(), "recall_ms": create(middleware=[MemoryMiddleware(memory, learns=False)])}
    learner = {"memory_ms": create(middleware=[MemoryMiddleware(memory)])}
    return {**_take_turns(readers, turns), **_take_turns(learner, turns, pause=memory.flush)}


def _take_turns(
    agents: dict[str, Any], turns: int, pause: Callable[[], object] = lambda: None
) -> dict[str, list[float]]:
    """Time the turns. In the pause between two, while somebody would read the reply, what was said is formed."""
    times: dict[str, list[float]] = {name: [] for name in agents}
    for number in range(-_WARM_UP_TURNS, turns):
        said = f"What do you know of this? {made_up_sentence(number % _SENTENCES)}"
        for name, agent in agents.items():
            _, duration = measure_ms(agent.invoke, {"messages": [("user", said)], **_RUN})
            if number >= 0:
                times[name].append(duration)
        pause()
    return times
