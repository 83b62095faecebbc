"""Threads that never keep the interpreter from ending, which those of a ThreadPoolExecutor do."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")


class DaemonThreads:
    """Does work in a few threads. They start when there is work, and end when there is none left."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._lock = Lock()
        self._running = 0
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._running < self._most:
                Thread(target=self._work, name=self._name, daemon=True).start()
                self._running += 1
            self._waiting.append((future, work))
        return future

    def _work(self) -> None:
        while piece := self._next_piece():
            future, work = piece
            if future.set_running_or_notify_cancel():
                _do(work, future)

    def _next_piece(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None


def _do(work: Callable[[], T], future: Future[T]) -> None:
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
