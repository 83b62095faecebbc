"""What memory costs a turn: before the reply, after it, and in calls of an LLM."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import eunoe
from bench import Result, StatusLine, silent
from bench.metrics import Scores, latency, measure_ms, score_views
from eunoe.cli.display import View
from eunoe.llm.contract import Prompt, ScriptedLlm

_NAMES = ("Anna", "Ben", "Carla", "Dirk", "Edda", "Farid", "Greta", "Hugo")
_THINGS = ("garden", "boiler", "cello", "passport", "recipe", "invoice", "bicycle", "tent", "visa", "piano")
_ACTS = ("sold", "mended", "lost", "bought", "painted", "returned", "borrowed", "measured")
_STREAM_COUNTS = (1, 2, 4, 8)
_FORMED_PAIRS = 22
_BATCH_SIZE = 1000
_LABELS = {
    "observe_ms": "observe a turn and its answer",
    "observe_without_pause_ms": "the same, turn upon turn",
    "context_ms": "context",
}
_USER = {"agent": "bench", "user": "anna"}
_SESSION = {**_USER, "session": "s1"}


def made_up_sentence(number: int) -> str:
    """One of very many, each different from every other."""
    name, thing, act = (words[number * step % len(words)] for words, step in ((_NAMES, 1), (_THINGS, 3), (_ACTS, 5)))
    return f"{name} {act} the {thing} number {number} on day {number % 365}."


def measure(*, turns: int = 1000, atoms: int = 10_000, embedder: str = "auto", progress: StatusLine = silent) -> Result:
    """Milliseconds at the median and the 95th percentile, and calls per formation by number of streams."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paused = _observe_latency(folder / "observe.db", turns, embedder, pause=True)
        progress("turn upon turn")
        busy = _observe_latency(folder / "busy.db", turns, embedder, pause=False)
        progress(f"contexts among {atoms:,} memories")
        contexts = _context_latency(folder / "context.db", turns, atoms, embedder)
        calls = {count: count_llm_calls(folder / f"calls-{count}.db", count) for count in _STREAM_COUNTS}
    figures = {"observe_ms": paused, "observe_without_pause_ms": busy, "context_ms": contexts}
    return {**figures, "calls_per_formation": calls, "turns": turns, "atoms": atoms}


def _observe_latency(path: Path, turns: int, embedder: str, pause: bool) -> Scores:
    """A turn and its answer, kept as an application does it, with forming in the background: while somebody reads the
    reply, or, without a pause, at the same time."""
    times = []
    with eunoe.open(path, embedder=embedder, llm="none") as memory:
        for number in range(turns):
            times.append(measure_ms(memory.observe, _SESSION, _turn_and_answer(number))[1])
            if pause:
                memory.flush()
    return latency(times)


def _turn_and_answer(number: int) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"I think {made_up_sentence(number)}"},
        {"role": "assistant", "content": f"Noted, {number}."},
    ]


def _context_latency(path: Path, turns: int, atoms: int, embedder: str) -> Scores:
    """A context for one message over a user's memory of so many atoms, the index warm."""
    with eunoe.open(path, embedder=embedder, llm="none", form=False) as memory:
        for start in range(0, atoms, _BATCH_SIZE):
            numbers = range(start, min(atoms, start + _BATCH_SIZE))
            memory.remember_many(_USER, map(made_up_sentence, numbers))
        memory.observe(_SESSION, _turn_and_answer(0))
        memory.context(_SESSION, "What about the garden?", tokens=2000)
        questions = [f"What did {made_up_sentence(number)}" for number in range(turns)]
        return latency([measure_ms(memory.context, _SESSION, question, tokens=2000)[1] for question in questions])


def count_llm_calls(
    path: Path, streams: int, answer: Callable[[Prompt], str] = lambda prompt: '{"memories": []}'
) -> int:
    """Calls of the LLM for one formation that feeds so many streams, none of which is due for consolidation."""
    llm = ScriptedLlm(answer)
    with eunoe.open(path, embedder="none", llm=llm, form=False) as memory:
        for number in range(streams - 2):
            memory.streams.configure({"agent": "bench", "shard": f"shard{number}"})
        scope = _SESSION if streams > 1 else _USER
        memory.observe(scope, [message for number in range(_FORMED_PAIRS) for message in _turn_and_answer(number)])
        memory.form(scope)
    return len(llm.prompts)


def rows(result: Result) -> list[View]:
    rows = {label: result[name] for name, label in _LABELS.items()}
    calls = ", ".join(f"{count} for {streams} streams" for streams, count in result["calls_per_formation"].items())
    return score_views("", [rows], f"calls of a language model per formation: {calls}", cell="{:.2f} ms")
