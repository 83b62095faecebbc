"""Work of the memory with a deadline, so that a slow memory costs a run no more than that."""

import asyncio
import atexit
import logging
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import cache, partial
from typing import Any, Final, TypeVar

from eunoe.hosts.langchain.daemon_threads import DaemonThreads

T = TypeVar("T")

_EXIT_SECONDS: Final = 10.0
"""How long the end of the program waits for late work that is to be finished."""
_late: Final[set[Future[Any]]] = set()
_log = logging.getLogger("eunoe")


class Deadline:
    """Threads for one kind of work, each piece of which is waited for so many seconds."""

    def __init__(self, kind: str, seconds: float, *, finishes: bool, threads: int = 8) -> None:
        """
        Args:
            kind: what the work is, for the log.
            seconds: how long it is waited for.
            finishes: whether work that takes longer is done nevertheless, behind the run.
        """
        self._kind = kind
        self._seconds = seconds
        self._finishes = finishes
        self._threads = DaemonThreads(f"eunoe-{kind}", threads)

    def run(self, work: Callable[[], T]) -> T:
        """Do it and wait. A TimeoutError means that it was not done in time."""
        future = self._submit(work)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            self._leave(future)
            raise

    async def arun(self, work: Callable[[], T]) -> T:
        """`run` without blocking the event loop."""
        future = self._submit(work)
        waiting = asyncio.wrap_future(future)
        waiting.add_done_callback(_retrieve)
        done, _ = await asyncio.wait([waiting], timeout=self._seconds)
        if done:
            return waiting.result()
        self._leave(future)
        raise TimeoutError

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        return self._threads.submit(partial(copy_context().run, work))

    def _leave(self, future: Future[T]) -> None:
        if self._finishes:
            _register_exit()
            _late.add(future)
            future.add_done_callback(self._report)
        else:
            future.cancel()

    def _report(self, future: Future[T]) -> None:
        _late.discard(future)
        if error := future.exception():
            _log.warning("memory: %s failed after its deadline: %s", self._kind, type(error).__name__)


@cache
def _register_exit() -> None:
    """Not before it is needed: what is registered later runs earlier, and must come before a memory is closed."""
    atexit.register(lambda: wait(list(_late), _EXIT_SECONDS))


def _retrieve(future: asyncio.Future[T]) -> None:
    """Look at an error that nobody waits for, so that asyncio does not complain of it."""
    if not future.cancelled():
        future.exception()
