"""The blocking face of Memory: the same verbs, driven from a thread that keeps an event loop."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from eunoe.engine import Memory
from eunoe.errors import ClosedError

P = ParamSpec("P")
R = TypeVar("R")


def blocking(verb: Callable[Concatenate[Memory, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[SyncMemory, P], R]:
    """The blocking twin of an async verb, with its signature and its documentation."""

    @functools.wraps(verb)
    def call(self: SyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(verb(self.memory, *args, **kwargs))

    return call


class SyncMemory:
    """Every verb of `Memory`, blocking. Safe to share between threads."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="eunoe-sync", daemon=True)
        self._thread.start()

    observe = blocking(Memory.observe)
    remember = blocking(Memory.remember)
    remember_many = blocking(Memory.remember_many)
    recall = blocking(Memory.recall)
    by_files = blocking(Memory.by_files)
    get = blocking(Memory.get)
    list = blocking(Memory.list)
    scopes = blocking(Memory.scopes)
    history = blocking(Memory.history)
    update = blocking(Memory.update)
    pin = blocking(Memory.pin)
    forget = blocking(Memory.forget)
    export = blocking(Memory.export)
    import_ = blocking(Memory.import_)
    status = blocking(Memory.status)
    reindex = blocking(Memory.reindex)
    re_embed = blocking(Memory.re_embed)

    def close(self) -> None:
        """Finishes what runs in the background and closes the store. Closing twice is fine."""
        if self._loop.is_closed():
            return
        self._run(self.memory.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        if self._loop.is_closed():
            work.close()
            raise ClosedError("this memory was closed: open it again")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
