"""The queue of jobs: what waits, who works on it and until when, what failed and why."""

from __future__ import annotations

import builtins
import json
import random
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import time
from typing import Any, Final, Literal

from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.memory import lease_seconds as store_lease_seconds
from eunoe.server.state import ServerState

JobState = Literal["queued", "running", "succeeded", "dead", "cancelled"]
STATES: Final[tuple[JobState, ...]] = ("queued", "running", "succeeded", "dead", "cancelled")

LEASE_FACTOR: Final = 1.5
"""A job's lease is so much longer than those in the store, that these have run out when the job is taken over."""
MAX_ATTEMPTS: Final = 5
FIRST_PAUSE_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 3600.0
_KEEP_SECONDS: Final = 7 * 86_400.0
_MAX_ERROR_CHARACTERS: Final = 300
_ENDED: Final = ("succeeded", "dead", "cancelled")


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
        given = json.dumps(options or {}, sort_keys=True)
        with self._state.write() as db:
            known = db.execute(
                "SELECT * FROM job WHERE state = 'queued' AND (kind, tenant, scope, options) = (?, ?, ?, ?)",
                (kind, tenant, scope, given),
            ).fetchone()
            if known:
                return _job(known)
            id = secrets.token_hex(8)
            db.execute(
                "INSERT INTO job (id, kind, tenant, scope, options, state, created, due) "
                "VALUES (?, ?, ?, ?, ?, 'queued', ?, ?)",
                (id, kind, tenant, scope, given, now, now + delay),
            )
            return _job(db.execute("SELECT * FROM job WHERE id = ?", (id,)).fetchone())

    def claim(self, owner: str) -> Job | None:
        """Lease the job that has been due for longest: a new one, or one whose worker has not been heard of."""
        now = time()
        if not self._is_any_free(now):
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
            return _job(db.execute("SELECT * FROM job WHERE id = ?", (row["id"],)).fetchone())

    def _is_any_free(self, now: float) -> bool:
        with self._state.read() as db:
            return db.execute(f"SELECT 1 FROM job WHERE {_FREE} LIMIT 1", (now, now)).fetchone() is not None

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
            if not _is_held(db, job, owner):
                return
            if keep:
                db.execute(_END, ("succeeded", "", json.dumps(result), time(), job.id))
            else:
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
                db.execute(_REQUEUE, (said, due, job.id))

    def hand_back(self, job: Job, owner: str) -> None:
        """Give a job back as if nobody had begun it."""
        with self._state.write() as db:
            if _is_held(db, job, owner):
                if _waits_already(db, job):
                    db.execute("DELETE FROM job WHERE id = ?", (job.id,))
                else:
                    db.execute(_REQUEUE, (job.error, time(), job.id))
                    db.execute("UPDATE job SET attempts = attempts - 1 WHERE id = ?", (job.id,))

    def retry(self, id: str, tenant: str | None = None) -> Job:
        """Put a dead, cancelled or pausing job into the queue now, with all its attempts before it."""
        with self._state.write() as db:
            job = _find(db, id, tenant)
            if job.state in ("running", "succeeded"):
                raise ConflictError(f"the job is {job.state}: only one that failed or was cancelled can be tried again")
            if job.state != "queued" and _waits_already(db, job):
                raise ConflictError("the same job waits in the queue already")
            db.execute(
                "UPDATE job SET state = 'queued', attempts = 0, due = ?, finished = NULL WHERE id = ?", (time(), id)
            )
            return _find(db, id, tenant)

    def cancel(self, id: str, tenant: str | None = None) -> Job:
        """Take a job out of the queue. One that runs is let go of: what it has committed stays."""
        with self._state.write() as db:
            job = _find(db, id, tenant)
            if job.state in _ENDED:
                raise ConflictError(f"the job is {job.state} already")
            db.execute(_END, ("cancelled", job.error, "{}", time(), id))
            return _find(db, id, tenant)

    def get(self, id: str, tenant: str | None = None) -> Job:
        with self._state.read() as db:
            return _find(db, id, tenant)

    def list(
        self, tenant: str | None = None, state: JobState | None = None, limit: int = 50, after: str = ""
    ) -> tuple[list[Job], str]:
        """Jobs, newest first, and where to read on. Without a tenant those of all."""
        conditions, values = ["1 = 1"], list[object]()
        if tenant is not None:
            conditions, values = [*conditions, "tenant = ?"], [*values, tenant]
        if state:
            conditions, values = [*conditions, "state = ?"], [*values, state]
        if after:
            created, id = _parse_cursor(after)
            conditions, values = [*conditions, "(created, id) < (?, ?)"], [*values, created, id]
        where = " AND ".join(conditions)
        with self._state.read() as db:
            rows = db.execute(
                f"SELECT * FROM job WHERE {where} ORDER BY created DESC, id DESC LIMIT ?", (*values, limit + 1)
            ).fetchall()
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

    def clean_up(self) -> None:
        """Drop what ended long ago; dead ones stay until somebody has seen to them."""
        with self._state.write() as db:
            long_ago = time() - _KEEP_SECONDS
            db.execute("DELETE FROM job WHERE state IN ('succeeded', 'cancelled') AND finished < ?", (long_ago,))


_FREE: Final = "(state = 'queued' AND due <= ?) OR (state = 'running' AND lease < ?)"
_END: Final = "UPDATE job SET state = ?, error = ?, result = ?, finished = ?, owner = '', lease = NULL WHERE id = ?"
_REQUEUE: Final = "UPDATE job SET state = 'queued', error = ?, due = ?, owner = '', lease = NULL WHERE id = ?"


def _is_held(db: sqlite3.Connection, job: Job, owner: str) -> bool:
    return db.execute("SELECT 1 FROM job WHERE id = ? AND owner = ?", (job.id, owner)).fetchone() is not None


def _waits_already(db: sqlite3.Connection, job: Job) -> bool:
    """Whether the same work was put into the queue anew while this job ran."""
    given = json.dumps(dict(job.options), sort_keys=True)
    key = (job.kind, job.tenant, job.scope, given, job.id)
    found = db.execute(
        "SELECT 1 FROM job WHERE state = 'queued' AND (kind, tenant, scope, options) = (?, ?, ?, ?) AND id <> ?", key
    )
    return found.fetchone() is not None


def _find(db: sqlite3.Connection, id: str, tenant: str | None) -> Job:
    row = db.execute("SELECT * FROM job WHERE id = ?", (id,)).fetchone()
    if row is None or (tenant is not None and row["tenant"] != tenant):
        raise NotFoundError("no such job")
    return _job(row)


def _job(row: sqlite3.Row) -> Job:
    plain = ("id", "kind", "tenant", "scope", "state", "attempts", "error", "done", "total")
    values: dict[str, Any] = {name: row[name] for name in plain}
    values |= {name: _moment(row[name]) for name in ("created", "due", "started", "finished", "heartbeat")}
    values |= {name: json.loads(row[name]) for name in ("options", "result")}
    return Job(**values)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _parse_cursor(after: str) -> tuple[float, str]:
    created, _, id = after.partition(":")
    try:
        return float(created), id
    except ValueError:
        raise InputError("cannot read on after this: pass the `next` of the page before") from None
