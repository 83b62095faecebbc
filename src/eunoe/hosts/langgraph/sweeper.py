"""The thread that deletes items whose time is over, now and then."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event, Thread

_log = logging.getLogger(__name__)


class Sweeper:
    """Sweeps in a thread of its own, from `start` to `stop`."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._thread: Thread | None = None
        self.end = Event()
        """Set when the thread is to end."""

    def start(self, seconds: float) -> Future[None]:
        """Begin, if it does not run already; cancelling the future ends it."""
        future: Future[None] = Future()
        if not (self._thread and self._thread.is_alive()):
            self.end.clear()
            work = (self._sweep, self.end, seconds, future)
            self._thread = Thread(target=_sweep_until, args=work, name="eunoe-ttl-sweeper", daemon=True)
            self._thread.start()
        future.add_done_callback(lambda done: self.end.set() if done.cancelled() else None)
        return future

    def stop(self, timeout: float | None = None) -> bool:
        """End the thread; return whether it has ended within so many seconds."""
        self.end.set()
        if self._thread:
            self._thread.join(timeout)
        return not (self._thread and self._thread.is_alive())


def _sweep_until(sweep: Callable[[], int], end: Event, seconds: float, future: Future[None]) -> None:
    while not end.wait(seconds):
        sweep_once(sweep)
    if future.set_running_or_notify_cancel():
        future.set_result(None)


def sweep_once(sweep: Callable[[], int]) -> None:
    """Sweep, whatever happens: the next time may do better."""
    try:
        count = sweep()
    except Exception as error:
        _log.warning("a sweep of expired items failed: %s", type(error).__name__)
    else:
        _log.debug("swept %d expired items", count)
