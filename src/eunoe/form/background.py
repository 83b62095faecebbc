"""Forming after the reply: one thread that works off conversations that are due, idle or over."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal
from weakref import ref

from eunoe.errors import EunoeError
from eunoe.model.atom import NO_BOUNDS, Bounds
from eunoe.model.scope import Scope

if TYPE_CHECKING:
    from eunoe.form.former import Former
    from eunoe.records.log import Formation

Reason = Literal["due", "idle", "ended", "next"]
"""Why a conversation is looked at: enough was said, nothing was said for a while, the memory is closed, or it is the
first of its user's next session, which ends those before."""

CLOSE_SECONDS: Final = 10.0
"""How long closing waits for memories to be formed: by rules it takes a moment, and an LLM gets time for one answer."""
_log = logging.getLogger("eunoe")


class Background:
    """A queue of conversations to form. Its thread starts with the first one and ends with the last, so that nothing
    is left running when there is nothing to do. What fails is left to the retry times in the store."""

    def __init__(
        self,
        find_former: Callable[[], Former],
        find_ended: Callable[[Scope], Sequence[Scope]] = lambda _: (),
        *,
        forms_when_idle: bool = True,
        submit: Callable[[Scope], None] | None = None,
    ) -> None:
        self._find_former = find_former  # it loads much that is not needed before there is something to form
        self._find_ended = find_ended
        self._forms_when_idle = forms_when_idle
        self._submit = submit
        """Where there is a worker, it is told what is due and forms it; here nothing is formed then."""
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._waiting: dict[tuple[Scope, Reason], None] = {}
        self._idle_at: dict[Scope, float] = {}
        """When each conversation that is not due yet counts as idle."""
        self._thread: threading.Thread | None = None
        self._alarm: threading.Timer | None = None
        self._alarm_at = 0.0
        self._current: tuple[Scope, Reason] | None = None
        self._is_busy = False
        self._is_open = True
        self._end = 0.0

    def _reset_after_fork(self) -> None:
        """Begin with an empty queue in a forked process: threads do not come along."""
        if self._pid != os.getpid():
            self._reset()

    def note(self, scope: Scope, formation: Formation) -> None:
        """Plan the forming of a conversation to which something was added, and of those that ended as it began."""
        if formation.seconds == 0:
            self.add(scope)
        elif formation.seconds and self._forms_when_idle:
            self.add_when_idle(scope, formation.seconds)
        if formation.is_new:
            self.add(scope, "next")

    def add(self, scope: Scope, reason: Reason = "due") -> None:
        """Put a conversation into the queue, once."""
        self._reset_after_fork()
        with self._changed:
            if self._is_open:
                self._waiting[scope, reason] = None
                self._start()

    def add_when_idle(self, scope: Scope, seconds: float) -> None:
        """Put a conversation into the queue when nothing was added to it for so many seconds."""
        self._reset_after_fork()
        with self._changed:
            if self._is_open:
                self._idle_at[scope] = monotonic() + seconds
                self._set_alarm(self._idle_at[scope])

    def flush(self, timeout: float | None, bounds: Bounds = NO_BOUNDS) -> bool:
        """Wait until nothing within the bounds is left to do; return False if that took too long."""
        self._reset_after_fork()
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_busy or not self._holds(bounds), timeout)

    def _holds(self, bounds: Bounds) -> bool:
        """Whether something within the bounds waits or is under way."""
        scopes = [scope for scope, _ in (*self._waiting, *([self._current] if self._current else []))]
        return not bounds.scopes or any(map(bounds.covers, scopes))

    def close(self) -> None:
        """Form what is left of the conversations held here, for a few seconds; the rest stays due in the store."""
        self._reset_after_fork()
        with self._changed:
            if self._is_open:
                self._is_open, self._end = False, monotonic() + CLOSE_SECONDS
                self._waiting |= dict.fromkeys((scope, "ended") for scope in self._idle_at)
                self._idle_at.clear()
                with suppress(RuntimeError):  # the process ends and starts no thread any more
                    self._start()
            alarm, self._alarm = self._alarm, None
            self._changed.wait_for(lambda: not self._is_busy, max(self._end - monotonic(), 0.0))
            thread = None if self._is_busy else self._thread
        if alarm:
            alarm.cancel()
            alarm.join()
        if thread:
            thread.join()

    def _start(self) -> None:
        if self._is_busy or not self._waiting:
            return
        if self._thread:
            self._thread.join()  # it has nothing left to do, so that only one is ever to be waited for
        else:
            atexit.register(_close, ref(self))
        # A daemon: whoever ends without closing waits for no more than closing does.
        self._thread = threading.Thread(target=self._work, name="eunoe-form", daemon=True)
        self._is_busy = True
        try:
            self._thread.start()
        except RuntimeError:
            self._is_busy, self._thread = False, None
            raise

    def _set_alarm(self, moment: float) -> None:
        """See to it that somebody looks at the idle conversations at this moment, or before."""
        if self._alarm and self._alarm_at <= moment:
            return
        if self._alarm:
            self._alarm.cancel()
        self._alarm_at = moment
        self._alarm = threading.Timer(max(moment - monotonic(), 0.0), self._take_idle)
        self._alarm.name, self._alarm.daemon = "eunoe-idle", True
        with suppress(RuntimeError):  # the process ends and starts no thread any more
            self._alarm.start()

    def _take_idle(self) -> None:
        with self._changed:
            if self._alarm is not threading.current_thread():
                return
            self._alarm, now = None, monotonic()
            idle = [scope for scope, moment in self._idle_at.items() if moment <= now]
            for scope in idle:
                del self._idle_at[scope]
                self._waiting[scope, "idle"] = None
            if self._idle_at:
                self._set_alarm(min(self._idle_at.values()))
            with suppress(RuntimeError):
                self._start()

    def _may_go_on(self) -> bool:
        return self._is_open or monotonic() < self._end

    def _work(self) -> None:
        while (item := self._take_next()) is not None:
            scope, reason = item
            try:
                self._form(scope, reason)
            except EunoeError as error:
                _log.warning("forming %s has to wait: %s", scope, error)
            except Exception:
                _log.exception("forming %s failed", scope)

    def _form(self, scope: Scope, reason: Reason) -> None:
        for each in self._find_ended(scope) if reason == "next" else [scope]:
            if self._submit:
                self._submit(each)
                continue
            former = self._find_former()
            if reason == "idle" and (seconds := former.seconds_until_idle(each)) > 0:
                self.add_when_idle(each, seconds)  # another process writes to it too
                continue
            least = None if reason == "due" else former.find_minimum(each)
            report = former.form(each, least=least, ignore_pause=False, is_open=self._may_go_on)
            for failure in report.failed:
                _log.warning("forming has to be tried again: %s", failure)

    def _take_next(self) -> tuple[Scope, Reason] | None:
        with self._changed:
            item = next(iter(self._waiting), None) if self._may_go_on() else None
            if item is None:
                self._waiting.clear()
                self._is_busy = False
            else:
                del self._waiting[item]
            self._current = item
            self._changed.notify_all()
            return item


def _close(background: ref[Background]) -> None:
    if found := background():
        found.close()
