"""The worker: real threads, a real queue, killed processes."""

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

from eunoe.errors import InputError
from eunoe.server.jobs import Job, JobKind, JobQueue, Progress, Work, Worker
from eunoe.server.state import ServerState


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServerState]:
    state = ServerState(tmp_path / "memory.server.db")
    yield state
    state.close()


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
