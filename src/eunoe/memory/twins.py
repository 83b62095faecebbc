"""How a verb becomes an awaited one, or one that is bound to a scope, and what such memories have beside verbs.

`faces.py` has the verbs. It is written by `make faces`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from contextvars import copy_context
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast

from eunoe.embed.contract import Embedder
from eunoe.llm.contract import Llm
from eunoe.memory.face import Watch
from eunoe.memory.groups import Leases
from eunoe.memory.memory import Memory
from eunoe.memory.verb import verb_of
from eunoe.model.arguments import RIGHTS, Right
from eunoe.model.result import Lease
from eunoe.model.scope import Scope, ScopeLike, Scopes

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B")
B_co = TypeVar("B_co", covariant=True)

_THREADS = 4
"""For each of the two pools. Verbs wait for the disk and for models, not for the processor."""


class Threads:
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


class OverBlocking(Protocol[B_co]):
    """An async object over a blocking one."""

    _threads: Threads

    @property
    def _blocking(self) -> B_co: ...


def awaited(
    verb: Callable[Concatenate[B, P], R],
) -> Callable[Concatenate[OverBlocking[B], P], Coroutine[Any, Any, R]]:
    """The async twin of a blocking verb, with its signature and its documentation."""
    name, is_slow = verb.__name__, verb_of(verb).slow

    @functools.wraps(verb)
    async def call(self: OverBlocking[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
        pool = self._threads.slow if is_slow else self._threads.quick
        return await self._threads.run(pool, functools.partial(getattr(self._blocking, name), *args, **kwargs))

    call.__qualname__ = f"Async{verb.__qualname__}"  # Python names it where an await was forgotten
    return call


def bound(verb: Callable[Concatenate[Any, Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """The twin of a verb, plain or async, that takes its scope from the memory that is bound to one."""
    name = verb.__name__

    def call(self: BoundMemory[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast("R", getattr(self.memory, name)(self.scope, *args, **kwargs))

    async def call_async(self: BoundMemory[Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await getattr(self.memory, name)(self.scope, *args, **kwargs)

    twin: Any = functools.wraps(verb)(call_async if inspect.iscoroutinefunction(verb) else call)
    signature = inspect.signature(verb)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "scope"]
    twin.__signature__ = signature.replace(parameters=kept)
    return cast("Callable[Concatenate[Any, P], R]", twin)


class AsyncGroup(Generic[B]):
    """A group of verbs, awaited."""

    def __init__(self, blocking: B, threads: Threads) -> None:
        self._blocking = blocking
        self._threads = threads

    def __repr__(self) -> str:
        return f"Async{self._blocking!r}"


class AsyncRenewal(AsyncGroup[Leases]):
    """What leases have beside verbs."""

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


class AsyncFace(AsyncGroup[Memory]):
    """What an async memory has beside verbs."""

    def __init__(self, blocking: Memory, threads: Threads | None = None) -> None:
        super().__init__(blocking, threads or Threads())
        self._owns_threads = threads is None

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

    def restricted(self, tenant: str = "", scopes: Scopes = (), rights: Iterable[Right] = RIGHTS) -> Self:
        """Return the same memory for somebody who may do no more than this; see `Memory.restricted`."""
        return type(self)(self._blocking.restricted(tenant, scopes, rights), self._threads)

    def watched(self, watch: Watch) -> Self:
        """Return the same memory, which tells of each change that is made through it; see `Memory.watched`."""
        return type(self)(self._blocking.watched(watch), self._threads)

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


class BoundMemory(Generic[B]):
    """A memory and a scope. It is immutable and holds nothing else."""

    __slots__ = ("memory", "scope")

    memory: B
    scope: Scope

    def __init__(self, memory: B, scope: Scope) -> None:
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
