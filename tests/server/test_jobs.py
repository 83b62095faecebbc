"""Jobs: leases, retries, dead ones; workers with real threads and killed processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.waiting import PATIENCE_SECONDS as _PATIENCE
from tests.support.waiting import wait_until

from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.server.jobs import MAX_ATTEMPTS, Job, JobKind, JobQueue, Progress, Work, Worker
from eunoe.server.state import ServerState


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServerState]:
    state = ServerState(tmp_path / "memory.server.db")
    yield state
    state.close()


@pytest.fixture
def queue(state: ServerState) -> JobQueue:
    return JobQueue(state)


def test_a_job_is_claimed_once(queue: JobQueue) -> None:
    added = queue.add("form", scope="user=anna")
    job = queue.claim("me")
    assert job
    assert job.id == added.id
    assert job.state == "running"
    assert job.attempts == 1
    assert queue.claim("you") is None


def test_the_same_work_waits_once(queue: JobQueue) -> None:
    first = queue.add("form", scope="user=anna")
    assert queue.add("form", scope="user=anna").id == first.id
    assert queue.add("form", scope="user=bert").id != first.id
    assert queue.add("form", scope="user=anna", options={"force": True}).id != first.id


def test_the_same_work_can_be_added_while_it_runs(queue: JobQueue) -> None:
    first = queue.add("form", scope="user=anna")
    queue.claim("me")
    assert queue.add("form", scope="user=anna").id != first.id


def test_a_job_that_is_not_due_yet_waits(queue: JobQueue) -> None:
    queue.add("form", scope="user=anna", delay=3600)
    assert queue.claim("me") is None


def test_an_expired_lease_is_taken_over(state: ServerState) -> None:
    queue = JobQueue(state, lease_seconds=-1)
    added = queue.add("form", scope="user=anna")
    queue.claim("killed")
    taken = queue.claim("next")
    assert taken
    assert taken.id == added.id
    assert taken.attempts == 2


def test_who_lost_a_job_cannot_end_it(state: ServerState) -> None:
    queue = JobQueue(state, lease_seconds=-1)
    queue.add("form", scope="user=anna")
    lost = queue.claim("slow")
    held = queue.claim("next")
    assert lost
    assert held
    assert not queue.renew(lost, "slow")
    queue.succeed(lost, "slow", {})
    queue.fail(lost, "slow", "no")
    assert queue.get(held.id).state == "running"
    queue.succeed(held, "next", {"learned": 1})
    assert queue.get(held.id).result == {"learned": 1}


def test_a_failed_job_pauses_longer_each_time_and_dies(queue: JobQueue, state: ServerState) -> None:
    id, pauses = queue.add("form", scope="user=anna").id, []
    for _ in range(MAX_ATTEMPTS):
        job = queue.claim("me")
        assert job
        queue.fail(job, "me", "the model\nfailed")
        failed = queue.get(id)
        assert failed.error == "the model failed"
        pauses.append((failed.due - job.due).total_seconds())
        with state.write() as db:  # the pause is over
            db.execute("UPDATE job SET due = 0")
    assert queue.get(id).state == "dead"
    assert pauses[:3] == sorted(pauses[:3])
    assert queue.claim("me") is None
    assert [job.id for job in queue.list(state="dead")[0]] == [id]


def test_a_job_whose_workers_are_killed_each_time_dies(state: ServerState) -> None:
    queue = JobQueue(state, lease_seconds=-1)
    id = queue.add("form", scope="user=anna").id
    for _ in range(MAX_ATTEMPTS):
        assert queue.claim("killed")
    assert queue.claim("next") is None
    assert queue.get(id).state == "dead"
    assert "worker" in queue.get(id).error


def test_a_dead_job_can_be_tried_again(queue: JobQueue, state: ServerState) -> None:
    id = queue.add("form", scope="user=anna").id
    with state.write() as db:
        db.execute("UPDATE job SET state = 'dead', attempts = 5, error = 'no'")
    assert queue.retry(id).state == "queued"
    job = queue.claim("me")
    assert job
    assert job.attempts == 1
    assert job.error == "no"
    with pytest.raises(ConflictError, match="running"):
        queue.retry(id)


def test_a_job_that_is_handed_back_has_lost_no_attempt(queue: JobQueue) -> None:
    queue.add("form", scope="user=anna")
    job = queue.claim("me")
    assert job
    queue.hand_back(job, "me")
    assert queue.get(job.id).attempts == 0
    assert queue.claim("next")


def test_what_is_handed_back_while_the_same_waits_is_one_job(queue: JobQueue) -> None:
    queue.add("form", scope="user=anna")
    job = queue.claim("me")
    queue.add("form", scope="user=anna")
    assert job
    queue.hand_back(job, "me")
    assert queue.counts()["queued"] == 1


def test_a_cancelled_job_is_gone_from_the_queue(queue: JobQueue) -> None:
    waits, runs = queue.add("form", scope="user=anna"), queue.add("form", scope="user=bert")
    queue.cancel(waits.id)
    job = queue.claim("me")
    assert job
    assert job.id == runs.id
    queue.cancel(runs.id)
    assert not queue.renew(job, "me")
    with pytest.raises(ConflictError):
        queue.cancel(runs.id)


def test_a_tenant_sees_its_own_jobs(queue: JobQueue) -> None:
    theirs = queue.add("form", tenant="acme", scope="tenant=acme/user=anna")
    assert queue.list(tenant="other")[0] == []
    with pytest.raises(NotFoundError) as hidden:
        queue.get(theirs.id, tenant="other")
    with pytest.raises(NotFoundError) as missing:
        queue.get("none", tenant="other")
    assert str(hidden.value) == str(missing.value)


def test_jobs_are_listed_in_pages(queue: JobQueue) -> None:
    added = [queue.add("form", scope=f"user=u{number}").id for number in range(5)]
    first, more = queue.list(limit=3)
    second, end = queue.list(limit=3, after=more)
    assert sorted(job.id for job in [*first, *second]) == sorted(added)
    assert end == ""


@pytest.fixture
def start(state: ServerState) -> Iterator[Callable[..., tuple[Worker, JobQueue]]]:
    workers: list[Worker] = []

    def start(work: Work, *, lease: float = 30, max_seconds: float = 60, threads: int = 1) -> tuple[Worker, JobQueue]:
        queue = JobQueue(state, lease)
        workers.append(Worker(queue, {"test": JobKind(work, max_seconds)}, threads))
        return workers[-1], queue

    yield start
    for worker in workers:
        worker.close(0.1)


def test_a_job_is_done(start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    worker, queue = start(lambda job, progress: {"scope": job.scope})
    job = worker.add("test", scope="user=anna")
    wait_until(lambda: queue.get(job.id).state == "succeeded")
    assert queue.get(job.id).result == {"scope": "user=anna"}
    assert queue.get(job.id).finished


def test_whoever_asked_for_a_job_sees_that_it_had_nothing_to_do(start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    worker, queue = start(lambda job, progress: None)
    job = worker.add("test")
    wait_until(lambda: queue.get(job.id).state == "succeeded")


def test_a_job_that_comes_back_by_itself_leaves_no_record_of_nothing(state: ServerState) -> None:
    queue = JobQueue(state)
    worker = Worker(queue, {"test": JobKind(lambda job, progress: None, 60, every=3600)}, 1)
    first = queue.list()[0][0].id
    wait_until(lambda: any(job.id != first for job in queue.list()[0]))
    assert [job.state for job in queue.list()[0]] == ["queued"]
    worker.close(0.1)


def test_an_error_is_told_and_the_job_waits_for_its_retry(start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    def fail(job: Job, progress: Progress) -> None:
        raise InputError("no such stream")

    worker, queue = start(fail)
    job = worker.add("test")
    wait_until(lambda: queue.get(job.id).error != "")
    found = queue.get(job.id)
    assert found.state == "queued"
    assert found.error == "InputError: no such stream"
    assert found.due > found.created


def test_an_unexpected_error_names_no_contents(
    start: Callable[..., tuple[Worker, JobQueue]], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(job: Job, progress: Progress) -> None:
        raise ZeroDivisionError("Anna's PIN is 4711")

    worker, queue = start(fail)
    job = worker.add("test")
    wait_until(lambda: queue.get(job.id).error != "")
    assert "4711" not in queue.get(job.id).error


def test_progress_and_heartbeat_are_told(start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    go_on = threading.Event()

    def work(job: Job, progress: Progress) -> dict[str, int]:
        progress(3, 10)
        go_on.wait(_PATIENCE)
        return {}

    worker, queue = start(work, lease=0.3)
    job = worker.add("test")
    wait_until(lambda: queue.get(job.id).done == 3)
    first = queue.get(job.id)
    assert first.total == 10
    wait_until(lambda: (queue.get(job.id).heartbeat or first.created) > (first.heartbeat or first.created))
    assert queue.get(job.id).attempts == 1  # its lease outlived several times its length
    go_on.set()
    wait_until(lambda: queue.get(job.id).state == "succeeded")


def test_a_job_that_takes_too_long_is_given_up_and_others_go_on(start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    end = threading.Event()

    def work(job: Job, progress: Progress) -> dict[str, int]:
        if job.scope == "slow":
            end.wait(_PATIENCE)
        return {}

    worker, queue = start(work, lease=0.3, max_seconds=0.2)
    slow = worker.add("test", scope="slow")
    wait_until(lambda: "longer than" in queue.get(slow.id).error)
    quick = worker.add("test", scope="quick")
    wait_until(lambda: queue.get(quick.id).state == "succeeded")
    end.set()


def test_a_cancelled_job_is_stopped(start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    began, stopped = threading.Event(), threading.Event()

    def work(job: Job, progress: Progress) -> dict[str, int]:
        began.set()
        try:
            while True:
                progress(1)
                stopped.wait(0.01)
        finally:
            stopped.set()

    worker, queue = start(work, lease=0.3)
    job = worker.add("test")
    assert began.wait(_PATIENCE)
    queue.cancel(job.id)
    wait_until(stopped.is_set)
    assert queue.get(job.id).state == "cancelled"


def test_closing_hands_back_what_is_not_done(start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    began, end = threading.Event(), threading.Event()

    def work(job: Job, progress: Progress) -> dict[str, int]:
        began.set()
        end.wait(_PATIENCE)
        return {}

    worker, queue = start(work)
    job = worker.add("test")
    assert began.wait(_PATIENCE)
    worker.close(0.1)
    assert queue.get(job.id).state == "queued"
    assert queue.get(job.id).attempts == 0
    end.set()


def test_closing_waits_for_what_is_almost_done(start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    began, end = threading.Event(), threading.Event()

    def work(job: Job, progress: Progress) -> dict[str, int]:
        began.set()
        end.wait(_PATIENCE)
        return {"learned": 1}

    worker, queue = start(work)
    job = worker.add("test")
    assert began.wait(_PATIENCE)
    closing = threading.Thread(target=worker.close)
    closing.start()
    end.set()
    closing.join()
    assert queue.get(job.id).state == "succeeded"


_KILLED = """
import sys, threading
from pathlib import Path
from eunoe.server.jobs import JobQueue
from eunoe.server.state import ServerState
from eunoe.server.jobs import JobKind, Worker

def work(job, progress):
    print("began", flush=True)
    threading.Event().wait()

queue = JobQueue(ServerState(Path(sys.argv[1])), 0.5)
worker = Worker(queue, {"test": JobKind(work, 60)}, 1)
worker.add("test", scope="user=anna")
threading.Event().wait()
"""


def test_a_killed_workers_job_is_taken_over(state: ServerState, start: Callable[..., tuple[Worker, JobQueue]]) -> None:
    command = [sys.executable, "-c", textwrap.dedent(_KILLED), str(state.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.SIGKILL)
    _, queue = start(lambda job, progress: {"done": 1}, lease=0.5)
    wait_until(lambda: [job.state for job in queue.list()[0]] == ["succeeded"])
    assert queue.list()[0][0].attempts == 2
