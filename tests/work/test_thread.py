"""Work behind the replies: once, when it is due, in one thread that is there only while there is something to do."""

from __future__ import annotations

import threading
from collections.abc import Callable

from eunoe.work.thread import WorkThread


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "test-work"]


def worker_of(act: Callable[[str], None] = lambda _: None) -> tuple[WorkThread[str], list[str]]:
    done: list[str] = []

    def do(piece: str) -> None:
        done.append(piece)
        act(piece)

    return WorkThread(do, "test-work"), done


def test_what_is_due_is_done_once_and_in_its_order() -> None:
    go_on = threading.Event()
    worker, done = worker_of(lambda _: go_on.wait(20) and None)
    for piece in ("a", "b", "c", "b"):
        worker.put(piece)
    go_on.set()
    assert worker.flush(20)
    assert sorted(done) == ["a", "b", "c"]
    worker.close(20)
    assert names() == []


def test_what_is_put_again_before_it_is_due_waits_anew() -> None:
    worker, done = worker_of()
    worker.put("quiet", 500)
    first = worker.due["quiet"]
    worker.put("quiet", 600)
    assert worker.due["quiet"] > first
    assert worker.flush(0)  # nothing is due
    worker.put("quiet")
    assert worker.flush(20)
    assert done == ["quiet"]
    worker.close(20)


def test_closing_does_what_is_due_and_what_the_rest_becomes() -> None:
    worker, done = worker_of()
    worker.put("later", 500)
    worker.put("never", 500)
    worker.close(20, lambda piece: "ended" if piece == "later" else None)
    assert done == ["ended"]
    worker.put("more")
    assert worker.due == {}
    assert names() == []


def test_only_what_matches_is_waited_for() -> None:
    go_on = threading.Event()
    worker, _ = worker_of(lambda _: go_on.wait(20) and None)
    worker.put("slow")
    assert worker.flush(20, lambda piece: piece == "other")
    assert not worker.flush(0.01)
    go_on.set()
    assert worker.flush(20)
    worker.close(20)
