"""Work behind the replies, in one thread of its own."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
_log: Final = logging.getLogger("eunoe")


class WorkThread(Generic[K]):
    """Does pieces of work one after the other, each when it is due, and each once however often it is put.

    Its thread starts with the first piece and ends with the last, so that nothing is left running when there is nothing
    to do. A forked process begins with no work: threads do not come along.
    """

    def __init__(self, do: Callable[[K], None], name: str) -> None:
        self._do = do
        self._name = name
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self.due: dict[K, float] = {}
        """When each piece is due, by the monotonic clock."""
        self._current: K | None = None
        self._wakes_at = inf
        self._thread: threading.Thread | None = None
        self._is_running = False
        self.is_open = True
        self._end = inf

    def put(self, key: K, delay: float = 0.0) -> None:
        """Do this in so many seconds. One that is due already keeps its place, another waits anew."""
        self._reset_after_fork()
        with self._changed:
            now = monotonic()
            if self.is_open and not self.due.get(key, inf) <= now:
                self.due.pop(key, None)
                self.due[key] = now + delay
                self._start()
                if now + delay < self._wakes_at:
                    self._changed.notify_all()

    def flush(self, timeout: float | None, matches: Callable[[K], bool] = lambda _: True) -> bool:
        """Wait until nothing that matches is due or under way; return False if that took too long."""
        self._reset_after_fork()

        def is_done() -> bool:
            now = monotonic()
            due = [key for key, moment in self.due.items() if moment <= now]
            return not any(map(matches, due if self._current is None else [self._current, *due]))

        with self._changed:
            return self._changed.wait_for(is_done, timeout)

    def may_go_on(self) -> bool:
        """Whether there is still time: it is open, or closing."""
        return self.is_open or monotonic() < self._end

    def close(self, seconds: float, becomes: Callable[[K], K | None] = lambda _: None) -> None:
        """Do what is due, for so many seconds, and leave the rest. Pieces that would be due later become others."""
        self._reset_after_fork()
        with self._changed:
            if self.is_open:
                now = monotonic()
                self.is_open, self._end = False, now + seconds
                for key in [key for key, moment in self.due.items() if moment > now]:
                    del self.due[key]
                    if (other := becomes(key)) is not None:
                        self.due.setdefault(other, now)
                with suppress(RuntimeError):  # the process ends and starts no thread any more
                    self._start()
                self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_running, max(self._end - monotonic(), 0.0))
            thread = None if self._is_running else self._thread
        if thread:
            thread.join()

    def _reset_after_fork(self) -> None:
        if self._pid != os.getpid():
            self._reset()

    def _start(self) -> None:
        if self._is_running or not self.due:
            return
        if self._thread:
            self._thread.join()  # it has nothing left to do, so that only one is ever to be waited for
        # A daemon: whoever ends without closing waits for no more than closing does.
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._is_running = True
        try:
            self._thread.start()
        except RuntimeError:
            self._is_running, self._thread = False, None
            raise

    def _run(self) -> None:
        while (key := self._take_next()) is not None:
            try:
                self._do(key)
            except Exception:
                _log.exception("%s failed at %s", self._name, key)

    def _take_next(self) -> K | None:
        """Wait for a piece that is due; None if none is left."""
        with self._changed:
            self._current = None
            while True:
                now = monotonic()
                if not self.may_go_on():
                    self.due.clear()
                key = next((key for key, moment in self.due.items() if moment <= now), None)
                if key is not None:
                    del self.due[key]
                    self._current = key
                elif not self.due:
                    self._is_running = False
                self._changed.notify_all()
                if key is not None or not self.due:
                    return key
                self._wakes_at = min(self.due.values())
                self._changed.wait(self._wakes_at - now)
                self._wakes_at = inf
