"""Leases of work outside the engine: one worker at a time, whatever dies, and no late word from one that lost it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunoe
from eunoe.errors import AccessError, ConflictError, InputError
from eunoe.memory import Memory
from eunoe.model.arguments import parse_time
from eunoe.model.result import Lease
from eunoe.work.leases import CLEARED, LEASE_VARIABLE

ANNA = "user=anna"
BEN = "user=ben"
WORKER = """
import sys, eunoe
from eunoe.errors import ConflictError
path, name, pieces = sys.argv[1], sys.argv[2], int(sys.argv[3])
with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(pieces):
        lease = memory.leases.acquire("user=anna", f"piece {number}")
        if lease and memory.get_many("user=anna", [f"piece-{number}"]):
            memory.leases.release("user=anna", lease)
        elif lease:
            if name == "killed":
                print(number, flush=True)
                sys.stdin.readline()
            items = [{"text": f"{name} made {number}", "id": f"piece-{number}"}]
            memory.remember_many("user=anna", items, replace=True, lease=lease)
            print(number, flush=True)
"""


class Clock:
    def __init__(self) -> None:
        self.now = parse_time("2024-01-01")

    def __call__(self) -> datetime:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("eunoe.work.leases.utc_now", clock)
    return clock


def acquire(memory: Memory, name: str = "work", **options: object) -> Lease:
    lease = memory.leases.acquire(ANNA, name, **options)  # type: ignore[arg-type]
    assert lease
    return lease


def test_one_worker_at_a_time(memory: Memory) -> None:
    first = acquire(memory, data={"first": "m1"})
    assert memory.leases.acquire(ANNA, "work") is None
    assert memory.leases.acquire(BEN, "work")
    assert memory.leases.acquire(ANNA, "other")
    assert memory.leases.release(ANNA, first)
    assert acquire(memory).owner != first.owner


def test_a_lease_runs_out_unless_it_is_renewed(memory: Memory, clock: Clock) -> None:
    first = acquire(memory, seconds=5)
    clock.pass_seconds(4)
    assert memory.leases.renew(ANNA, first)
    clock.pass_seconds(4)
    assert memory.leases.acquire(ANNA, "work") is None
    clock.pass_seconds(2)
    second = acquire(memory, seconds=5)
    assert not memory.leases.renew(ANNA, first)
    assert not memory.leases.release(ANNA, first)
    assert not memory.leases.fail(ANNA, first, "late")
    assert memory.leases.renew(ANNA, second)
    assert memory.leases.list(ANNA)[0].attempts == 0


def test_who_lost_a_lease_writes_nothing(memory: Memory, clock: Clock) -> None:
    late = acquire(memory, seconds=5)
    clock.pass_seconds(6)
    second = acquire(memory)
    writes: list[Callable[[Lease], object]] = [
        lambda lease: memory.remember_many(ANNA, [{"text": "late", "id": "a"}], replace=True, lease=lease),
        lambda lease: memory.remember_many(ANNA, [], lease=lease),
        lambda lease: memory.summaries.write(ANNA, "late", lease=lease),
    ]
    for write in writes:
        with pytest.raises(ConflictError, match="no longer yours"):
            write(late)
        with pytest.raises(ConflictError):
            write(Lease("nothing", second.owner))
    assert memory.list(ANNA).items == ()
    assert memory.summaries.revisions(ANNA) == []
    assert memory.leases.list(ANNA)[0].is_held


def test_a_write_ends_the_lease_in_its_own_step(memory: Memory) -> None:
    lease = acquire(memory)
    with pytest.raises(InputError):
        memory.remember_many(ANNA, [{"text": " "}], lease=lease)
    with pytest.raises(ConflictError):
        memory.summaries.write(ANNA, "A text.", parent=7, lease=lease)
    assert memory.leases.list(ANNA)[0].is_held
    assert memory.remember_many(ANNA, ["Anna likes tea."], lease=lease)[0].outcome == "stored"
    assert memory.leases.list(ANNA) == []
    second = acquire(memory)
    memory.summaries.write(ANNA, "Anna likes tea.", lease=second)
    with pytest.raises(ConflictError):
        memory.summaries.write(ANNA, "Anna likes coffee.", lease=second)
    assert memory.leases.list(ANNA) == []


def test_a_failure_makes_a_pause_that_grows(memory: Memory, clock: Clock) -> None:
    pauses = []
    for attempt in range(1, 4):
        lease = acquire(memory, data={"first": "m1"}) if attempt == 1 else acquire(memory)
        assert (lease.attempts, lease.data) == (attempt - 1, {"first": "m1"})
        assert memory.leases.fail(ANNA, lease, "no\nanswer")
        assert memory.leases.acquire(ANNA, "work") is None
        (status,) = memory.leases.list(ANNA)
        assert status.retry
        assert (status.attempts, status.error, status.is_held, status.until) == (attempt, "no answer", False, None)
        pauses.append((status.retry - clock.now).total_seconds())
        clock.pass_seconds(pauses[-1] + 1)
    assert pauses == sorted(pauses)
    assert memory.status().failing == 1
    memory.leases.fail(ANNA, acquire(memory), "again")
    lease = acquire(memory, ignore_pause=True)
    assert memory.leases.release(ANNA, lease)
    assert memory.leases.list(ANNA)[0].attempts == 4
    assert memory.leases.drop(ANNA, "work")
    assert not memory.leases.drop(ANNA, "work")
    assert memory.leases.list(ANNA) == []
    assert memory.status().failing == 0


def test_a_list_has_the_names_that_begin_so(memory: Memory) -> None:
    for name in ("b:2", "a:1", "b:1"):
        acquire(memory, name)
    assert [each.name for each in memory.leases.list(ANNA)] == ["a:1", "b:1", "b:2"]
    assert [each.name for each in memory.leases.list(ANNA, "b:")] == ["b:1", "b:2"]
    assert memory.leases.list("user=nobody") == []
    assert memory.scopes() == []


def test_a_block_renews_its_lease(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEASE_VARIABLE, "0.03")
    lease = acquire(memory)
    renewed = threading.Event()
    renew = memory.leases.renew
    monkeypatch.setattr(type(memory.leases), "renew", lambda _, *args: renew(*args) and (renewed.set() or True))
    with memory.leases.renewing(ANNA, lease):
        assert renewed.wait(30)
    assert not [thread for thread in threading.enumerate() if thread.name == "eunoe-lease"]


def test_leases_can_be_awaited(path: Path) -> None:
    async def main() -> list[bool]:
        async with eunoe.open_async(path, embedder="none") as memory:
            lease = await memory.leases.acquire(ANNA, "work")
            assert lease
            async with memory.leases.renewing(ANNA, lease):
                first = await memory.leases.acquire(ANNA, "work") is None
            return [first, await memory.leases.release(ANNA, lease)]

    assert asyncio.run(main()) == [True, True]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 1e9, "5", True])
def test_seconds_are_checked(memory: Memory, seconds: object) -> None:
    with pytest.raises(InputError, match="seconds"):
        memory.leases.acquire(ANNA, "work", seconds=seconds)  # type: ignore[arg-type]
    assert memory.leases.list(ANNA) == []


def test_only_a_lease_is_taken_for_one(memory: Memory) -> None:
    for wrong in ("work", {"name": "work"}, 1):
        with pytest.raises(InputError, match="acquire"):
            memory.remember_many(ANNA, ["x"], lease=wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="acquire"):
            memory.leases.renew(ANNA, wrong)  # type: ignore[arg-type]


def test_the_lease_of_another_scope_opens_nothing(memory: Memory) -> None:
    lease = acquire(memory)
    with pytest.raises(ConflictError):
        memory.remember_many(BEN, ["Ben likes tea."], lease=lease)
    reader = memory.restricted(rights=["read"])
    assert len(reader.leases.list(ANNA)) == 1
    with pytest.raises(AccessError):
        reader.leases.acquire(ANNA, "other")
    with pytest.raises(AccessError):
        memory.restricted(scopes=[BEN]).leases.drop(ANNA, "work")


def test_an_incognito_session_has_no_leases(memory: Memory) -> None:
    memory.streams.set_incognito("session=s1")
    with pytest.raises(ConflictError, match="incognito"):
        memory.leases.acquire("session=s1", "work")


class TestForgetting:
    def test_who_works_on_what_is_forgotten_writes_nothing(self, memory: Memory) -> None:
        memory.observe(ANNA, [{"content": "The secret is 4711.", "id": "m1"}, {"content": "Hello.", "id": "m2"}])
        lease = acquire(memory)
        memory.forget(ANNA, "m1")
        with pytest.raises(ConflictError):
            memory.remember_many(ANNA, ["Anna has a secret: 4711."], lease=lease)
        assert memory.list(ANNA, kinds=["fact"]).items == ()

    def test_it_reaches_errors_names_and_data(self, memory: Memory) -> None:
        memory.observe(ANNA, [{"content": 'The "secret" is 4711.', "id": "message-one"}, {"content": "x", "id": "m2"}])
        for name, data in (
            ("plain", {"first": "m2"}),
            ("ids", {"first": "message-one"}),
            ("chunk:message-one", {}),
            ("words", {"deep": ['so: The "secret" is 4711.']}),
        ):
            memory.leases.fail(ANNA, acquire(memory, name, data=data), 'cannot read The "secret" is 4711.')
        report = memory.forget(ANNA, "message-one", verify=True)
        assert report.verified, report.traces
        (left,) = memory.leases.list(ANNA)
        assert (left.name, left.data, left.error, left.attempts) == ("plain", {"first": "m2"}, CLEARED, 1)

    def test_everything_is_everything(self, memory: Memory) -> None:
        memory.observe(ANNA, "Hello.")
        acquire(memory, data={"note": "some words of mine"})
        memory.leases.acquire(BEN, "work")
        assert memory.forget(ANNA, everything=True, verify=True).verified
        assert memory.leases.list(ANNA) == []
        assert memory.leases.list(BEN)


@given(st.lists(st.sampled_from(["acquire", "renew", "release", "fail", "write", "drop", "wait"]), max_size=25))
def test_whatever_happens_at_most_one_can_write(steps: list[str]) -> None:
    """Two workers take turns at every step, on a clock that only the steps move."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch, eunoe.open(":memory:", embedder="none", llm="none") as memory:
        patch.setattr("eunoe.work.leases.utc_now", clock)
        leases: list[Lease] = []
        current: Lease | None = None
        for step in steps:
            if step == "acquire":
                taken = memory.leases.acquire(ANNA, "work", seconds=10)
                if taken:
                    leases.append(taken)
                    current = taken
            elif step == "wait":
                clock.pass_seconds(11)
            elif step == "drop":
                memory.leases.drop(ANNA, "work")
                current = None
            else:
                for lease in leases:
                    is_current = lease is current
                    assert act(memory, step, lease) == is_current
                    current = None if is_current and step != "renew" else current


def act(memory: Memory, step: str, lease: Lease) -> bool:
    if step == "renew":
        return memory.leases.renew(ANNA, lease)
    if step == "release":
        return memory.leases.release(ANNA, lease)
    if step == "fail":
        return memory.leases.fail(ANNA, lease, "no")
    try:
        memory.remember_many(ANNA, [{"text": f"by {lease.owner}", "id": "made"}], replace=True, lease=lease)
    except ConflictError:
        return False
    return memory.get(ANNA, "made").text == f"by {lease.owner}"


def start(path: Path, name: str, pieces: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", WORKER, str(path), name, str(pieces)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "open\n"
    return child


def begin(child: subprocess.Popen[str]) -> None:
    assert child.stdin
    child.stdin.write("go\n")
    child.stdin.flush()


def test_two_processes_never_make_one_piece_twice(path: Path) -> None:
    children = [start(path, name, 30) for name in ("one", "two")]
    for child in children:
        begin(child)
    outputs = [child.communicate(timeout=120)[0].split() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert sorted(int(number) for output in outputs for number in output) == list(range(30))
    with eunoe.open(path, embedder="none") as memory:
        assert len(memory.list(ANNA, retired=True).items) == 30
        assert memory.leases.list(ANNA) == []


def test_another_goes_on_where_a_process_was_killed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEASE_VARIABLE, "0.2")
    child = start(path, "killed", 1)
    begin(child)
    assert child.stdout
    assert child.stdout.readline() == "0\n"
    child.kill()
    child.communicate()
    with eunoe.open(path, embedder="none") as memory:
        while (lease := memory.leases.acquire(ANNA, "piece 0")) is None:
            assert memory.leases.list(ANNA)
        memory.remember_many(ANNA, [{"text": "second", "id": "piece-0"}], lease=lease)
        assert [item.text for item in memory.list(ANNA).items] == ["second"]
