"""A door that is not shut while somebody is inside."""

from __future__ import annotations

import threading

from eunoe.errors import ClosedError


class Gate:
    """Lets calls through until it is closed; closing waits for those that are under way."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._open = True

    def __enter__(self) -> None:
        with self._changed:
            if not self._open:
                raise ClosedError("this memory was closed: open it again")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            if not self._open:
                self._changed.notify_all()

    def close(self) -> bool:
        """True for the one that closed it."""
        with self._changed:
            if not self._open:
                return False
            self._open = False
            self._changed.wait_for(lambda: self._inside == 0)
            return True
