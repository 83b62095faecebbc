"""Forming after the reply: conversations that are due, idle or over, worked off one after the other."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal
from weakref import ref

from eunoe.errors import EunoeError
from eunoe.model.atom import NO_BOUNDS, Bounds
from eunoe.model.scope import Scope
from eunoe.work.thread import WorkThread

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
    """Forms conversations behind the replies. What fails is left to the retry times in the store."""

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
        self.work = WorkThread[tuple[Scope, Reason]](self._form, "eunoe-form")
        self._at_exit = partial(_close, ref(self))
        atexit.register(self._at_exit)

    def note(self, scope: Scope, formation: Formation) -> None:
        """Plan the forming of a conversation to which something was added, and of those that ended as it began."""
        if formation.seconds == 0:
            self.add(scope)
        elif formation.seconds and self._forms_when_idle:
            self.work.put((scope, "idle"), formation.seconds)
        if formation.is_new:
            self.add(scope, "next")

    def add(self, scope: Scope, reason: Reason = "due") -> None:
        """Form a conversation, once for each reason."""
        self.work.put((scope, reason))

    def flush(self, timeout: float | None, bounds: Bounds = NO_BOUNDS) -> bool:
        """Wait until nothing within the bounds is left to do; return False if that took too long."""
        return self.work.flush(timeout, lambda piece: not bounds.scopes or bounds.covers(piece[0]))

    def close(self) -> None:
        """Form what is left of the conversations held here, for a few seconds; the rest stays due in the store."""
        atexit.unregister(self._at_exit)
        self.work.close(CLOSE_SECONDS, lambda piece: (piece[0], "ended"))

    def _form(self, piece: tuple[Scope, Reason]) -> None:
        scope, reason = piece
        try:
            for each in self._find_ended(scope) if reason == "next" else [scope]:
                self._form_one(each, reason)
        except EunoeError as error:
            _log.warning("forming %s has to wait: %s", scope, error)

    def _form_one(self, scope: Scope, reason: Reason) -> None:
        if self._submit:
            self._submit(scope)
            return
        former = self._find_former()
        if reason == "idle" and (seconds := former.seconds_until_idle(scope)) > 0:
            self.work.put((scope, "idle"), seconds)  # another process writes to it too
            return
        least = None if reason == "due" else former.find_minimum(scope)
        report = former.form(scope, least=least, ignore_pause=False, is_open=self.work.may_go_on)
        for failure in report.failed:
            _log.warning("forming has to be tried again: %s", failure)


def _close(background: ref[Background]) -> None:
    if found := background():
        found.close()
