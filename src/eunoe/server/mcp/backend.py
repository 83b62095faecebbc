"""The memory behind a local process: the server of the store while one runs, else the store itself."""

from __future__ import annotations

import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import eunoe

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
        self._address: tuple[str, str] | None = None
        self._next_look = 0.0

    def find_memory(self) -> Memory:
        """The memory as it can be reached now. What cannot be reached any more is closed."""
        with self._lock:
            if self._memory is None or time.monotonic() >= self._next_look:
                self._look()
            assert self._memory is not None
            return self._memory

    def look_again(self) -> None:
        """To be called when the memory could not be reached."""
        self._next_look = 0.0

    def _look(self) -> None:
        address = find_server(self._target)
        if self._memory is None or address != self._address:
            old, self._memory = self._memory, open_memory(self._target, address, **self._options)
            self._address = address
            if old is not None:
                old.close()
        self._next_look = time.monotonic() + _LOOK_SECONDS

    def close(self) -> None:
        with self._lock:
            if self._memory is not None:
                self._memory.close()
                self._memory = None


def find_server(target: str | None) -> tuple[str, str] | None:
    """The address and token of the server that runs on a store, if one does."""
    find: Any = getattr(import_module("eunoe.client"), "find_local_server", lambda target: None)
    found: tuple[str, str] | None = find(target)
    return found


def open_memory(target: str | None, address: tuple[str, str] | None, **options: Any) -> Memory:
    if address is None:
        return eunoe.open(target, form="due", **options)
    connect: Any = eunoe.__dict__["connect"]
    memory: Memory = connect(*address)
    return memory
