"""The memory behind a local process: the server of the store while one runs, else the store itself."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import eunoe
from eunoe.net.local_server import LocalServer, find_local_server

if TYPE_CHECKING:
    from eunoe.memory import Memory

_LOOK_SECONDS: Final = 2.0
"""How often a process looks whether a server has started or stopped."""


class Backend:
    """Finds the memory of one store, and follows it when a server comes or goes."""

    def __init__(self, target: str | None, **options: Any) -> None:
        self._target = target
        self._options = options
        self._lock = threading.Lock()
        self._memory: Memory | None = None
        self._server: LocalServer | None = None
        self._is_lost = False
        """Whether a call could not reach the memory."""
        self._next_look = 0.0

    def find_memory(self) -> Memory:
        """The memory as it can be reached now. The one before is closed, once its calls have ended."""
        with self._lock:
            if self._memory is None or time.monotonic() >= self._next_look:
                self._look()
            assert self._memory is not None
            return self._memory

    def look_again(self) -> None:
        """Have the next call look where the memory is: this one could not reach it."""
        self._is_lost = True
        self._next_look = 0.0

    def _look(self) -> None:
        found = find_local_server(self._target)
        # A server that is busy may not say in time that it is there. It counts as gone when a call fails.
        is_silent = found is None and self._server is not None and not self._is_lost
        if self._memory is None or (found != self._server and not is_silent):
            self._move(found)
        self._is_lost = False
        self._next_look = time.monotonic() + _LOOK_SECONDS

    def _move(self, server: LocalServer | None) -> None:
        old, self._memory = self._memory, self._open(server)
        self._server = server
        if old is not None:
            # What another thread still does with it must not hold this call up.
            threading.Thread(target=old.close, name="eunoe-close", daemon=True).start()

    def _open(self, server: LocalServer | None) -> Memory:
        if server is None:
            return eunoe.open(self._target, form="due", **self._options)
        return eunoe.connect(server.url, server.token)

    def close(self) -> None:
        with self._lock:
            if self._memory is not None:
                self._memory.close()
                self._memory = None
