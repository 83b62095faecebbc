"""AsyncMemory, ScopedMemory and AsyncScopedMemory: the same verbs awaited, bound to a scope, or both.

Each awaited verb runs in a thread, so that none ever blocks the event loop.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from contextvars import copy_context
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast

from eunoe.embed.contract import Embedder
from eunoe.llm.contract import Llm
from eunoe.memory.changes import Watch
from eunoe.memory.groups import Admin, Corrections, Graph, Leases, Streams, Summaries
from eunoe.memory.memory import Memory
from eunoe.model.arguments import RIGHTS, Right
from eunoe.model.result import Lease
from eunoe.model.scope import Scope, ScopeLike, Scopes

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M")


class BoundMemory(Generic[M]):
    """A memory and a scope. It is immutable and holds nothing else."""

    __slots__ = ("memory", "scope")

    memory: M
    scope: Scope

    def __init__(self, memory: M, scope: Scope) -> None:
        object.__setattr__(self, "memory", memory)
        object.__setattr__(self, "scope", scope)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a bound memory cannot be changed: bind another one with at()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a bound memory cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.memory is self.memory and other.scope == self.scope

    def __hash__(self) -> int:
        return hash((id(self.memory), self.scope))

    def __copy__(self) -> Self:
        return self

    def at(self, **keys: str | int) -> Self:
        """Bind to the same scope with more keys."""
        return type(self)(self.memory, self.scope.extended(keys))

    def restricted(self, tenant: str = "", scopes: Scopes = (), rights: Iterable[Right] = RIGHTS) -> Self:
        """Bind the same scope of a memory that is restricted so; see `Memory.restricted`."""
        memory: Any = self.memory
        return type(self)(memory.restricted(tenant, scopes, rights), self.scope)

    def __repr__(self) -> str:
        return f"{self.memory!r}.at({self.scope.text!r})"


def scoped_verb(verb: Callable[Concatenate[Any, Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return the verb of a memory, plain or async, for one that is bound to a scope."""
    name = verb.__name__

    def call(self: BoundMemory[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast("R", getattr(self.memory, name)(self.scope, *args, **kwargs))

    async def call_async(self: BoundMemory[Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await getattr(self.memory, name)(self.scope, *args, **kwargs)

    bound: Any = wraps(verb)(call_async if inspect.iscoroutinefunction(verb) else call)
    signature = inspect.signature(verb)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "scope"]
    bound.__signature__ = signature.replace(parameters=kept)
    return cast("Callable[Concatenate[Any, P], R]", bound)


B = TypeVar("B")
B_co = TypeVar("B_co", covariant=True)

_THREADS = 4
"""For each of the two pools. Verbs wait for the disk and for models, not for the processor."""


class _Threads:
    """Threads that verbs run in. A language model may take its time: what waits for one must not hold up the rest."""

    def __init__(self) -> None:
        self.is_shut_down = False
        self.quick = ThreadPoolExecutor(_THREADS, thread_name_prefix="eunoe-verb")
        self.slow = ThreadPoolExecutor(_THREADS, thread_name_prefix="eunoe-slow")

    async def run(self, pool: ThreadPoolExecutor | None, work: Callable[[], R]) -> R:
        import asyncio  # slow to import, and who awaits has it already

        if self.is_shut_down:
            return work()  # it says at once that the memory is closed
        return await asyncio.get_running_loop().run_in_executor(pool, copy_context().run, work)

    def shutdown(self) -> None:
        self.is_shut_down = True
        self.slow.shutdown()
        self.quick.shutdown()


class _OverBlocking(Protocol[B_co]):
    """An async object over a blocking one."""

    _threads: _Threads

    @property
    def _blocking(self) -> B_co: ...


def _async_verb(
    verb: Callable[Concatenate[B, P], R], slow: bool = False
) -> Callable[Concatenate[_OverBlocking[B], P], Coroutine[Any, Any, R]]:
    """The async twin of a blocking verb, with its signature and its documentation."""
    name = verb.__name__

    @functools.wraps(verb)
    async def call(self: _OverBlocking[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
        pool = self._threads.slow if slow else self._threads.quick
        return await self._threads.run(pool, functools.partial(getattr(self._blocking, name), *args, **kwargs))

    call.__qualname__ = f"Async{verb.__qualname__}"  # Python names it where an await was forgotten
    return call


class _AsyncGroup:
    def __init__(self, blocking: Any, threads: _Threads) -> None:
        self._blocking = blocking
        self._threads = threads

    def __repr__(self) -> str:
        return f"Async{self._blocking!r}"


class AsyncStreams(_AsyncGroup):
    """`Streams`, awaited."""

    _blocking: Streams

    list = _async_verb(Streams.list)
    configure = _async_verb(Streams.configure)
    presets = _async_verb(Streams.presets)
    set_preset = _async_verb(Streams.set_preset)
    apply_retention = _async_verb(Streams.apply_retention)
    unarchive = _async_verb(Streams.unarchive)
    set_incognito = _async_verb(Streams.set_incognito)


class AsyncSummaries(_AsyncGroup):
    """`Summaries`, awaited."""

    _blocking: Summaries

    consolidate = _async_verb(Summaries.consolidate, slow=True)
    revisions = _async_verb(Summaries.revisions)
    restore = _async_verb(Summaries.restore)
    write = _async_verb(Summaries.write)


class AsyncCorrections(_AsyncGroup):
    """`Corrections`, awaited."""

    _blocking: Corrections

    add = _async_verb(Corrections.add)
    list = _async_verb(Corrections.list)
    remove = _async_verb(Corrections.remove)


class AsyncLeases(_AsyncGroup):
    """`Leases`, awaited."""

    _blocking: Leases

    acquire = _async_verb(Leases.acquire)
    renew = _async_verb(Leases.renew)
    release = _async_verb(Leases.release)
    fail = _async_verb(Leases.fail)
    list = _async_verb(Leases.list)
    drop = _async_verb(Leases.drop)

    def renewing(self, scope: ScopeLike, lease: Lease) -> AbstractAsyncContextManager[None]:
        """Renew a lease in a thread of its own while the block lasts, or until it is lost."""
        return self._entered(self._blocking.renewing(scope, lease))

    @asynccontextmanager
    async def _entered(self, renewal: AbstractContextManager[None]) -> AsyncIterator[None]:
        renewal.__enter__()
        try:
            yield
        finally:
            await self._threads.run(None, lambda: renewal.__exit__(None, None, None))


class AsyncGraph(_AsyncGroup):
    """`Graph`, awaited."""

    _blocking: Graph

    neighbours = _async_verb(Graph.neighbours)
    size = _async_verb(Graph.size)
    extract = _async_verb(Graph.extract, slow=True)


class AsyncAdmin(_AsyncGroup):
    """`Admin`, awaited."""

    _blocking: Admin

    export = _async_verb(Admin.export)
    import_ = _async_verb(Admin.import_)
    backup = _async_verb(Admin.backup)
    reembed = _async_verb(Admin.reembed)
    check = _async_verb(Admin.check)
    reindex = _async_verb(Admin.reindex)
    process_cold_sessions = _async_verb(Admin.process_cold_sessions, slow=True)
    access_counts = _async_verb(Admin.access_counts)
    calls = _async_verb(Admin.calls)
    test_llm = _async_verb(Admin.test_llm, slow=True)


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

    def __init__(self, blocking: Memory, threads: _Threads | None = None) -> None:
        self._blocking = blocking
        self._threads = threads or _Threads()
        self._owns_threads = threads is None
        self.streams = AsyncStreams(blocking.streams, self._threads)
        self.summaries = AsyncSummaries(blocking.summaries, self._threads)
        self.corrections = AsyncCorrections(blocking.corrections, self._threads)
        self.leases = AsyncLeases(blocking.leases, self._threads)
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

    observe = _async_verb(Memory.observe)
    remember = _async_verb(Memory.remember)
    remember_many = _async_verb(Memory.remember_many)
    recall = _async_verb(Memory.recall)
    context = _async_verb(Memory.context, slow=True)
    look_up = _async_verb(Memory.look_up)
    get = _async_verb(Memory.get)
    get_many = _async_verb(Memory.get_many)
    list = _async_verb(Memory.list)
    recent = _async_verb(Memory.recent)
    view = _async_verb(Memory.view)
    by_files = _async_verb(Memory.by_files)
    scopes = _async_verb(Memory.scopes)
    history = _async_verb(Memory.history)
    update = _async_verb(Memory.update)
    expire = _async_verb(Memory.expire)
    retract = _async_verb(Memory.retract)
    pin = _async_verb(Memory.pin)
    review = _async_verb(Memory.review)
    preview = _async_verb(Memory.preview, slow=True)
    forget = _async_verb(Memory.forget)
    form = _async_verb(Memory.form, slow=True)
    flush = _async_verb(Memory.flush, slow=True)
    status = _async_verb(Memory.status)

    def at(self, scope: ScopeLike | None = None, /, **keys: str | int) -> AsyncScopedMemory:
        """Bind the everyday verbs to a scope."""
        return AsyncScopedMemory(self, self._blocking.at(scope, **keys).scope)

    def restricted(self, tenant: str = "", scopes: Scopes = (), rights: Iterable[Right] = RIGHTS) -> AsyncMemory:
        """Return the same memory for somebody who may do no more than this; see `Memory.restricted`."""
        return AsyncMemory(self._blocking.restricted(tenant, scopes, rights), self._threads)

    def watched(self, watch: Watch) -> AsyncMemory:
        """Return the same memory, which tells of each change that is made through it; see `Memory.watched`."""
        return AsyncMemory(self._blocking.watched(watch), self._threads)

    async def close(self) -> None:
        """Finish what runs in the background and close the store. Closing twice is fine."""
        if self._owns_threads:
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


class AsyncScopedMemory(BoundMemory[AsyncMemory]):
    """The everyday verbs of an async memory, bound to one scope."""

    __slots__ = ()

    observe = scoped_verb(AsyncMemory.observe)
    remember = scoped_verb(AsyncMemory.remember)
    remember_many = scoped_verb(AsyncMemory.remember_many)
    recall = scoped_verb(AsyncMemory.recall)
    context = scoped_verb(AsyncMemory.context)
    look_up = scoped_verb(AsyncMemory.look_up)
    get = scoped_verb(AsyncMemory.get)
    get_many = scoped_verb(AsyncMemory.get_many)
    list = scoped_verb(AsyncMemory.list)
    view = scoped_verb(AsyncMemory.view)
    by_files = scoped_verb(AsyncMemory.by_files)
    history = scoped_verb(AsyncMemory.history)
    update = scoped_verb(AsyncMemory.update)
    expire = scoped_verb(AsyncMemory.expire)
    retract = scoped_verb(AsyncMemory.retract)
    pin = scoped_verb(AsyncMemory.pin)
    review = scoped_verb(AsyncMemory.review)
    preview = scoped_verb(AsyncMemory.preview)
    forget = scoped_verb(AsyncMemory.forget)
    form = scoped_verb(AsyncMemory.form)


class ScopedMemory(BoundMemory[Memory]):
    """The everyday verbs of a memory, bound to one scope."""

    __slots__ = ()

    observe = scoped_verb(Memory.observe)
    remember = scoped_verb(Memory.remember)
    remember_many = scoped_verb(Memory.remember_many)
    recall = scoped_verb(Memory.recall)
    context = scoped_verb(Memory.context)
    look_up = scoped_verb(Memory.look_up)
    get = scoped_verb(Memory.get)
    get_many = scoped_verb(Memory.get_many)
    list = scoped_verb(Memory.list)
    view = scoped_verb(Memory.view)
    by_files = scoped_verb(Memory.by_files)
    history = scoped_verb(Memory.history)
    update = scoped_verb(Memory.update)
    expire = scoped_verb(Memory.expire)
    retract = scoped_verb(Memory.retract)
    pin = scoped_verb(Memory.pin)
    review = scoped_verb(Memory.review)
    preview = scoped_verb(Memory.preview)
    forget = scoped_verb(Memory.forget)
    form = scoped_verb(Memory.form)
