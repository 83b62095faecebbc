"""A few threads do the work; they stay while they may be needed, and no longer."""

import gc
import threading
from functools import partial
from threading import Event, get_ident

import pytest
from eunoe.hosts.langchain.daemon_threads import DaemonThreads
from tests.support.waiting import wait_until


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "eunoe-many"]


def test_there_are_no_more_threads_than_said() -> None:
    gate = Event()
    threads = DaemonThreads("eunoe-many", 2)
    futures = [threads.submit(partial(gate.wait, 60)) for _ in range(5)]
    assert len(names()) == 2
    assert futures[4].cancel()  # it has not begun
    gate.set()
    assert [future.result(60) for future in futures[:4]] == [True] * 4


def test_every_thread_works_while_others_hang() -> None:
    gate = Event()
    threads = DaemonThreads("eunoe-many", 8)
    for _ in range(3):
        assert threads.submit(lambda: "done").result(60) == "done"
    hanging = [threads.submit(partial(gate.wait, 60)) for _ in range(7)]
    assert threads.submit(lambda: "done").result(60) == "done"
    assert not any(future.done() for future in hanging)
    gate.set()


def test_a_thread_stays_and_is_used_again() -> None:
    threads = DaemonThreads("eunoe-many", 1)
    assert len({threads.submit(get_ident).result(60) for _ in range(20)}) == 1


def test_an_error_is_raised_for_who_waits_and_the_thread_lives_on() -> None:
    threads = DaemonThreads("eunoe-many", 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(60)
    assert threads.submit(lambda: "done").result(60) == "done"


def test_threads_end_with_their_owner() -> None:
    gate = Event()
    threads = DaemonThreads("eunoe-many", 3)
    futures = [threads.submit(partial(gate.wait, 60)) for _ in range(3)]
    gate.set()
    assert all(future.result(60) for future in futures)
    del threads
    gc.collect()
    wait_until(lambda: not names())
