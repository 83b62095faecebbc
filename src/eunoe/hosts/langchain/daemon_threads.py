"""Threads that never keep the interpreter from ending, which those of a ThreadPoolExecutor do."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Any, TypeVar
from weakref import finalize

T = TypeVar("T")
_Piece = tuple[Future[Any], Callable[[], Any]]
_Pieces = SimpleQueue[_Piece | None]


class DaemonThreads:
    """Does work in a few threads. They start when they are needed, and end when nobody has this object any more.

    They stay in between, since each has a connection of its own to the store.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._lock = Lock()
        self._count = 0
        self._idle = Semaphore(0)
        self._pieces: _Pieces = SimpleQueue()
        finalize(self, self._pieces.put, None).atexit = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self._pieces.put((future, work))  # before a thread starts, which would find nothing to do and count as idle
        with self._lock:
            if not self._idle.acquire(blocking=False) and self._count < self._most:
                self._start()
        return future

    def _start(self) -> None:
        Thread(target=_work, args=(self._pieces, self._idle), name=self._name, daemon=True).start()
        self._count += 1


def _work(pieces: _Pieces, idle: Semaphore) -> None:
    while piece := _next_piece(pieces, idle):
        future, work = piece
        if future.set_running_or_notify_cancel():
            _do(work, future)
        del piece, future, work  # while it waits, a thread keeps nothing alive
    pieces.put(None)  # for the next thread


def _next_piece(pieces: _Pieces, idle: Semaphore) -> _Piece | None:
    try:
        return pieces.get_nowait()
    except Empty:
        idle.release()
        return pieces.get()


def _do(work: Callable[[], T], future: Future[T]) -> None:
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
