"""Updates that run behind the reply."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from eunoe.discussion.queue import CreatorQueue
from eunoe.errors import ClosedError, WorkflowError


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


@pytest.mark.parametrize(
    ("error", "reason"), [(WorkflowError("no model 'x'"), "no model 'x'"), (ValueError("I am Ann"), "ValueError")]
)
def test_the_log_says_what_failed_and_why_and_nothing_that_was_said(
    error: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    with CreatorQueue() as queue:
        queue.put("a", fail, "the discussion 'trip'")
    assert [record.getMessage() for record in caplog.records] == [
        f"an update of the discussion 'trip' failed and stays due: {reason}"
    ]


def test_a_process_has_one_queue_and_its_end_waits_for_it() -> None:
    code = (
        "import threading; from eunoe.discussion.queue import default_queue; end = threading.Event()\n"
        "default_queue().put('a', lambda: (end.wait(30), print('done', flush=True)))\n"
        "assert default_queue() is default_queue(); import atexit; atexit.register(end.set)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "done\n"


def test_a_closed_queue_finishes_and_takes_no_more() -> None:
    done = list[str]()
    queue = CreatorQueue()
    queue.put("a", lambda: done.append("a"))
    assert queue.close()
    assert queue.close()
    assert done == ["a"]
    with pytest.raises(ClosedError):
        queue.put("b", list)
