"""Forming behind the reply: one thread that works off the conversations that are due."""

from __future__ import annotations

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
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._waiting: dict[Scope, None] = {}
        self._thread: threading.Thread | None = None
        self._busy = False
        self._open = True

    def add(self, scope: Scope) -> None:
        """Puts a conversation on the list, once."""
        self._follow()
        with self._changed:
            if not self._open:
                return
            self._waiting[scope] = None
            if not self._busy:
                if self._thread:
                    self._thread.join()  # it has nothing left to do, so that only one is ever to be waited for
                self._busy = True
                self._thread = threading.Thread(target=self._work, name="eunoe-form")
                self._thread.start()

    def flush(self, timeout: float | None) -> bool:
        """Waits until nothing is left to do; False if that took too long."""
        self._follow()
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, timeout)

    def close(self) -> None:
        """Lets the piece under way come to its end; the rest stays due in the store."""
        self._follow()
        with self._changed:
            self._open = False
            self._waiting.clear()
            thread = self._thread
        if thread:
            thread.join()

    def _follow(self) -> None:
        """Threads do not come along when a process forks: the child begins with an empty list."""
        if self._pid != os.getpid():
            self._begin()

    def _work(self) -> None:
        while (scope := self._next()) is not None:
            try:
                self._form(scope)
            except EunoeError as error:
                _log.warning("forming %s has to wait: %s", scope, error)
            except Exception:
                _log.exception("forming %s failed", scope)

    def _next(self) -> Scope | None:
        """The next conversation; without one the thread is as good as ended."""
        with self._changed:
            scope = next(iter(self._waiting), None)
            if scope is None:
                self._busy = False
                self._changed.notify_all()
            else:
                del self._waiting[scope]
            return scope

    def _form(self, scope: Scope) -> None:
        report = self._former.form(scope, least=None, ignore_pause=False, is_open=lambda: self._open)
        for failure in report.failed:
            _log.warning("forming has to be tried again: %s", failure)
