"""The queue of jobs: leases, retries, dead ones."""

from pathlib import Path

import pytest

from eunoe.errors import ConflictError, NotFoundError
from eunoe.server.jobs import MAX_ATTEMPTS, JobQueue
from eunoe.server.state import ServerState


@pytest.fixture
def state(tmp_path: Path):
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
