"""What memory costs a turn: before the reply, after it, and in calls of a language model."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

import eunoe
from eunoe.bench.metrics import percentile
from eunoe.cli.command import Settings
from eunoe.llm.contract import Prompt
from eunoe.llm.scripted import Scripted
from eunoe.memory import Memory

_NAMES = ("Anna", "Ben", "Carla", "Dirk", "Edda", "Farid", "Greta", "Hugo")
_THINGS = ("garden", "boiler", "cello", "passport", "recipe", "invoice", "bicycle", "tent", "visa", "piano")
_ACTS = ("sold", "mended", "lost", "bought", "painted", "returned", "borrowed", "measured")
_STREAMS = (1, 2, 4, 8)
_TURNS = 45
_ROWS = (
    ("observe_ms", "observe a turn and its answer"),
    ("observe_without_pause_ms", "the same, turn upon turn"),
    ("context_ms", "context"),
)
_USER = {"agent": "bench", "user": "anna"}


def sentence(number: int) -> str:
    """One of very many, each different from every other."""
    name, thing, act = (names[number * step % len(names)] for names, step in ((_NAMES, 1), (_THINGS, 3), (_ACTS, 5)))
    return f"{name} {act} the {thing} number {number} on day {number % 365}."


def run_forming_bench(*, turns: int = 1000, atoms: int = 10_000, embedder: str = "auto") -> dict[str, Any]:
    """Milliseconds at the median and the 95th percentile, and calls per formation by number of streams."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        return {
            "observe_ms": _observe(where / "observe.db", turns, embedder, pause=True),
            "observe_without_pause_ms": _observe(where / "busy.db", turns, embedder, pause=False),
            "context_ms": _context(where / "context.db", turns, atoms, embedder),
            "calls_per_formation": {streams: _calls(where / f"calls-{streams}.db", streams) for streams in _STREAMS},
            "turns": turns,
            "atoms": atoms,
        }


def _observe(path: Path, turns: int, embedder: str, pause: bool) -> dict[str, float]:
    """A turn and its answer, kept as an application does it, with forming in the background: while somebody reads the
    reply, or, without a pause, at the same time."""
    with eunoe.open(path, embedder=embedder, llm="none") as memory:
        observe = partial(memory.observe, {**_USER, "session": "s1"})
        return _timed(turns, lambda number: observe(_pair(number)), memory.flush if pause else lambda: None)


def _pair(number: int) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"I think {sentence(number)}"},
        {"role": "assistant", "content": f"Noted, {number}."},
    ]


def _context(path: Path, turns: int, atoms: int, embedder: str) -> dict[str, float]:
    """A context for one message over a user's memory of so many atoms, the index warm."""
    with eunoe.open(path, embedder=embedder, llm="none", form=False) as memory:
        _fill(memory, atoms)
        session = {**_USER, "session": "s1"}
        memory.observe(session, _pair(0))
        memory.context(session, "What about the garden?", tokens=2000)
        return _timed(turns, lambda number: memory.context(session, f"What did {sentence(number)}", tokens=2000))


def _fill(memory: Memory, atoms: int) -> None:
    for start in range(0, atoms, 1000):
        memory.remember_many(_USER, [sentence(number) for number in range(start, min(atoms, start + 1000))])


def _timed(times: int, work: Callable[[int], object], between: Callable[[], object] = lambda: None) -> dict[str, float]:
    taken = []
    for number in range(times):
        start = perf_counter()
        work(number)
        taken.append((perf_counter() - start) * 1000)
        between()
    return {"p50": round(percentile(taken, 0.5), 3), "p95": round(percentile(taken, 0.95), 3)}


def _calls(path: Path, streams: int) -> int:
    """Calls of the model for one formation that feeds so many streams, none of which is due for consolidation."""
    model = Scripted(_nothing)
    with eunoe.open(path, embedder="none", llm=model, form=False) as memory:
        for shard in range(streams - 2):
            memory.streams.configure({"agent": "bench", "shard": f"shard{shard}"})
        session = {**_USER, "session": "s1"} if streams > 1 else _USER
        memory.observe(session, [message for number in range(_TURNS // 2) for message in _pair(number)])
        memory.form(session)
    return len(model.prompts)


def _nothing(prompt: Prompt) -> str:
    return '{"memories": []}'


def forming_command(
    ctx: typer.Context,
    turns: Annotated[int, typer.Option(min=1, help="Turns to observe and contexts to ask for.")] = 1000,
    atoms: Annotated[int, typer.Option(min=1, help="Memories that the contexts are drawn from.")] = 10_000,
    embedder: Annotated[str, typer.Option(help="What makes vectors: auto, none, eunoe, static, ...")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what memory costs a turn: observe after it, context before it, and calls of a language model.

    Example: eunoe bench forming --atoms 10000
    """
    outer = Settings.before(ctx)
    result = run_forming_bench(turns=turns, atoms=atoms, embedder=embedder or outer.embedder or "auto")
    if as_json or outer.json:
        print(json.dumps(result, indent=2))
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "p50", "p95")
    for name, label in _ROWS:
        table.add_row(label, f"{result[name]['p50']:.2f} ms", f"{result[name]['p95']:.2f} ms")
    console = Console()
    console.print(table)
    calls = ", ".join(f"{count} for {streams} streams" for streams, count in result["calls_per_formation"].items())
    console.print(f"calls of a language model per formation: {calls}")
