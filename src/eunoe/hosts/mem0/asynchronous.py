"""`AsyncMemory`: the verbs of `Memory`, awaited. Each runs in a thread, so that none blocks the event loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import eunoe.memory
from eunoe.errors import ClosedError
from eunoe.hosts.mem0.blocking import Memory
from eunoe.hosts.mem0.configuration import Configuration

P = ParamSpec("P")
R = TypeVar("R")

_THREADS = 4
"""For each of the two pools: a language model takes its time, and must not hold up a search."""


def _async_verb(
    verb: Callable[Concatenate[Memory, P], R], slow: bool = False
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, R]]:
    @functools.wraps(verb)
    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        pool = self._slow if slow else self._quick
        context = copy_context()
        work = functools.partial(self._run, lambda memory: verb(memory, *args, **kwargs))
        try:
            future = asyncio.get_running_loop().run_in_executor(pool, context.run, work)
        except RuntimeError:  # the pool was shut down
            raise ClosedError("this memory was closed: open it again") from None
        return await future

    return call


class AsyncMemory:
    """mem0's `AsyncMemory`. The store is opened by the first verb."""

    def __init__(
        self, config: Any = None, *, memory: eunoe.memory.Memory | eunoe.memory.AsyncMemory | None = None
    ) -> None:
        self.config = Configuration.parse(config)
        self._given = memory.blocking if isinstance(memory, eunoe.memory.AsyncMemory) else memory
        self._blocking: Memory | None = None
        self._opening = Lock()
        self._quick = ThreadPoolExecutor(_THREADS, thread_name_prefix="mem0-verb")
        self._slow = ThreadPoolExecutor(_THREADS, thread_name_prefix="mem0-slow")

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Make a memory. To await it, as older programs do, is fine."""
        return cls(config_dict)

    add = _async_verb(Memory.add, slow=True)
    get = _async_verb(Memory.get)
    get_all = _async_verb(Memory.get_all)
    search = _async_verb(Memory.search)
    update = _async_verb(Memory.update)
    delete = _async_verb(Memory.delete)
    delete_all = _async_verb(Memory.delete_all)
    history = _async_verb(Memory.history)
    reset = _async_verb(Memory.reset)
    entities = _async_verb(Memory.entities)

    async def chat(self, query: str) -> Any:
        raise NotImplementedError("Chat function not implemented yet.")

    def close(self) -> None:
        """Close the store, if it was opened here for this object alone."""
        self._quick.shutdown()
        self._slow.shutdown()
        if self._blocking:
            self._blocking.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def __await__(self) -> Generator[Any, None, Self]:
        return self._self().__await__()

    async def _self(self) -> Self:
        return self

    def _run(self, work: Callable[[Memory], R]) -> R:
        with self._opening:
            if self._blocking is None:
                self._blocking = Memory(self.config, memory=self._given)
        return work(self._blocking)
