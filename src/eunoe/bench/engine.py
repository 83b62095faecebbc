"""`eunoe bench engine`: the same work on Eunoe and on its peers, each in its own process."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from eunoe.bench.goals import goals, ratios
from eunoe.bench.peers import PEERS, SUBJECT, engine_class
from eunoe.bench.worker import Spec
from eunoe.bench.workload import BATCH, Workload
from eunoe.cli.command import Settings
from eunoe.errors import InputError

Progress = Callable[[str], None]

SCOPES = 100
SIZES = (1_000, 10_000, 50_000)
QUICK_SIZES = (1_000, 10_000)
MILLION = (1_000_000, 10_000)
MILLION_AGAINST = (10_000, 100)
STREAM = 10_000
SECONDS = 20.0
QUICK_SECONDS = 4.0


class WorkerFailed(Exception):
    """A process of the bench ended without a result."""


def run_engine_bench(
    sizes: Sequence[int] = SIZES,
    peers: Sequence[str] | None = None,
    million: bool = True,
    progress: Progress | None = None,
    *,
    scopes: int = SCOPES,
    queries: int = 500,
    singles: int = 300,
    seconds: float = SECONDS,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Measure Eunoe and the named peers (all by default); `million` adds Eunoe alone at scale."""
    say = progress or _silent
    names = [SUBJECT, *(PEERS if peers is None else _known(peers))]
    runs: dict[str, dict[str, Any]] = {str(size): {} for size in sizes}
    unavailable: dict[str, str] = {}
    for size in sizes:
        for name in names:
            if name in unavailable:
                continue
            spec = Spec("measure", name, "", size, scopes, queries, singles, seconds)
            try:
                runs[str(size)][name] = _in_own_folder(spec, folder, say)
            except WorkerFailed as error:
                unavailable[name] = str(error)
                say(f"{name}: {error}")
    result = {
        "machine": _machine(),
        "workload": _workload(sizes, scopes, queries, singles, seconds),
        "engines": {name: _about(name, runs) for name in names},
        "sizes": runs,
        "ratios": {size: ratios(run) for size, run in runs.items()},
        "unavailable": unavailable,
    }
    if million:
        try:
            result["million"] = run_scale_bench(say, folder=folder)
        except WorkerFailed as error:
            unavailable[f"{SUBJECT} at scale"] = str(error)
    result["goals"] = goals(result)
    return result


def run_scale_bench(
    progress: Progress | None = None,
    *,
    large: tuple[int, int] = MILLION,
    small: tuple[int, int] = MILLION_AGAINST,
    stream: int = STREAM,
    queries: int = 1_000,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Eunoe alone: many memories in many scopes against few in few, and one long stream opened cold."""
    say = progress or _silent
    with _temporary(folder) as base:
        paths = {name: str(_made(base / name)) for name in ("large", "small", "stream")}
        built = _run(Spec("build", SUBJECT, paths["large"], *large), say)
        _run(Spec("build", SUBJECT, paths["small"], *small), say)
        _run(Spec("build", SUBJECT, paths["stream"], stream, 1), say)
        against = dict(zip(("small_size", "small_scopes"), small, strict=True))
        spec = Spec("compare", SUBJECT, paths["large"], *large, queries, small_folder=paths["small"], **against)
        return {
            "large": {"memories": large[0], "scopes": large[1], **built},
            "small": {"memories": small[0], "scopes": small[1]},
            "recall": _run(spec, say),
            "cold_stream": _run(Spec("stream", SUBJECT, paths["stream"], stream, 1), say),
        }


def _silent(text: str) -> None:
    pass


def _known(peers: Sequence[str]) -> list[str]:
    unknown = [name for name in peers if name not in PEERS]
    if unknown:
        raise ValueError(f"unknown peer {', '.join(unknown)}; known: {', '.join(PEERS)}")
    return list(peers)


@contextmanager
def _temporary(folder: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="eunoe-bench-", dir=folder, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def _in_own_folder(spec: Spec, folder: Path | None, say: Progress) -> dict[str, Any]:
    with _temporary(folder) as own:
        return _run(Spec(**{**vars(spec), "folder": str(own)}), say)


def _run(spec: Spec, say: Progress) -> dict[str, Any]:
    """Do one spec in a fresh process, passing on its progress."""
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "eunoe.bench.worker", spec.dumps()]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, "PYTHONPATH": paths}
        )
        with process:
            answer = _listen(process, f"{spec.engine} {spec.size:,}", say)
        if answer is None:
            errors.seek(0)
            lines = errors.read().strip().splitlines() or ["no message"]
            raise WorkerFailed(f"failed with exit code {process.returncode}: {lines[-1]}")
    if "unavailable" in answer:
        raise WorkerFailed(answer["unavailable"])
    result: dict[str, Any] = answer["result"]
    return result


def _listen(process: subprocess.Popen[str], title: str, say: Progress) -> dict[str, Any] | None:
    answer = None
    try:
        for line in process.stdout or ():
            message = json.loads(line)
            if "progress" in message:
                say(f"{title}: {message['progress']}")
            else:
                answer = message
    except BaseException:
        process.kill()
        raise
    return answer


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
    }


def _workload(sizes: Sequence[int], scopes: int, queries: int, singles: int, seconds: float) -> dict[str, Any]:
    sample = Workload(1, 1)
    return {
        "sizes": list(sizes),
        "scopes": scopes,
        "batch": BATCH,
        "queries": queries,
        "single_adds": singles,
        "seconds_per_phase": seconds,
        "dimension": sample.dimension,
        "seed": sample.seed,
    }


def _about(name: str, runs: dict[str, dict[str, Any]]) -> dict[str, str]:
    chosen = engine_class(name)
    versions = [run[name]["version"] for run in runs.values() if name in run]
    return {
        "package": chosen.package,
        "version": versions[0] if versions else "",
        "durability": chosen.durability,
        "index": chosen.index,
        "search": chosen.recipe,
        "setup": chosen.setup,
    }


def engine_command(
    ctx: typer.Context,
    sizes: Annotated[str, typer.Option(help="Numbers of memories, with commas.")] = "",
    peers: Annotated[str, typer.Option(help=f"Peers, with commas; 'none' or any of {', '.join(PEERS)}.")] = "",
    million: Annotated[bool, typer.Option(help="Also Eunoe alone with 1,000,000 in 10,000 scopes.")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, short time limits, no million.")] = False,
    queries: Annotated[int, typer.Option(min=1, help="Searches timed per engine and size.")] = 500,
    folder: Annotated[Path | None, typer.Option(help="Where the temporary stores are made.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown table to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a PNG of the figures to this file.")] = None,
) -> None:
    """Measure Eunoe beside sqlite-vec, chroma, lancedb, LangGraph's stores and mem0; no model is timed."""
    from eunoe.bench import report

    try:
        chosen = _numbers(sizes) or (QUICK_SIZES if quick else SIZES)
        named = None if not peers else [] if peers == "none" else _known(_split(peers))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    _check_targets(markdown, plot)
    with report.progress() as say:
        result = run_engine_bench(
            chosen,
            named,
            million and not quick,
            say,
            queries=queries,
            seconds=QUICK_SECONDS if quick else SECONDS,
            folder=folder,
        )
    if json_ or Settings.before(ctx).json:
        typer.echo(json.dumps(result, indent=2))
    else:
        report.show(result)
    if markdown:
        markdown.write_text(report.markdown(result), encoding="utf-8")
    if plot:
        from eunoe.bench.plot import draw

        draw(result, plot)


def _check_targets(markdown: Path | None, plot: Path | None) -> None:
    """Refuses at once what would fail only after everything was measured."""
    for path in filter(None, (markdown, plot)):
        if not path.parent.is_dir():
            raise InputError(f"cannot write {path}: there is no folder {path.parent}")
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"cannot write {path}: it is a folder or protected")
    if plot and find_spec("matplotlib") is None:
        raise InputError("--plot needs matplotlib: pip install 'eunoe[bench]'")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_number(part) for part in _split(text))


def _number(text: str) -> int:
    digits = text.replace("_", "")
    if not (digits.isascii() and digits.isdigit() and int(digits)):
        raise ValueError(f"{text!r} is not a number of memories: write them as in --sizes 1000,10000")
    return int(digits)
