"""Jobs: the queue of what runs behind the replies, the threads that work it off, and what each kind does."""

from __future__ import annotations

import builtins
import json
import logging
import random
import secrets
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import Any, Final, Literal

from eunoe.errors import ConflictError, EunoeError, InputError, NotFoundError
from eunoe.memory import Memory
from eunoe.memory import lease_seconds as store_lease_seconds
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope
from eunoe.server.state import ServerState, insert

JobState = Literal["queued", "running", "succeeded", "dead", "cancelled"]
STATES: Final[tuple[JobState, ...]] = ("queued", "running", "succeeded", "dead", "cancelled")

LEASE_FACTOR: Final = 1.5
"""A job's lease is so much longer than those in the store, that these have run out when the job is taken over."""
MAX_ATTEMPTS: Final = 5
FIRST_PAUSE_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 3600.0
_KEEP_SECONDS: Final = 7 * 86_400.0
"""So long one that ended is kept; dead ones stay until somebody has seen to them."""
_MAX_ERROR_CHARACTERS: Final = 300
_FREE: Final = "(state = 'queued' AND due <= ?) OR (state = 'running' AND lease < ?)"
_SAME: Final = "state = 'queued' AND (kind, tenant, scope, options) = (?, ?, ?, ?)"
_END: Final = "UPDATE job SET state = ?, error = ?, result = ?, finished = ?, owner = '', lease = NULL WHERE id = ?"
_REQUEUE: Final = (
    "UPDATE job SET state = 'queued', error = ?, due = ?, attempts = ?, owner = '', lease = NULL, finished = NULL "
    "WHERE id = ?"
)
_log = logging.getLogger("eunoe.server")


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work behind the replies."""

    id: str
    kind: str
    tenant: str
    scope: str
    """Empty if it is about the whole store."""
    state: JobState
    attempts: int
    error: str
    """What the last attempt said. It repeats no memories."""
    created: datetime
    due: datetime
    """Not to be taken before."""
    done: int = 0
    total: int | None = None
    started: datetime | None = None
    finished: datetime | None = None
    heartbeat: datetime | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)


class JobQueue:
    """Jobs in the server's own records. Any number of workers, in any process, may share it."""

    def __init__(
        self, state: ServerState, lease_seconds: float = 0.0, pause_seconds: float = FIRST_PAUSE_SECONDS
    ) -> None:
        self._state = state
        self.lease_seconds = lease_seconds or LEASE_FACTOR * store_lease_seconds()
        """So long a killed worker's job waits for another one."""
        self._pause_seconds = pause_seconds
        """Before the second attempt; each later one waits four times as long."""

    def add(
        self,
        kind: str,
        *,
        tenant: str = "",
        scope: str = "",
        options: Mapping[str, Any] | None = None,
        delay: float = 0.0,
    ) -> Job:
        """Put a job into the queue, or return the same one if it waits already."""
        now = time()
        what = {"kind": kind, "tenant": tenant, "scope": scope, "options": json.dumps(options or {}, sort_keys=True)}
        with self._state.write() as db:
            long_ago = now - _KEEP_SECONDS
            db.execute("DELETE FROM job WHERE state IN ('succeeded', 'cancelled') AND finished < ?", (long_ago,))
            known = db.execute(f"SELECT * FROM job WHERE {_SAME}", tuple(what.values())).fetchone()
            if known:
                return _job(known)
            id = secrets.token_hex(8)
            insert(db, "job", id=id, state="queued", created=now, due=now + delay, **what)
            return _find(db, id)

    def claim(self, owner: str) -> Job | None:
        """Lease the job that has been due for longest: a new one, or one whose worker has not been heard of."""
        now = time()
        with self._state.read() as db:
            if db.execute(f"SELECT 1 FROM job WHERE {_FREE} LIMIT 1", (now, now)).fetchone() is None:
                return None
        with self._state.write() as db:
            row = db.execute(f"SELECT * FROM job WHERE {_FREE} ORDER BY due LIMIT 1", (now, now)).fetchone()
            if row is None:
                return None
            if row["attempts"] >= MAX_ATTEMPTS:  # its workers were killed each time
                error = row["error"] or "its worker ended before it did, each time"
                db.execute(_END, ("dead", error, "{}", now, row["id"]))
                return None
            db.execute(
                "UPDATE job SET state = 'running', owner = ?, lease = ?, heartbeat = ?, started = ?, done = 0, "
                "total = NULL, attempts = attempts + 1 WHERE id = ?",
                (owner, now + self.lease_seconds, now, now, row["id"]),
            )
            return _find(db, row["id"])

    def renew(self, job: Job, owner: str, done: int = 0, total: int | None = None) -> bool:
        """Hold on to a job and say how far it is; return False if it is no longer this owner's."""
        now = time()
        with self._state.write() as db:
            changed = db.execute(
                "UPDATE job SET lease = ?, heartbeat = ?, done = ?, total = ? WHERE id = ? AND owner = ?",
                (now + self.lease_seconds, now, done, total, job.id, owner),
            )
            return changed.rowcount == 1

    def succeed(self, job: Job, owner: str, result: Mapping[str, Any], keep: bool = True) -> None:
        """End a job well. One that is not worth keeping leaves no record."""
        with self._state.write() as db:
            if _is_held(db, job, owner):
                db.execute(_END, ("succeeded", "", json.dumps(result), time(), job.id))
                if not keep:
                    db.execute("DELETE FROM job WHERE id = ?", (job.id,))

    def fail(self, job: Job, owner: str, error: str) -> None:
        """End an attempt that went wrong: it waits for the next one, or joins the dead ones."""
        now, said = time(), " ".join(error.split())[:_MAX_ERROR_CHARACTERS]
        with self._state.write() as db:
            if not _is_held(db, job, owner):
                return
            if job.attempts >= MAX_ATTEMPTS or _waits_already(db, job):
                db.execute(_END, ("dead", said, "{}", now, job.id))
            else:
                pause = min(self._pause_seconds * 4 ** (job.attempts - 1), _LONGEST_PAUSE_SECONDS)
                due = now + pause * random.uniform(0.75, 1.0)  # many that failed together do not come back together
                db.execute(_REQUEUE, (said, due, job.attempts, job.id))

    def hand_back(self, job: Job, owner: str) -> None:
        """Give a job back as if nobody had begun it."""
        with self._state.write() as db:
            if not _is_held(db, job, owner):
                return
            if _waits_already(db, job):
                db.execute("DELETE FROM job WHERE id = ?", (job.id,))
            else:
                db.execute(_REQUEUE, (job.error, time(), job.attempts - 1, job.id))

    def retry(self, id: str, tenant: str | None = None) -> Job:
        """Put a dead, cancelled or pausing job into the queue now, with all its attempts before it."""
        with self._state.write() as db:
            job = _find(db, id, tenant)
            if job.state in ("running", "succeeded"):
                raise ConflictError(f"the job is {job.state}: only one that failed or was cancelled can be tried again")
            if job.state != "queued" and _waits_already(db, job):
                raise ConflictError("the same job waits in the queue already")
            db.execute(_REQUEUE, (job.error, time(), 0, id))
            return _find(db, id)

    def cancel(self, id: str, tenant: str | None = None) -> Job:
        """Take a job out of the queue. One that runs is let go of: what it has committed stays."""
        with self._state.write() as db:
            job = _find(db, id, tenant)
            if job.state not in ("queued", "running"):
                raise ConflictError(f"the job is {job.state} already")
            db.execute(_END, ("cancelled", job.error, "{}", time(), id))
            return _find(db, id)

    def get(self, id: str, tenant: str | None = None) -> Job:
        with self._state.read() as db:
            return _find(db, id, tenant)

    def list(
        self, tenant: str | None = None, state: JobState | None = None, limit: int = 50, after: str = ""
    ) -> tuple[list[Job], str]:
        """Jobs, newest first, and where to read on. Without a tenant those of all."""
        created, _, id = after.partition(":")
        try:
            place = float(created or "inf")
        except ValueError:
            raise InputError("cannot read on after this: pass the `next` of the page before") from None
        query = (
            "SELECT * FROM job WHERE (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR state = ?2) "
            "AND (created, id) < (?3, ?4) ORDER BY created DESC, id DESC LIMIT ?5"
        )
        with self._state.read() as db:
            rows = db.execute(query, (tenant, state, place, id, limit + 1)).fetchall()
        more = f"{rows[limit - 1]['created']!r}:{rows[limit - 1]['id']}" if len(rows) > limit else ""
        return [_job(row) for row in rows[:limit]], more

    def of_kind(self, kind: str) -> builtins.list[Job]:
        with self._state.read() as db:
            return [_job(row) for row in db.execute("SELECT * FROM job WHERE kind = ?", (kind,))]

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        with self._state.read() as db:
            found = dict(db.execute("SELECT state, count(*) FROM job GROUP BY state").fetchall())
        return {state: found.get(state, 0) for state in STATES}


def _is_held(db: sqlite3.Connection, job: Job, owner: str) -> bool:
    return db.execute("SELECT 1 FROM job WHERE id = ? AND owner = ?", (job.id, owner)).fetchone() is not None


def _waits_already(db: sqlite3.Connection, job: Job) -> bool:
    """Whether the same work was put into the queue anew while this job ran."""
    what = (job.kind, job.tenant, job.scope, json.dumps(dict(job.options), sort_keys=True))
    return db.execute(f"SELECT 1 FROM job WHERE {_SAME} AND id <> ?", (*what, job.id)).fetchone() is not None


def _find(db: sqlite3.Connection, id: str, tenant: str | None = None) -> Job:
    row = db.execute("SELECT * FROM job WHERE id = ?", (id,)).fetchone()
    if row is None or (tenant is not None and row["tenant"] != tenant):
        raise NotFoundError("no such job")
    return _job(row)


def _job(row: sqlite3.Row) -> Job:
    values = {name: value for name, value in dict(row).items() if name not in ("owner", "lease")}
    for name in ("created", "due", "started", "finished", "heartbeat"):
        values[name] = None if row[name] is None else datetime.fromtimestamp(row[name], UTC)
    values |= {name: json.loads(row[name]) for name in ("options", "result")}
    return Job(**values)


THREADS: Final = 2
_POLL_SECONDS: Final = 1.0
"""How soon a job is seen that another process put into the queue."""
_JOIN_SECONDS: Final = 0.5
"""For threads with nothing to do; those that hang are left behind."""
_RENEWALS: Final = 3
"""How often a lease is renewed in its own time."""


class Progress:
    """How far a job is. Calling it raises JobStopped once nobody waits for the job any more."""

    def __init__(self) -> None:
        self.done = 0
        self.total: int | None = None
        self.is_stopped = False

    def __call__(self, done: int, total: int | None = None) -> None:
        self.done, self.total = done, total
        if self.is_stopped:
            raise JobStopped


class JobStopped(Exception):
    """The job was cancelled, ran for too long, or the server stops."""


Work = Callable[[Job, Progress], Mapping[str, Any] | None]
"""Does a job; returns what it did, or None if nothing was to be done. It raises if it has to be tried again."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job: what it does and how long it may take."""

    work: Work
    max_seconds: float
    every: float = 0.0
    """Seconds from one to the next, for those that come back by themselves."""


@dataclass
class _Run:
    """A job in the hands of one thread."""

    job: Job
    owner: str
    kind: JobKind
    progress: Progress = field(default_factory=Progress)
    began: float = field(default_factory=monotonic)


class Worker:
    """Works jobs off in this process. Its names are random: what a machine is called means nothing."""

    def __init__(self, queue: JobQueue, kinds: Mapping[str, JobKind], threads: int = THREADS) -> None:
        self._queue = queue
        self._kinds = kinds
        self._wake = threading.Condition()
        self._runs: dict[str, _Run] = {}
        self._is_open = True
        self._threads = [self._start_thread(self._work) for _ in range(threads)]
        self._keeper = self._start_thread(self._keep_leases)
        for name, kind in kinds.items():
            if kind.every:
                self.add(name)

    def add(self, kind: str, **what: Any) -> Job:
        """Put a job into the queue and wake a thread for it."""
        return self._woken_for(self._queue.add(kind, **what))

    def retry(self, id: str) -> Job:
        """Put a job that failed or was cancelled back into the queue."""
        return self._woken_for(self._queue.retry(id))

    def _woken_for(self, job: Job) -> Job:
        with self._wake:
            self._wake.notify_all()
        return job

    def close(self, seconds: float = 10.0) -> None:
        """Take no more jobs, give those under way some time, and hand back what is not done then."""
        end = monotonic() + seconds
        with self._wake:
            self._is_open = False
            for run in self._runs.values():
                run.progress.is_stopped = True
            self._wake.notify_all()
            self._wake.wait_for(lambda: not self._runs, max(end - monotonic(), 0.0))
            left = list(self._runs.values())
            self._runs.clear()
            self._wake.notify_all()
        for run in left:
            self._queue.hand_back(run.job, run.owner)
        self._keeper.join()
        for thread in self._threads:
            thread.join(max(end - monotonic(), _JOIN_SECONDS))

    def _start_thread(self, target: Callable[[], None]) -> threading.Thread:
        # A daemon: a job that hangs must not keep the process from ending.
        thread = threading.Thread(target=target, name="eunoe-worker", daemon=True)
        thread.start()
        return thread

    def _work(self) -> None:
        owner = secrets.token_hex(8)
        while self._is_open:
            try:
                job = self._queue.claim(owner)
            except Exception:
                _log.exception("the queue cannot be read")
                job = None
            if job is None:
                with self._wake:
                    if self._is_open:
                        self._wake.wait(_POLL_SECONDS)
                continue
            kind = self._kinds.get(job.kind)
            if kind is None:
                self._queue.fail(job, owner, f"no worker knows jobs of kind {job.kind}")
            elif not self._do(_Run(job, owner, kind)):
                return  # it was given up meanwhile, and another thread has taken the place of this one

    def _do(self, run: _Run) -> bool:
        """Do one job; return False if this thread was given up meanwhile."""
        job, error, result = run.job, "", None
        with self._wake:
            self._runs[run.owner] = run
        try:
            result = run.kind.work(job, run.progress)
            is_stopped = False
        except JobStopped:
            is_stopped = True
        except EunoeError as problem:
            error, is_stopped = f"{type(problem).__name__}: {problem}", False
        except Exception as problem:
            _log.exception("job %s (%s) failed", job.id, job.kind)
            error, is_stopped = f"unexpected {type(problem).__name__}; the server's log says where", False
        with self._wake:
            is_ours = self._runs.pop(run.owner, None) is run
            self._wake.notify_all()
        if not is_ours:
            return False
        if is_stopped:
            self._queue.hand_back(job, run.owner)
        elif error:
            _log.warning("job %s (%s) has to be tried again: %s", job.id, job.kind, error)
            self._queue.fail(job, run.owner, error)
        else:
            # Whoever asked for a job wants to see its end; what comes back by itself leaves no record of nothing.
            self._queue.succeed(job, run.owner, result or {}, keep=result is not None or not run.kind.every)
        if run.kind.every and self._is_open:
            delay = run.kind.every
            self._queue.add(job.kind, tenant=job.tenant, scope=job.scope, options=job.options, delay=delay)
        return True

    def _keep_leases(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: not self._is_open and not self._runs, self._queue.lease_seconds / _RENEWALS)
                if not self._is_open and not self._runs:
                    return
                runs = list(self._runs.values())
            for run in runs:
                try:
                    if monotonic() - run.began > run.kind.max_seconds:
                        self._give_up(run, f"it took longer than {run.kind.max_seconds:.0f} s")
                    elif not self._queue.renew(run.job, run.owner, run.progress.done, run.progress.total):
                        self._give_up(run, "")  # cancelled, or another worker has it
                except Exception:
                    _log.exception("the lease of job %s could not be renewed", run.job.id)

    def _give_up(self, run: _Run, error: str) -> None:
        """Let go of a job whose thread cannot be stopped from outside, and put another thread in its place."""
        run.progress.is_stopped = True
        with self._wake:
            if self._runs.get(run.owner) is not run:
                return
            del self._runs[run.owner]
        if error:
            self._queue.fail(run.job, run.owner, error)
        if self._is_open:
            self._threads.append(self._start_thread(self._work))


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
    if model is None and not status.unembedded:
        return None
    made = memory.admin.reembed(model, progress=progress)
    return {"vectors": made} if made else None


def _apply_retention(memory: Memory, job: Job, progress: Progress) -> Mapping[str, Any] | None:
    scopes = [Scope.parse(job.scope)] if job.scope else [stream.scope for stream in memory.streams.list()]
    archived, is_exact = 0, not job.scope or bool(job.options.get("exact"))
    for done, scope in enumerate(scopes, 1):
        archived += len(memory.streams.apply_retention(scope, exact=is_exact).archived)
        progress(done, len(scopes))
    return {"archived": archived} if archived else None


def _export(memory: Memory, folder: Path, job: Job, progress: Progress) -> Mapping[str, Any]:
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{job.id}.jsonl"
    lines = memory.admin.export(
        list(job.options["scopes"]), file, progress=progress, exact=bool(job.options.get("exact"))
    )
    return {"lines": lines, "bytes": file.stat().st_size}


def _clean_up(exports: Path, job: Job, progress: Progress) -> None:
    """Delete the files of exports that nobody has fetched for an hour: what is forgotten must not live on in them."""
    for file in exports.glob("*.jsonl"):
        if time() - file.stat().st_mtime > _HOUR:
            file.unlink(missing_ok=True)
