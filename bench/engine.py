"""`python -m bench engine`: the same work on Eunoe and on its peers, each in its own process."""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from bench import Result, StatusLine, engine_report, silent
from bench.peers import DESCRIPTIONS, PEERS, SUBJECT
from bench.worker import TaskSpec
from bench.workload import BATCH_SIZE, Workload

SCOPES = 100
SIZES = (1_000, 10_000, 50_000)
QUICK_SIZES = (1_000, 10_000)
SECONDS_PER_PHASE = 20.0
QUICK_SECONDS_PER_PHASE = 4.0

_LARGE_STORE = (1_000_000, 10_000)
"""Memories and scopes."""
_SMALL_STORE = (10_000, 100)
_STREAM_SIZE = 10_000


class WorkerFailed(Exception):
    """A process of the bench ended without a result."""


def measure(
    sizes: Sequence[int] = SIZES,
    peers: Sequence[str] | None = None,
    million: bool = True,
    progress: StatusLine = silent,
    *,
    scopes: int = SCOPES,
    queries: int = 500,
    singles: int = 300,
    seconds: float = SECONDS_PER_PHASE,
    folder: Path | None = None,
) -> Result:
    """Measure Eunoe and the named peers (all by default); `million` adds Eunoe alone at scale."""
    names = [SUBJECT, *(PEERS if peers is None else check_peers(peers))]
    runs: dict[str, Result] = {str(size): {} for size in sizes}
    unavailable: dict[str, str] = {}
    for size in sizes:
        for name in names:
            if name in unavailable:
                continue
            spec = TaskSpec("measure", name, "", size, scopes, queries, singles, seconds)
            try:
                with _temporary_folder(folder) as own:
                    runs[str(size)][name] = run_worker(replace(spec, folder=str(own)), progress)
            except WorkerFailed as error:
                unavailable[name] = str(error)
                progress(f"{name}: {error}")
    result: Result = {
        "machine": {
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "cpus": os.cpu_count(),
        },
        "workload": {
            "sizes": list(sizes),
            "scopes": scopes,
            "batch": BATCH_SIZE,
            "queries": queries,
            "single_adds": singles,
            "seconds_per_phase": seconds,
            "dimension": Workload.dimension,
            "seed": Workload.seed,
        },
        "engines": {name: describe_engine(name, runs) for name in names},
        "sizes": runs,
        "ratios": {size: engine_report.peer_ratios(run) for size, run in runs.items()},
        "unavailable": unavailable,
    }
    if million:
        try:
            result["million"] = run_scale_bench(progress, folder=folder)
        except WorkerFailed as error:
            unavailable[f"{SUBJECT} at scale"] = str(error)
    return result | {"goals": engine_report.check_goals(result)}


def run_scale_bench(
    progress: StatusLine = silent,
    *,
    large: tuple[int, int] = _LARGE_STORE,
    small: tuple[int, int] = _SMALL_STORE,
    stream: int = _STREAM_SIZE,
    queries: int = 1_000,
    folder: Path | None = None,
) -> Result:
    """Eunoe alone: many memories in many scopes against few in few, and one long stream opened cold."""
    with _temporary_folder(folder) as base:
        folders = {name: str(base / name) for name in ("large", "small", "stream")}
        for path in folders.values():
            Path(path).mkdir()
        build_large = TaskSpec("build", SUBJECT, folders["large"], *large, queries)
        build_stream = TaskSpec("build", SUBJECT, folders["stream"], stream, 1)
        built = run_worker(build_large, progress)
        run_worker(TaskSpec("build", SUBJECT, folders["small"], *small), progress)
        run_worker(build_stream, progress)
        compare = replace(
            build_large, task="compare", small_folder=folders["small"], small_size=small[0], small_scopes=small[1]
        )
        return {
            "large": {"memories": large[0], "scopes": large[1], **built},
            "small": {"memories": small[0], "scopes": small[1]},
            "recall": run_worker(compare, progress),
            "cold_stream": run_worker(replace(build_stream, task="open"), progress),
        }


def check_peers(peers: Sequence[str]) -> Sequence[str]:
    unknown = [name for name in peers if name not in PEERS]
    if unknown:
        raise ValueError(f"unknown peer {', '.join(unknown)}; known: {', '.join(PEERS)}")
    return peers


@contextmanager
def _temporary_folder(parent: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="eunoe-bench-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


def run_worker(spec: TaskSpec, progress: StatusLine) -> Result:
    """Do one task in a fresh process, passing on its progress."""
    root = str(Path(__file__).parents[1])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "bench.worker", json.dumps(asdict(spec))]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, "PYTHONPATH": paths}
        )
        answer: Result = {}
        with process:
            try:
                for line in process.stdout or ():
                    answer = json.loads(line)
                    if "progress" in answer:
                        progress(f"{spec.engine} {spec.size:,}: {answer['progress']}")
            except BaseException:
                process.kill()
                raise
        if "unavailable" in answer:
            raise WorkerFailed(answer["unavailable"])
        if "result" not in answer:
            errors.seek(0)
            lines = errors.read().strip().splitlines() or ["no message"]
            raise WorkerFailed(f"failed with exit code {process.returncode}: {lines[-1]}")
    result: Result = answer["result"]
    return result


def describe_engine(name: str, runs: dict[str, Result]) -> dict[str, str]:
    description = DESCRIPTIONS[name]
    return {
        "package": description.package,
        "version": next((run[name]["version"] for run in runs.values() if name in run), ""),
        "durability": description.durability,
        "index": description.index,
        "search": description.recipes[0],
        "setup": description.setup,
    }
