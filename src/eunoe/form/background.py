"""Forming after the reply: one thread that works off the conversations that are due."""

import logging
import os
import threading

from eunoe.errors import EunoeError
from eunoe.form.former import Former
from eunoe.model.scope import Scope

_log = logging.getLogger("eunoe")


class Background:
    """A queue of conversations to form. Its thread starts with the first one and ends with the last, so that nothing
    is left running when there is nothing to do. What fails is left to the retry times in the store."""

    def __init__(self, former: Former) -> None:
        self._former = former
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._waiting: dict[Scope, None] = {}
        self._thread: threading.Thread | None = None
        self._is_busy = False
        self._is_open = True

    def _reset_after_fork(self) -> None:
        """Begin with an empty queue in a forked process: threads do not come along."""
        if self._pid != os.getpid():
            self._reset()

    def add(self, scope: Scope) -> None:
        """Put a conversation into the queue, once."""
        self._reset_after_fork()
        with self._changed:
            if not self._is_open:
                return
            self._waiting[scope] = None
            if not self._is_busy:
                if self._thread:
                    self._thread.join()  # it has nothing left to do, so that only one is ever to be waited for
                self._is_busy = True
                self._thread = threading.Thread(target=self._work, name="eunoe-form")
                self._thread.start()

    def flush(self, timeout: float | None) -> bool:
        """Wait until nothing is left to do; return False if that took too long."""
        self._reset_after_fork()
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_busy, timeout)

    def close(self) -> None:
        """Let the job under way come to its end; the rest stays due in the store."""
        self._reset_after_fork()
        with self._changed:
            self._is_open = False
            self._waiting.clear()
            thread = self._thread
        if thread:
            thread.join()

    def _work(self) -> None:
        while (scope := self._take_next()) is not None:
            try:
                report = self._former.form(scope, least=None, ignore_pause=False, is_open=lambda: self._is_open)
                for failure in report.failed:
                    _log.warning("forming has to be tried again: %s", failure)
            except EunoeError as error:
                _log.warning("forming %s has to wait: %s", scope, error)
            except Exception:
                _log.exception("forming %s failed", scope)

    def _take_next(self) -> Scope | None:
        with self._changed:
            scope = next(iter(self._waiting), None)
            if scope is None:
                self._is_busy = False
                self._changed.notify_all()
            else:
                del self._waiting[scope]
            return scope
