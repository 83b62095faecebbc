"""One task of the engine bench in one process: `python -m bench.worker SPEC` prints JSON lines, the last of them
the result."""

import json
import os
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeVar

from bench import Result, StatusLine
from bench.metrics import Scores, measure_ms, percentile, recall_share
from bench.peers import DESCRIPTIONS, ENGINES, NO_TELEMETRY, SUBJECT, BenchEngine, EngineUnavailable
from bench.workload import BATCH_SIZE, SearchQuery, Workload
from eunoe import __version__

T = TypeVar("T")
R = TypeVar("R")

_MIN_QUERIES = 10
_SAMPLED_SCOPES = 100
_OPENINGS = 5
_NO_TIME_LIMIT = float("inf")


@dataclass(frozen=True)
class TaskSpec:
    """What one process does: a task, an engine, how much of it and for how long."""

    task: Literal["measure", "build", "compare", "open"]
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

    @property
    def workload(self) -> Workload:
        return Workload(self.size, self.scopes)

    def open_engine(self) -> BenchEngine:
        return ENGINES[self.engine](Path(self.folder), self.workload.dimension)

    @property
    def recipe(self) -> str:
        """The way to search that is compared with other engines."""
        return DESCRIPTIONS[self.engine].recipes[0]


def measure_engine(spec: TaskSpec, say: StatusLine) -> Result:
    """Measure everything the bench asks of one engine at one size."""
    work = spec.workload
    queries = work.queries(spec.queries)
    rss_before = _resident_mb()[0]
    engine, description = spec.open_engine(), DESCRIPTIONS[spec.engine]
    batch_adds = _time_batches(engine, work, spec.seconds, say)
    disk_mb = _folder_mb(spec.folder)
    search = partial(engine.search, recipe=spec.recipe)
    say("warming")
    warm_scopes = len(_measure_each(search, _first_of_each_scope(queries), spec.seconds)[1])
    say("searching")
    latencies, texts = {}, {}
    for name in description.recipes:
        search = partial(engine.search, recipe=name)
        texts[name], times = _measure_each(search, queries, spec.seconds, _MIN_QUERIES)
        latencies[name] = search_latency(times)
    rss, peak = _resident_mb()
    say("single adds")
    times = _measure_each(engine.add, work.singles(spec.singles), spec.seconds / 2)[1]
    single_adds = {"per_second": len(times) / sum(times) * 1000, "count": len(times)}
    engine.close()
    searches = latencies[spec.recipe]["count"]
    limits_reached = {
        f"batch adds timed on the first {batch_adds['count']:,}": batch_adds["count"] < work.per_scope * work.scopes,
        f"one by one: {single_adds['count']} adds": single_adds["count"] < spec.singles,
        f"warmed on {warm_scopes} scopes": warm_scopes < min(work.scopes, spec.queries),
        f"{searches} searches instead of {spec.queries}": searches < spec.queries,
    }
    return {
        "version": installed_version(description.package),
        "size": spec.size,
        "notes": [f"{note} (time limit)" for note, is_reached in limits_reached.items() if is_reached],
        "batch_adds": batch_adds,
        "disk_mb": disk_mb,
        "search": latencies[spec.recipe],
        "recipes": {name: latencies[name] for name in description.recipes[1:]},
        "recall@10": exact_recall(queries, texts[description.exact_recipe]),
        "rss_mb": {"growth": rss - rss_before, "peak": peak},
        "single_adds": single_adds,
    }


def _time_batches(engine: BenchEngine, work: Workload, seconds: float, say: StatusLine) -> Scores:
    """Fill the store; stop the clock when the time is up and fill the rest without it."""
    ms, count, is_timed = 0.0, 0, True
    for index in range(work.scopes):
        if index % 10 == 0:
            say(f"batch adds {index}/{work.scopes} scopes{'' if is_timed else ' (untimed)'}")
        for batch in work.batches(index):
            if is_timed and ms > seconds * 1000:
                is_timed = False
                engine.set_durable(False)
            batch_ms = measure_ms(engine.add, batch)[1]
            if is_timed:
                ms, count = ms + batch_ms, count + len(batch)
    if not is_timed:
        engine.set_durable(True)
    ms += measure_ms(engine.finish_load)[1]
    return {"per_second": count / ms * 1000, "count": count, "batch": min(BATCH_SIZE, work.per_scope)}


def _measure_each(
    work: Callable[[T], R], items: Iterable[T], seconds: float, least: int = 1
) -> tuple[list[R], list[float]]:
    """Do some work for each item, while the time lasts but at least for so many; return results and milliseconds."""
    results: list[R] = []
    times: list[float] = []
    for item in items:
        result, ms = measure_ms(work, item)
        results.append(result)
        times.append(ms)
        if len(times) >= least and sum(times) > seconds * 1000:
            break
    return results, times


def _first_of_each_scope(queries: Sequence[SearchQuery]) -> list[SearchQuery]:
    return list({query.scope: query for query in reversed(queries)}.values())


def search_latency(times_ms: Sequence[float]) -> Scores:
    return {"p50_ms": percentile(times_ms, 0.5), "p95_ms": percentile(times_ms, 0.95), "count": len(times_ms)}


def exact_recall(queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]]) -> float:
    """Share of the exact top ten that came back, in percent."""
    shares = [recall_share(best, set(query.truth)) for query, best in zip(queries, texts, strict=False)]
    return 100 * sum(shares) / len(shares)


def build_store(spec: TaskSpec, say: StatusLine) -> Result:
    """Fill a store and leave it there."""
    engine = spec.open_engine()
    adds = _time_batches(engine, spec.workload, _NO_TIME_LIMIT, say)
    engine.close()
    return {"batch_adds": adds, "disk_mb": _folder_mb(spec.folder), "rss_mb": {"peak": _resident_mb()[1]}}


def compare_stores(spec: TaskSpec, say: StatusLine) -> Result:
    """Recall in a small and a large store by turns: first each scope cold, then warm."""
    small = TaskSpec("compare", spec.engine, spec.small_folder, spec.small_size, spec.small_scopes)
    specs = {"large": spec, "small": small}
    queries = {name: each.workload.queries(spec.queries, among=_SAMPLED_SCOPES) for name, each in specs.items()}
    engines = {name: each.open_engine() for name, each in specs.items()}
    say("cold recalls")
    cold = _recall_by_turns(spec, engines, {name: _first_of_each_scope(own) for name, own in queries.items()})
    say("warm recalls")
    warm = _recall_by_turns(spec, engines, queries)
    for engine in engines.values():
        engine.close()
    warm_ratio, cold_ratio = (times["large"]["p50_ms"] / times["small"]["p50_ms"] for times in (warm, cold))
    ratios = {"warm_ratio": warm_ratio, "cold_ratio": cold_ratio}
    return {"warm": warm, "cold": cold, **ratios, "rss_mb": {"peak": _resident_mb()[1]}}


def _recall_by_turns(
    spec: TaskSpec, engines: dict[str, BenchEngine], queries: dict[str, list[SearchQuery]]
) -> dict[str, Scores]:
    """Latencies of each engine; they take turns, so that a busy moment of the machine strikes all."""
    times: dict[str, list[float]] = {name: [] for name in engines}
    for turn in zip(*queries.values(), strict=False):
        for (name, engine), query in zip(engines.items(), turn, strict=True):
            times[name].append(measure_ms(engine.search, query, spec.recipe)[1])
    return {name: search_latency(own) for name, own in times.items()}


def open_stream(spec: TaskSpec, say: StatusLine) -> Result:
    """Open a store of one long stream and recall at once, several times over."""
    open_times, recall_times = [], []
    for number, query in enumerate(spec.workload.queries(_OPENINGS), 1):
        say(f"opening {number}/{_OPENINGS}")
        engine, open_ms = measure_ms(spec.open_engine)
        open_times.append(open_ms)
        recall_times.append(measure_ms(engine.search, query, spec.recipe)[1])
        engine.close()
    return {
        "memories": spec.size,
        "first_process_recall_ms": recall_times[0],
        "recall_ms": percentile(recall_times, 0.5),
        "open_ms": percentile(open_times, 0.5),
    }


def installed_version(package: str) -> str:
    if package == SUBJECT:  # run from source it is not installed
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _folder_mb(folder: str) -> float:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 2**20


def _resident_mb() -> tuple[float, float]:
    """Resident memory of this process now and at its peak; (0, peak) where only that is known."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024
    try:
        import resource
    except ImportError:  # Windows
        return 0.0, 0.0
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _refuse_network() -> None:
    """Make every connection but a local one fail, in case a peer ignores its own switches."""
    connect = socket.socket.connect

    def connect_locally(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
            raise OSError("the bench makes no network call")
        connect(self, address)

    socket.socket.connect = connect_locally  # type: ignore[method-assign, assignment]


def main() -> None:
    # What peers print goes to standard error, so that standard output has nothing but JSON lines.
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ.update(NO_TELEMETRY)
    _refuse_network()

    def write(key: str, value: object) -> None:
        print(json.dumps({key: value}), file=output)

    tasks = {"measure": measure_engine, "build": build_store, "compare": compare_stores, "open": open_stream}
    spec = TaskSpec(**json.loads(sys.argv[1]))
    try:
        write("result", tasks[spec.task](spec, lambda text: write("progress", text)))
    except EngineUnavailable as error:
        write("unavailable", str(error))


if __name__ == "__main__":
    main()
