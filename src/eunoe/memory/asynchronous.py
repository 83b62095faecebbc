"""AsyncMemory: the same verbs, awaited. Each runs in a thread, so that none ever blocks the event loop."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from eunoe.embed.contract import Embedder
from eunoe.llm.contract import Llm
from eunoe.memory.blocking import Memory, without_scope
from eunoe.memory.groups import Admin, Graph, Streams, Summaries
from eunoe.model.scope import Scope, ScopeLike

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B")

_THREADS = 4
"""For each of the two pools. Verbs wait for the disk and for models, not for the processor."""


class _Threads:
    """Threads that verbs run in. A language model may take its time: what waits for one must not hold up the rest."""

    def __init__(self) -> None:
        self.quick = ThreadPoolExecutor(_THREADS, thread_name_prefix="eunoe-verb")
        self.slow = ThreadPoolExecutor(_THREADS, thread_name_prefix="eunoe-slow")

    async def run(self, pool: ThreadPoolExecutor | None, work: Callable[[], R]) -> R:
        import asyncio  # slow to import, and who awaits has it already

        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def shutdown(self) -> None:
        self.slow.shutdown()
        self.quick.shutdown()


class _Face(Protocol[B]):
    """An async object over a blocking one."""

    _blocking: B
    _threads: _Threads


def _awaited(
    verb: Callable[Concatenate[B, P], R], slow: bool = False
) -> Callable[Concatenate[_Face[B], P], Coroutine[Any, Any, R]]:
    """The async twin of a blocking verb, with its signature and its documentation."""

    @functools.wraps(verb)
    async def call(self: _Face[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
        pool = self._threads.slow if slow else self._threads.quick
        return await self._threads.run(pool, functools.partial(verb, self._blocking, *args, **kwargs))

    return call


def _bound(
    verb: Callable[Concatenate[Memory, Any, P], R], slow: bool = False
) -> Callable[Concatenate[AsyncScopedMemory, P], Coroutine[Any, Any, R]]:
    """The async twin of a verb for a memory that is bound to a scope."""

    @functools.wraps(verb)
    async def call(self: AsyncScopedMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await _awaited(verb, slow)(self.memory, self.scope, *args, **kwargs)

    call.__signature__ = without_scope(verb)  # type: ignore[attr-defined]
    return call


class _AsyncGroup:
    def __init__(self, blocking: Any, threads: _Threads) -> None:
        self._blocking = blocking
        self._threads = threads


class AsyncStreams(_AsyncGroup):
    """`Streams`, awaited."""

    _blocking: Streams

    list = _awaited(Streams.list)
    configure = _awaited(Streams.configure)
    presets = _awaited(Streams.presets)
    set_preset = _awaited(Streams.set_preset)
    apply_retention = _awaited(Streams.apply_retention)
    unarchive = _awaited(Streams.unarchive)
    set_incognito = _awaited(Streams.set_incognito)


class AsyncSummaries(_AsyncGroup):
    """`Summaries`, awaited."""

    _blocking: Summaries

    consolidate = _awaited(Summaries.consolidate, slow=True)
    revisions = _awaited(Summaries.revisions)
    restore = _awaited(Summaries.restore)
    write = _awaited(Summaries.write)


class AsyncGraph(_AsyncGroup):
    """`Graph`, awaited."""

    _blocking: Graph

    neighbours = _awaited(Graph.neighbours)
    extract = _awaited(Graph.extract, slow=True)


class AsyncAdmin(_AsyncGroup):
    """`Admin`, awaited."""

    _blocking: Admin

    export = _awaited(Admin.export)
    import_ = _awaited(Admin.import_)
    reembed = _awaited(Admin.reembed)
    reindex = _awaited(Admin.reindex)
    process_cold_sessions = _awaited(Admin.process_cold_sessions, slow=True)
    access_counts = _awaited(Admin.access_counts)


class AsyncMemory:
    """Every verb of `Memory`, awaited.

    >>> import asyncio
    >>> async def main():
    ...     async with eunoe.open_async(":memory:") as memory:
    ...         await memory.remember({"user": "anna"}, "Anna is allergic to peanuts.")
    ...         hits = await memory.recall({"user": "anna"}, "What must Anna not eat?")
    ...         return hits[0].text
    >>> asyncio.run(main())
    'Anna is allergic to peanuts.'
    """

    def __init__(self, blocking: Memory) -> None:
        self._blocking = blocking
        self._threads = _Threads()
        self.streams = AsyncStreams(blocking.streams, self._threads)
        self.summaries = AsyncSummaries(blocking.summaries, self._threads)
        self.graph = AsyncGraph(blocking.graph, self._threads)
        self.admin = AsyncAdmin(blocking.admin, self._threads)

    @property
    def blocking(self) -> Memory:
        """The same memory with blocking verbs."""
        return self._blocking

    @property
    def target(self) -> str:
        """The path of the store, or ":memory:"."""
        return self._blocking.target

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, or None."""
        return self._blocking.embedder

    @property
    def llm(self) -> Llm | None:
        """The language model that forms and consolidates, or None."""
        return self._blocking.llm

    observe = _awaited(Memory.observe)
    remember = _awaited(Memory.remember)
    remember_many = _awaited(Memory.remember_many)
    recall = _awaited(Memory.recall)
    context = _awaited(Memory.context, slow=True)
    look_up = _awaited(Memory.look_up)
    get = _awaited(Memory.get)
    list = _awaited(Memory.list)
    by_files = _awaited(Memory.by_files)
    scopes = _awaited(Memory.scopes)
    history = _awaited(Memory.history)
    update = _awaited(Memory.update)
    pin = _awaited(Memory.pin)
    forget = _awaited(Memory.forget)
    form = _awaited(Memory.form, slow=True)
    flush = _awaited(Memory.flush, slow=True)
    status = _awaited(Memory.status)

    def at(self, scope: ScopeLike | None = None, /, **keys: str | int) -> AsyncScopedMemory:
        """Bind the everyday verbs to a scope."""
        return AsyncScopedMemory(self, self._blocking.at(scope, **keys).scope)

    async def close(self) -> None:
        """Finish what runs in the background and close the store. Closing twice is fine."""
        await self._threads.run(None, self._close)

    def _close(self) -> None:
        self._blocking.close()
        self._threads.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncMemory({self.target!r})"


class AsyncScopedMemory:
    """The everyday verbs of an async memory, bound to one scope. It is immutable and holds nothing else."""

    __slots__ = ("memory", "scope")

    memory: AsyncMemory
    scope: Scope

    def __init__(self, memory: AsyncMemory, scope: Scope) -> None:
        object.__setattr__(self, "memory", memory)
        object.__setattr__(self, "scope", scope)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a bound memory cannot be changed: bind another with at({name}=...)")

    def at(self, **keys: str | int) -> AsyncScopedMemory:
        """Bind to the same scope with more keys."""
        return AsyncScopedMemory(self.memory, self.scope.extended(keys))

    def __repr__(self) -> str:
        return f"{self.memory!r}.at({self.scope.text!r})"

    observe = _bound(Memory.observe)
    remember = _bound(Memory.remember)
    remember_many = _bound(Memory.remember_many)
    recall = _bound(Memory.recall)
    context = _bound(Memory.context, slow=True)
    look_up = _bound(Memory.look_up)
    get = _bound(Memory.get)
    list = _bound(Memory.list)
    by_files = _bound(Memory.by_files)
    history = _bound(Memory.history)
    update = _bound(Memory.update)
    pin = _bound(Memory.pin)
    forget = _bound(Memory.forget)
    form = _bound(Memory.form, slow=True)
