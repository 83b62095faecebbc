"""What each kind of job does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import time
from typing import Any, Final

from eunoe.errors import EunoeError
from eunoe.memory import Memory
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope
from eunoe.server.jobs import Job
from eunoe.server.worker import JobKind, Progress

_SESSIONS_AT_A_TIME: Final = 8
"""Few, so that progress is told and a stop has not long to wait."""
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 86_400.0


class JobError(EunoeError):
    """A job was not done to its end. What it did is kept; the rest is due."""


def job_kinds(memory: Memory, exports: Path) -> dict[str, JobKind]:
    """The kinds of jobs that a server works off, with the whole memory in hand."""
    return {
        "form": JobKind(partial(_form, memory), 15 * _MINUTE),
        "consolidate": JobKind(partial(_consolidate, memory), 10 * _MINUTE),
        "cold_sessions": JobKind(partial(_form_cold_sessions, memory), 30 * _MINUTE, every=_MINUTE),
        "embed": JobKind(partial(_embed, memory), 12 * _HOUR, every=10 * _MINUTE),
        "retention": JobKind(partial(_apply_retention, memory), _HOUR, every=_DAY),
        "export": JobKind(partial(_export, memory, exports), 2 * _HOUR),
        "clean_up": JobKind(partial(_clean_up, exports), _HOUR, every=10 * _MINUTE),
    }


def _form(memory: Memory, job: Job, progress: Progress) -> Mapping[str, Any] | None:
    # What failed before pauses in the store too, unless it is forced; the queue has waited already.
    force = bool(job.options.get("force") or job.attempts > 1 or job.error)
    return _form_result(memory.form(job.scope, force=force))


def _consolidate(memory: Memory, job: Job, progress: Progress) -> Mapping[str, Any] | None:
    revision = memory.summaries.consolidate(job.scope, force=bool(job.options.get("force", True)))
    return {"revision": revision.number} if revision else {}


def _form_cold_sessions(memory: Memory, job: Job, progress: Progress) -> Mapping[str, Any] | None:
    total, rounds = FormReport(), 0
    while (report := memory.admin.process_cold_sessions(limit=_SESSIONS_AT_A_TIME)) != FormReport():
        total += report
        rounds += 1
        progress(rounds * _SESSIONS_AT_A_TIME)
        if report.failed:
            break  # what failed pauses by itself
    return _form_result(total)


def _form_result(report: FormReport) -> Mapping[str, Any] | None:
    """What forming did, as counts. What a model said may repeat memories: it stays in the store's own status."""
    if report.failed:
        count = len(report.failed)
        parts = "1 part of a conversation" if count == 1 else f"{count} parts of conversations"
        raise JobError(f"{parts} could not be formed; the status of the store says why")
    if report == FormReport():
        return None
    return {"messages": report.messages, "learned": len(report.stored), "summaries": len(report.consolidated)}


def _embed(memory: Memory, job: Job, progress: Progress) -> Mapping[str, Any] | None:
    model = job.options.get("model")
    status = memory.status()
    if model is None and not status.unembedded and not status.reembedding:
        return None
    made = memory.admin.reembed(model, progress=progress)
    return {"vectors": made} if made else None


def _apply_retention(memory: Memory, job: Job, progress: Progress) -> Mapping[str, Any] | None:
    scopes = [Scope.parse(job.scope)] if job.scope else [stream.scope for stream in memory.streams.list()]
    archived, is_exact = 0, not job.scope or _is_exact(job)
    for done, scope in enumerate(scopes, 1):
        archived += len(memory.streams.apply_retention(scope, exact=is_exact).archived)
        progress(done, len(scopes))
    return {"archived": archived} if archived else None


def _export(memory: Memory, folder: Path, job: Job, progress: Progress) -> Mapping[str, Any]:
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{job.id}.jsonl"
    lines = memory.admin.export(list(job.options["scopes"]), file, progress=progress, exact=_is_exact(job))
    return {"lines": lines, "bytes": file.stat().st_size}


def _is_exact(job: Job) -> bool:
    return bool(job.options.get("exact"))


def _clean_up(exports: Path, job: Job, progress: Progress) -> None:
    """Delete the files of exports that nobody has fetched for an hour: what is forgotten must not live on in them."""
    for file in exports.glob("*.jsonl"):
        if time() - file.stat().st_mtime > _HOUR:
            file.unlink(missing_ok=True)
