"""Work of the memory with a deadline, so that a slow memory costs a run no more than that."""

import asyncio
import atexit
import logging
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import cache, partial
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Any, Final, TypeVar
from weakref import finalize

T = TypeVar("T")
_Piece = tuple[Future[Any], Callable[[], Any]]

_EXIT_SECONDS: Final = 10.0
"""How long the end of the program waits for late work that is to be finished."""
_late: Final[set[Future[Any]]] = set()
_log = logging.getLogger("eunoe")


class Deadline:
    """Threads for one kind of work, each piece of which is waited for so many seconds.

    They start when they are needed, stay since each has a connection of its own to the store, and end when nobody has
    this object any more. Unlike those of a ThreadPoolExecutor, they never keep the interpreter from ending.
    """

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
        self._most = threads
        self._count = 0
        self._lock = Lock()
        self._idle = Semaphore(0)
        self._pieces = SimpleQueue[_Piece | None]()
        finalize(self, self._pieces.put, None).atexit = False

    def run(self, work: Callable[[], T]) -> T:
        """Do it and wait. A TimeoutError means that it was not done in time."""
        future = self._submit(work)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            self._leave(future)
            raise

    async def arun(self, work: Callable[[], T]) -> T:
        future = self._submit(work)
        waiting = asyncio.wrap_future(future)
        waiting.add_done_callback(_retrieve)
        done, _ = await asyncio.wait([waiting], timeout=self._seconds)
        if done:
            return waiting.result()
        self._leave(future)
        raise TimeoutError

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        piece = future, partial(copy_context().run, work)
        with self._lock:
            if self._idle.acquire(blocking=False) or self._count == self._most:
                self._pieces.put(piece)
            else:
                arguments = self._pieces, self._idle, piece
                Thread(target=_work, args=arguments, name=f"eunoe-{self._kind}", daemon=True).start()
                self._count += 1
        return future

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


def _work(pieces: SimpleQueue[_Piece | None], idle: Semaphore, piece: _Piece | None) -> None:
    while piece:
        future, work = piece
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
        del piece, future, work  # while it waits, a thread keeps nothing alive
        idle.release()
        piece = pieces.get()
    pieces.put(None)  # for the next thread


@cache
def _register_exit() -> None:
    """Not before it is needed: what is registered later runs earlier, and must come before a memory is closed."""
    atexit.register(lambda: wait(list(_late), _EXIT_SECONDS))


def _retrieve(future: asyncio.Future[T]) -> None:
    """Look at an error that nobody waits for, so that asyncio does not complain of it."""
    if not future.cancelled():
        future.exception()
