"""The worker: threads that take jobs from the queue, keep them leased while they run, and hand them back on a stop."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from eunoe.errors import EunoeError
from eunoe.server.jobs import Job, JobQueue

THREADS: Final = 2
_POLL_SECONDS: Final = 1.0
"""How soon a job is seen that another process put into the queue."""
_JOIN_SECONDS: Final = 0.5
"""For threads with nothing to do; those that hang are left behind."""
_RENEWALS: Final = 3
"""How often a lease is renewed in its own time."""
_log = logging.getLogger("eunoe.server")


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
        self._threads = [self._start_thread() for _ in range(threads)]
        self._keeper = threading.Thread(target=self._keep_leases, name="eunoe-lease-keeper", daemon=True)
        self._keeper.start()
        for name, kind in kinds.items():
            if kind.every:
                self.add(name)

    def add(self, kind: str, **what: Any) -> Job:
        """Put a job into the queue and wake a thread for it."""
        return self._with_wake_up(self._queue.add(kind, **what))

    def retry(self, id: str) -> Job:
        """Put a job that failed or was cancelled back into the queue."""
        return self._with_wake_up(self._queue.retry(id))

    def _with_wake_up(self, job: Job) -> Job:
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

    def _start_thread(self) -> threading.Thread:
        # A daemon: a job that hangs must not keep the process from ending.
        thread = threading.Thread(target=self._work, name="eunoe-worker", daemon=True)
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
            elif not self._do(_Run(job, owner)):
                return  # another thread has taken the place of this one

    def _do(self, run: _Run) -> bool:
        """Do one job; return False if this thread was given up meanwhile."""
        with self._wake:
            self._runs[run.owner] = run
        error, result = self._try(run)
        with self._wake:
            is_ours = self._runs.pop(run.owner, None) is run
            self._wake.notify_all()
        if is_ours:
            self._end(run, error, result)
        return is_ours

    def _try(self, run: _Run) -> tuple[str | None, Mapping[str, Any] | None]:
        kind = self._kinds.get(run.job.kind)
        if kind is None:
            return f"no worker knows jobs of kind {run.job.kind}", None
        try:
            return None, kind.work(run.job, run.progress)
        except JobStopped:
            return "", None
        except EunoeError as error:
            return f"{type(error).__name__}: {error}", None
        except Exception as error:
            _log.exception("job %s (%s) failed", run.job.id, run.job.kind)
            return f"unexpected {type(error).__name__}; the server's log says where", None

    def _end(self, run: _Run, error: str | None, result: Mapping[str, Any] | None) -> None:
        job, kind = run.job, self._kinds.get(run.job.kind)
        if error == "":
            self._queue.hand_back(job, run.owner)
        elif error is not None:
            _log.warning("job %s (%s) has to be tried again: %s", job.id, job.kind, error)
            self._queue.fail(job, run.owner, error)
        else:
            # Whoever asked for a job wants to see its end; what comes back by itself leaves no record of nothing.
            self._queue.succeed(job, run.owner, result or {}, keep=result is not None or not (kind and kind.every))
        if kind and kind.every and self._is_open:
            self._queue.add(job.kind, tenant=job.tenant, scope=job.scope, options=job.options, delay=kind.every)

    def _keep_leases(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: not self._is_open and not self._runs, self._queue.lease_seconds / _RENEWALS)
                if not self._is_open and not self._runs:
                    return
                runs = list(self._runs.values())
            for run in runs:
                try:
                    self._keep_lease(run)
                except Exception:
                    _log.exception("the lease of job %s could not be renewed", run.job.id)

    def _keep_lease(self, run: _Run) -> None:
        kind = self._kinds.get(run.job.kind)
        if kind and monotonic() - run.began > kind.max_seconds:
            self._give_up(run, f"it took longer than {kind.max_seconds:.0f} s")
        elif not self._queue.renew(run.job, run.owner, run.progress.done, run.progress.total):
            self._give_up(run, None)  # cancelled, or another worker has it

    def _give_up(self, run: _Run, error: str | None) -> None:
        """Let go of a job whose thread cannot be stopped from outside, and put another thread in its place."""
        run.progress.is_stopped = True
        with self._wake:
            if self._runs.get(run.owner) is not run:
                return
            del self._runs[run.owner]
        if error:
            self._queue.fail(run.job, run.owner, error)
        if self._is_open:
            self._threads.append(self._start_thread())
