"""One engine in one process: `python -m eunoe.bench.worker SPEC` prints JSON lines, the last the result."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from eunoe import __version__
from eunoe.bench.peers import SUBJECT, Engine, Unavailable, engine_class
from eunoe.bench.workload import BATCH, Batch, Query, Workload

Report = Callable[[str], None]

MINIMUM_QUERIES = 10
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "LANCEDB_TELEMETRY": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}


@dataclass(frozen=True)
class Spec:
    """What one process does: a task, an engine, how much of it and for how long."""

    task: str
    engine: str
    folder: str
    size: int
    scopes: int
    queries: int = 500
    singles: int = 300
    seconds: float = 20.0
    small_folder: str = ""
    small_size: int = 0
    small_scopes: int = 0

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @property
    def workload(self) -> Workload:
        return Workload(self.size, self.scopes)


def measure(spec: Spec, report: Report) -> dict[str, Any]:
    """Everything the bench asks of one engine at one size."""
    work = spec.workload
    queries = work.queries(spec.queries)
    before = resident()[0]
    chosen = engine_class(spec.engine)
    engine = chosen(Path(spec.folder), work.dimension)
    result: dict[str, Any] = {"version": _version(chosen.package), "size": spec.size, "notes": []}
    batches = timed_batches(engine, work, spec.seconds, report)
    result["batch_adds"] = batches
    result["disk_mb"] = folder_mb(Path(spec.folder))
    report("warming")
    warmed = warm(engine, queries, spec.seconds)
    report("searching")
    result["search"], found = timed_searches(engine, queries, engine.recipe, spec.seconds)
    result["recipes"], result["recall@10"] = _by_recipe(engine, queries, found, spec.seconds)
    now, peak = resident()
    result["rss_mb"] = {"growth": now - before, "peak": peak}
    report("single adds")
    result["single_adds"] = timed_singles(engine, work, spec.singles, spec.seconds)
    result["notes"] = _notes(spec, work, result, warmed)
    engine.close()
    return result


def timed_batches(engine: Engine, work: Workload, seconds: float, report: Report) -> dict[str, float]:
    """Fill the store; stop the clock when the time is up and fill the rest without it."""
    spent, counted, timing = 0.0, 0, True
    for index in range(work.scopes):
        if index % 10 == 0:
            report(f"batch adds {index}/{work.scopes} scopes{'' if timing else ' (untimed)'}")
        for batch in work.batches(index):
            if timing and spent > seconds:
                timing = False
                engine.hurry(True)
            taken = _time(engine.add, batch)
            if timing:
                spent, counted = spent + taken, counted + len(batch)
    if not timing:
        engine.hurry(False)
    spent += _time(engine.loaded)
    return {"per_second": counted / spent, "count": counted, "batch": min(BATCH, work.per_scope)}


def timed_singles(engine: Engine, work: Workload, count: int, seconds: float) -> dict[str, float]:
    """Add one by one, round the scopes, into the full store."""
    spent, counted = 0.0, 0
    for batch in work.singles(count):
        spent += _time(engine.add, batch)
        counted += 1
        if spent > seconds / 2:
            break
    return {"per_second": counted / spent, "count": counted}


def warm(engine: Engine, queries: list[Query], seconds: float) -> int:
    """Ask each scope once, while the time lasts; how many were asked."""
    firsts = {query.scope: query for query in reversed(queries)}
    start = perf_counter()
    for number, query in enumerate(firsts.values()):
        if perf_counter() - start > seconds:
            return number
        engine.search(query, engine.recipe)
    return len(firsts)


def timed_searches(
    engine: Engine, queries: list[Query], recipe: str, seconds: float
) -> tuple[dict[str, float], list[list[str]]]:
    """Latencies in milliseconds and what was found, for as many queries as the time allows."""
    taken: list[float] = []
    found: list[list[str]] = []
    for query in queries:
        start = perf_counter()
        texts = engine.search(query, recipe)
        taken.append(perf_counter() - start)
        found.append(texts)
        if len(taken) >= MINIMUM_QUERIES and sum(taken) > seconds:
            break
    return latencies(taken), found


def latencies(seconds: list[float]) -> dict[str, float]:
    """p50, p95 and count of durations, in milliseconds."""
    import numpy as np

    middle, high = np.percentile(np.array(seconds) * 1000, [50, 95]).tolist()
    return {"p50_ms": middle, "p95_ms": high, "count": len(seconds)}


def recall(queries: list[Query], found: list[list[str]]) -> float:
    """Share of the exact top ten that came back, in percent."""
    shares = [
        len(set(texts) & set(query.truth)) / len(query.truth) for query, texts in zip(queries, found, strict=False)
    ]
    return 100 * sum(shares) / len(shares)


def _by_recipe(
    engine: Engine, queries: list[Query], found: list[list[str]], seconds: float
) -> tuple[dict[str, dict[str, float]], float]:
    recipes: dict[str, dict[str, float]] = {}
    for recipe in engine.more_recipes:
        recipes[recipe], texts = timed_searches(engine, queries, recipe, seconds)
        found = texts if recipe == engine.exact_recipe else found
    return recipes, recall(queries, found)


def _notes(spec: Spec, work: Workload, result: dict[str, Any], warmed: int) -> list[str]:
    notes = []
    timed = result["batch_adds"]["count"]
    if timed < work.per_scope * work.scopes:
        notes.append(f"batch adds timed on the first {timed:,} (time limit)")
    if result["single_adds"]["count"] < spec.singles:
        notes.append(f"one by one: {result['single_adds']['count']} adds (time limit)")
    if warmed < min(work.scopes, spec.queries):
        notes.append(f"warmed on {warmed} scopes (time limit)")
    if result["search"]["count"] < spec.queries:
        notes.append(f"{result['search']['count']} searches instead of {spec.queries} (time limit)")
    return notes


def _time(act: Callable[..., None], *arguments: Batch) -> float:
    start = perf_counter()
    act(*arguments)
    return perf_counter() - start


def _version(package: str) -> str:
    if package == SUBJECT:  # run from source it is not installed
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def folder_mb(folder: Path) -> float:
    """Size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def resident() -> tuple[float, float]:
    """Resident memory of this process now and at its peak, in MB; (0, peak) where only that is known."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0, _peak_elsewhere()
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    now, peak = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def _peak_elsewhere() -> float:
    try:
        import resource
    except ImportError:
        return 0.0
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def refuse_network() -> None:
    """Make every connection but a local one fail, in case a peer ignores its own switches."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
            raise OSError("the bench makes no network call")
        connect(self, address)

    socket.socket.connect = guarded  # type: ignore[method-assign, assignment]


def _own_output() -> TextIO:
    """The real standard output, kept apart from what peers print."""
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return output


def _tasks() -> dict[str, Callable[[Spec, Report], dict[str, Any]]]:
    from eunoe.bench import scale

    return {"measure": measure, "build": scale.build, "compare": scale.compare, "stream": scale.stream}


def main() -> None:
    output = _own_output()
    os.environ.update(QUIET)
    refuse_network()
    spec = Spec(**json.loads(sys.argv[1]))

    def report(text: str) -> None:
        print(json.dumps({"progress": text}), file=output)

    try:
        answer: dict[str, Any] = {"result": _tasks()[spec.task](spec, report)}
    except Unavailable as error:
        answer = {"unavailable": str(error)}
    print(json.dumps(answer), file=output)


if __name__ == "__main__":
    main()
