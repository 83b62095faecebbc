"""Does a recall cost the same whatever other scopes hold, and what does the first one cost?"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from eunoe.bench.peers import Engine, engine_class
from eunoe.bench.worker import Report, Spec, folder_mb, latencies, resident, timed_batches
from eunoe.bench.workload import Query, Workload

SAMPLED_SCOPES = 100
OPENINGS = 5
NO_LIMIT = float("inf")


def build(spec: Spec, report: Report) -> dict[str, Any]:
    """Fill a store and leave it there."""
    engine = _open(spec, spec.folder)
    adds = timed_batches(engine, spec.workload, NO_LIMIT, report)
    engine.close()
    return {"batch_adds": adds, "disk_mb": folder_mb(Path(spec.folder)), "rss_mb": {"peak": resident()[1]}}


def compare(spec: Spec, report: Report) -> dict[str, Any]:
    """Recall in a small and a large store by turns: first each scope cold, then warm."""
    small = Workload(spec.small_size, spec.small_scopes)
    asked = {
        "large": spec.workload.queries(spec.queries, among=SAMPLED_SCOPES),
        "small": small.queries(spec.queries, among=SAMPLED_SCOPES),
    }
    engines = {"large": _open(spec, spec.folder), "small": _open(spec, spec.small_folder)}
    report("cold recalls")
    cold = by_turns(engines, {name: _first_of_scope(queries) for name, queries in asked.items()})
    report("warm recalls")
    warm = by_turns(engines, asked)
    for engine in engines.values():
        engine.close()
    ratios = {
        f"{name}_ratio": times["large"]["p50_ms"] / times["small"]["p50_ms"]
        for name, times in (("warm", warm), ("cold", cold))
    }
    return {"warm": warm, "cold": cold, **ratios, "rss_mb": {"peak": resident()[1]}}


def by_turns(engines: dict[str, Engine], asked: dict[str, list[Query]]) -> dict[str, dict[str, float]]:
    """Latencies of each engine; taking turns, so that a busy moment of the machine strikes all."""
    taken: dict[str, list[float]] = {name: [] for name in engines}
    for turn in zip(*asked.values(), strict=False):
        for name, query in zip(asked, turn, strict=True):
            start = perf_counter()
            engines[name].search(query, engines[name].recipe)
            taken[name].append(perf_counter() - start)
    return {name: latencies(times) for name, times in taken.items()}


def stream(spec: Spec, report: Report) -> dict[str, Any]:
    """Open a store of one long stream and recall at once, several times over."""
    queries = spec.workload.queries(OPENINGS)
    opened, recalled = [], []
    for number, query in enumerate(queries):
        report(f"opening {number + 1}/{OPENINGS}")
        start = perf_counter()
        engine = _open(spec, spec.folder)
        middle = perf_counter()
        engine.search(query, engine.recipe)
        opened.append((middle - start) * 1000)
        recalled.append((perf_counter() - middle) * 1000)
        engine.close()
    return {
        "memories": spec.size,
        "first_process_recall_ms": recalled[0],
        "recall_ms": latencies([each / 1000 for each in recalled])["p50_ms"],
        "open_ms": latencies([each / 1000 for each in opened])["p50_ms"],
    }


def _open(spec: Spec, folder: str) -> Engine:
    return engine_class(spec.engine)(Path(folder), spec.workload.dimension)


def _first_of_scope(queries: list[Query]) -> list[Query]:
    return list({query.scope: query for query in reversed(queries)}.values())
