"""The server beside the memory in the process: what HTTP adds to a recall, how many a second, how soon it is ready."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any, Final
from urllib.parse import urlsplit

import eunoe
from bench import Result, StatusLine, silent
from bench.metrics import score_views
from bench.workload import SearchQuery, Workload
from eunoe.cli.display import View
from eunoe.errors import StoreError

_READY_SECONDS: Final = 30.0
_WARM_QUERIES: Final = 200


@dataclass(frozen=True, slots=True)
class _Server:
    """A started server."""

    host: str
    port: int
    token: str
    pid: int
    ready_seconds: float

    def request(self, method: str, path: str, body: Any = None) -> str:
        text = "" if body is None else json.dumps(body)
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {self.token}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}"


def measure(
    *,
    atoms: int,
    scopes: int,
    seconds: float,
    clients: int,
    processes: int,
    embedder: str = "static",
    progress: StatusLine = silent,
) -> Result:
    """Measure recalls in the process and over HTTP on one store, in one run."""
    workload = Workload(atoms, scopes)
    queries = workload.queries(1000)
    with tempfile.TemporaryDirectory(prefix="eunoe-bench-") as folder:
        path = Path(folder) / "memory.db"
        progress(f"storing {atoms} memories")
        inside = _measure_inside(path, workload, queries, embedder)
        progress("starting a server")
        with _started(path, embedder, processes) as server:
            recalls = [server.request("POST", "/v1/recall", _recall_body(query)) for query in queries]
            _load(server, recalls, 8, max(seconds / 2, 3.0))  # every index is built once, in each process
            progress("one client")
            single = _load(server, recalls, 1, seconds)
            progress("many clients")
            some = _load(server, recalls, 16, seconds)
            many = _load(server, recalls, clients, seconds)
            bare = _load(server, [server.request("GET", "/healthz")], 16, seconds)
            peak = _peak_bytes(server.pid)
    return {
        "atoms": atoms,
        "scopes": scopes,
        "processes": processes,
        "ready_seconds": round(server.ready_seconds, 2),
        "peak_mb": round(peak / 1e6),
        "in_process": _figures(inside, sum(inside), 0),
        "http_1": _figures(single["seconds"], single["elapsed"], single["failures"]),
        "http_16": _figures(some["seconds"], some["elapsed"], some["failures"]),
        f"http_{clients}": _figures(many["seconds"], many["elapsed"], many["failures"]),
        "empty_route_16": _figures(bare["seconds"], bare["elapsed"], bare["failures"]),
        "added_ms": round(1000 * (median(single["seconds"]) - median(inside)), 2),
    }


def rows(result: Result) -> list[View]:
    rows = {name: value for name, value in result.items() if isinstance(value, dict)}
    title = f"recall among {result['atoms']:,} memories in {result['scopes']} scopes, {result['processes']} processes"
    added = f"HTTP adds {result['added_ms']} ms at p50 to a recall in the process."
    ready = f"Ready {result['ready_seconds']} s after its start; {result['peak_mb']} MB at most."
    return score_views(title, [rows], added, ready, cell="{:.2f}")


def _recall_body(query: SearchQuery) -> dict[str, Any]:
    return {"scope": {"user": query.scope}, "query": query.text}


def _measure_inside(path: Path, workload: Workload, queries: Sequence[SearchQuery], embedder: str) -> list[float]:
    """Store everything, then recall in the process; return the seconds of each recall."""
    seconds = []
    with eunoe.open(path, embedder=embedder, llm="none") as memory:
        for index in range(workload.scopes):
            for batch in workload.batches(index):
                memory.remember_many({"user": batch.scope}, batch.texts)
        memory.flush()
        for place, query in enumerate([*queries[:_WARM_QUERIES], *queries]):
            began = perf_counter()
            memory.recall({"user": query.scope}, query.text)
            if place >= _WARM_QUERIES:
                seconds.append(perf_counter() - began)
    return seconds


@contextmanager
def _started(path: Path, embedder: str, processes: int) -> Iterator[_Server]:
    command = [sys.executable, "-m", "eunoe", "serve", "--store", str(path), "--port", "0", "--llm", "none"]
    options = ["--processes", str(processes), "--embedder", embedder, "--log-level", "warning"]
    options += ["--requests-per-minute", "0"]
    began = perf_counter()
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield _wait_until_ready(path, process, began)
        finally:
            process.terminate()


def _wait_until_ready(path: Path, process: subprocess.Popen[bytes], began: float) -> _Server:
    address = path.with_suffix(".server.json")
    while perf_counter() - began < _READY_SECONDS and process.poll() is None:
        try:
            parts = urlsplit(json.loads(address.read_text())["url"])
            host, port = parts.hostname or "", parts.port or 0
            if _is_ready(host, port):
                token = path.with_suffix(".token").read_text().strip()
                return _Server(host, port, token, process.pid, perf_counter() - began)
        except (OSError, ValueError):
            pass
        sleep(0.01)
    raise StoreError("the server did not become ready")


def _is_ready(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    finally:
        connection.close()


def _load(server: _Server, requests: Sequence[str], clients: int, seconds: float) -> dict[str, Any]:
    plan = {"host": server.host, "port": server.port, "clients": clients, "seconds": seconds, "requests": requests}
    command = [sys.executable, "-m", "bench.load"]
    done = subprocess.run(command, input=json.dumps(plan), capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _figures(seconds: Sequence[float], elapsed: float, failures: int) -> dict[str, float | int]:
    ordered = sorted(seconds)
    return {
        "p50_ms": round(1000 * median(ordered), 2),
        "p95_ms": round(1000 * ordered[int(len(ordered) * 0.95)], 2),
        "per_second": round(len(ordered) / elapsed),
        "failures": failures,
    }


def _peak_bytes(pid: int) -> int:
    """The most memory that a process has taken; 0 where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
