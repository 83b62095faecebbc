"""The verbs of one memory that are under way."""

import threading

from eunoe.errors import ClosedError


class OpenCalls:
    """The calls under way: none begins once it is closed, and closing waits for the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._count = 0
        self._is_open = True

    def __enter__(self) -> None:
        with self._lock:
            if not self._is_open:
                raise ClosedError("this memory was closed: open it again")
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            if not self._is_open:
                self._changed.notify_all()

    def close(self) -> bool:
        """Return True for the one that closed it."""
        with self._changed:
            if not self._is_open:
                return False
            self._is_open = False
            self._changed.wait_for(lambda: self._count == 0)
            return True
