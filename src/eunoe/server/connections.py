"""Connections that ask for nothing: how long one may wait, and how many."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_SECONDS: Final = 10.0
"""The headers of a request have to be there after so long, and so has the body of one that was answered already."""
_MAX_WAITING: Final = 1000


class Connection(HttpToolsProtocol):
    """A connection that the server waits on gives way: after a time, or at once where too many wait.

    It waits from its start, or from a reply, until a whole request is there. If too many do, the oldest one from the
    address that has most of them is closed. Whoever asks at once gets in, however many others keep theirs open.
    """

    _waiting: ClassVar[dict[Connection, str]] = {}
    """The oldest first, each with its address."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._stop_timer()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if not self.cycle.response_complete:
            self._waiting.pop(self, None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # otherwise another request came along with this one
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._waiting.pop(self, None)
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._give_up)
        self._waiting[self] = self.client[0] if self.client else ""
        if len(self._waiting) > max_waiting():
            most = Counter(self._waiting.values()).most_common(1)[0][0]
            next(each for each, address in self._waiting.items() if address == most)._give_up()

    def _give_up(self) -> None:
        self._waiting.pop(self, None)
        self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def max_waiting() -> int:
    """Half of the files that this process may have open, so that as many are left for requests and the store."""
    try:
        import resource
    except ImportError:  # a platform without such a limit
        return _MAX_WAITING
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(_MAX_WAITING, files // 2) if files > 0 else _MAX_WAITING
