"""Updates that run behind the reply."""

from __future__ import annotations

import threading

import pytest

from eunoe.discussion.queue import CreatorQueue
from eunoe.errors import ClosedError


def test_what_waits_for_a_discussion_runs_once_and_nobody_waits_for_it() -> None:
    go, done = threading.Event(), list[str]()
    with CreatorQueue() as queue:
        queue.put("a", go.wait)
        for text in ("old", "new"):
            queue.put("b", lambda text=text: done.append(text))
        assert not queue.drain(timeout=0)
        assert done == []
        go.set()
        assert queue.drain(timeout=30)
    assert done == ["new"]


def test_an_update_that_fails_is_counted_and_the_next_one_runs() -> None:
    done = list[str]()

    def fail() -> None:
        raise RuntimeError("broken")

    with CreatorQueue() as queue:
        queue.put("a", fail)
        queue.put("b", lambda: done.append("b"))
        assert queue.drain(timeout=30)
        assert (queue.failures, done) == (1, ["b"])


def test_a_closed_queue_finishes_and_takes_no_more() -> None:
    done = list[str]()
    queue = CreatorQueue()
    queue.put("a", lambda: done.append("a"))
    assert queue.close()
    assert queue.close()
    assert done == ["a"]
    with pytest.raises(ClosedError):
        queue.put("b", list)
