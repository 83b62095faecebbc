"""Creators behind the reply: updates that run in a thread of their own, one after the other."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Hashable
from functools import cache
from types import TracebackType
from typing import Final, NamedTuple, Self

from eunoe.errors import ClosedError, EunoeError

EXIT_SECONDS: Final = 10.0
"""How long the end of a process waits for its creators; what is not made then stays due."""
_log: Final = logging.getLogger("eunoe")


class _Update(NamedTuple):
    run: Callable[[], object]
    title: str


class CreatorQueue:
    """Runs updates in the background. One that waits already takes the place of a second one for the same discussion.

    >>> done = []
    >>> with CreatorQueue() as queue:
    ...     queue.put("trip", lambda: done.append("trip"))
    ...     queue.drain(timeout=10)
    True
    >>> done
    ['trip']
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, _Update] = {}
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self.failures = 0
        """Updates that raised. What they were for is still due."""

    def put(self, key: Hashable, update: Callable[[], object], title: str = "a discussion") -> None:
        """Have an update run soon. `key` tells what it brings up to date; the latest update for a key counts. If it
        fails, the log calls it by its title."""
        with self._change:
            if self._is_closed:
                raise ClosedError("the queue of creators is closed")
            self._waiting[key] = _Update(update, title)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="eunoe-creators", daemon=True)
                self._thread.start()
            self._change.notify_all()

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until nothing is left to do; return False if that took longer than the time given."""
        with self._change:
            return self._change.wait_for(lambda: self._thread is None, timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Finish what waits and take no more. Twice is fine."""
        with self._change:
            self._is_closed = True
        return self.drain(timeout)

    def _work(self) -> None:
        while True:
            with self._change:
                if not self._waiting:
                    self._thread = None
                    self._change.notify_all()
                    return
                update = self._waiting.pop(next(iter(self._waiting)))
            try:
                update.run()
            except Exception as error:  # whatever it is, the next discussion must not wait for it
                self.failures += 1
                # Only errors of Eunoe are known to repeat nothing that was said.
                reason = error if isinstance(error, EunoeError) else type(error).__name__
                _log.warning("an update of %s failed and stays due: %s", update.title, reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def default_queue() -> CreatorQueue:
    """The queue of this process. Its end waits a few seconds for what is in it."""
    return _queue_of(os.getpid())


@cache
def _queue_of(process: int) -> CreatorQueue:
    """A forked process has its own: threads do not come along."""
    queue = CreatorQueue()
    atexit.register(lambda: os.getpid() == process and queue.close(EXIT_SECONDS))
    return queue
