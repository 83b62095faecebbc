"""LangGraph's `BaseStore` on a memory: EunoeStore, and AsyncEunoeStore for who only awaits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, closing
from functools import wraps
from threading import Event, Thread
from typing import Any, Final, Generic, Self, TypeVar
from weakref import finalize

from langgraph.store.base import BaseStore, GetOp, IndexConfig, Item, Op, Result, TTLConfig
from langgraph.store.base.batch import AsyncBatchedBaseStore

import eunoe
from eunoe.hosts.langgraph.operations import Operations
from eunoe.hosts.langgraph.vectors import embedder_of
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.scope import Scope, ScopeLike

ROOT: Final = Scope(store="langgraph")
"""The root of a store that is bound to no scope."""
R = TypeVar("R")
S = TypeVar("S", bound="EunoeStore")
_log = logging.getLogger(__name__)


class EunoeStore(BaseStore):
    """A LangGraph store that lasts: for graphs, LangMem, deepagents.

    Args:
        memory: where items are kept; the store of the command line, if none is given.
        scope: the root that the store is bound to. Two stores with different roots never see each other's items.
        index: what is embedded, as LangGraph's own stores take it. Without `embed` the memory's own embedder is used.
            Without an index the memory's own recall ranks what a query finds.
        ttl: how long items live, as LangGraph's own stores take it.

    >>> with eunoe.open(":memory:", embedder="none") as memory:
    ...     store = EunoeStore(memory, scope="agent=cook")
    ...     store.put(("users", "anna"), "diet", {"text": "Anna is allergic to peanuts."})
    ...     store.search(("users",), query="peanuts")[0].value
    {'text': 'Anna is allergic to peanuts.'}
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | AsyncMemory | None = None,
        *,
        scope: ScopeLike = ROOT,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self._operations = Operations(memory, scope, index, ttl)
        self.memory = self._operations.memory
        self.index_config = self._operations.index and self._operations.index.config
        self.embeddings = self._operations.index and self._operations.index.embeddings
        self.ttl_config = self._operations.ttl
        self._sweeper: Thread | None = None
        self._end = Event()
        finalize(self, self._end.set)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        scope: ScopeLike = ROOT,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        embedder: Any = "auto",
    ) -> StoreOpening[EunoeStore]:
        """Open a store in a file, or with ":memory:" in none. Use it with `with`; with `async with` it is an
        `AsyncEunoeStore`.

        Args:
            embedder: as in `eunoe.open`, for a store whose index names none.
        """
        return StoreOpening(cls, conn_string, embedder, scope=scope, index=index, ttl=ttl)

    def setup(self) -> None:
        """Do nothing: the store is ready. LangGraph's database stores have this method."""

    def get(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        default = self.ttl_config.get("refresh_on_read", True) if self.ttl_config else True
        return self._operations.get(GetOp(namespace, str(key), default if refresh_ttl is None else refresh_ttl))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations. All reads see what was there before the batch; of several puts the last one counts."""
        return self._operations.run(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations beside the event loop."""
        return await self._operations.arun(ops)

    def sweep_ttl(self) -> int:
        return self._operations.sweep()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep now and then in a thread, if the store has a `ttl`; cancelling the future ends that."""
        future: Future[None] = Future()
        if not self.ttl_config:
            future.set_result(None)
            return future
        end = self._end  # neither future nor thread keeps the store alive
        if not (self._sweeper and self._sweeper.is_alive()):
            end.clear()
            work = self._operations, end, self._operations.sweep_seconds(sweep_interval_minutes), future
            self._sweeper = Thread(target=_sweep_until, args=work, name="eunoe-ttl-sweeper", daemon=True)
            self._sweeper.start()
        future.add_done_callback(lambda done: end.set() if done.cancelled() else None)
        return future

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; return whether the thread has ended within so many seconds."""
        self._end.set()
        if self._sweeper:
            self._sweeper.join(timeout)
        return not (self._sweeper and self._sweeper.is_alive())

    def close(self) -> None:
        """Stop sweeping and close the memory."""
        self.stop_ttl_sweeper()
        self.memory.close()


def _raising(method: Callable[..., Coroutine[Any, Any, R]]) -> Callable[..., Coroutine[Any, Any, R]]:
    """A call that joins others in a batch: what is asked for wrongly is its own error, and nobody else's."""

    @wraps(method)
    async def call(self: AsyncBatchedBaseStore, *args: Any, **kwargs: Any) -> R:
        result = await method(self, *args, **kwargs)
        if isinstance(result, Exception):
            raise result
        return result

    return call


class AsyncEunoeStore(AsyncBatchedBaseStore):
    """An `EunoeStore` that is awaited: calls that are made at the same time are one batch.

    It belongs to the event loop that it was made in. Its blocking methods are for other threads; in the loop's own they
    raise `asyncio.InvalidStateError`.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | AsyncMemory | None = None,
        *,
        scope: ScopeLike = ROOT,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self._operations = Operations(memory, scope, index, ttl)
        self.memory = self._operations.memory
        self.index_config = self._operations.index and self._operations.index.config
        self.embeddings = self._operations.index and self._operations.index.embeddings
        self.ttl_config = self._operations.ttl
        self._sweeps: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        scope: ScopeLike = ROOT,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        embedder: Any = "auto",
    ) -> AsyncIterator[Self]:
        """Open a store in a file, or with ":memory:" in none; see `EunoeStore.from_conn_string`."""
        memory = await asyncio.to_thread(_open_memory, conn_string, index, embedder)
        try:
            async with cls(memory, scope=scope, index=index, ttl=ttl) as store:
                yield store
        finally:
            await asyncio.to_thread(memory.close)

    async def setup(self) -> None:
        """Do nothing: the store is ready. LangGraph's database stores have this method."""

    aget = _raising(AsyncBatchedBaseStore.aget)
    asearch = _raising(AsyncBatchedBaseStore.asearch)
    aput = _raising(AsyncBatchedBaseStore.aput)
    alist_namespaces = _raising(AsyncBatchedBaseStore.alist_namespaces)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations. All reads see what was there before the batch; of several puts the last one counts."""
        # LangGraph's task runs what several callers asked for: a put that is refused is its own caller's error alone.
        return await self._operations.arun(ops, alone=asyncio.current_task() is self._task)

    async def sweep_ttl(self) -> int:
        return await asyncio.to_thread(self._operations.sweep)

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Task[None]:
        """Sweep now and then in a task, if the store has a `ttl`."""
        if not self.ttl_config:
            return asyncio.create_task(asyncio.sleep(0))
        if self._sweeps is None or self._sweeps.done():
            self._sweeps = asyncio.create_task(_asweep(self._operations, sweep_interval_minutes))
        return self._sweeps

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; return whether the task has ended within so many seconds."""
        if self._sweeps is None:
            return True
        self._sweeps.cancel()
        done, _ = await asyncio.wait([self._sweeps], timeout=timeout)
        return bool(done)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_ttl_sweeper()


class StoreOpening(Generic[S]):
    """A store while a block runs: with `with` one that blocks, with `async with` one that is awaited."""

    def __init__(self, kind: type[S], target: str, embedder: Any, **options: Any) -> None:
        self._kind = kind
        self._target = target
        self._embedder = embedder
        self._options = options
        self._exits = ExitStack()
        self._awaited: AbstractAsyncContextManager[AsyncEunoeStore] | None = None

    def __enter__(self) -> S:
        with ExitStack() as exits:
            memory = exits.enter_context(_open_memory(self._target, self._options["index"], self._embedder))
            store = exits.enter_context(closing(self._kind(memory, **self._options)))
            self._exits = exits.pop_all()
        return store

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    async def __aenter__(self) -> AsyncEunoeStore:
        self._awaited = AsyncEunoeStore.from_conn_string(self._target, embedder=self._embedder, **self._options)
        return await self._awaited.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        if self._awaited:
            await self._awaited.__aexit__(*error)


def _open_memory(target: str, index: IndexConfig | None, embedder: Any) -> Memory:
    """Open the memory of a store that has it for itself; the embedder of its index goes first."""
    return eunoe.open(target, embedder=embedder_of(index) or embedder, llm="none", form=False)


def _sweep_until(operations: Operations, end: Event, seconds: float, future: Future[None]) -> None:
    while not end.wait(seconds):
        _sweep(operations)
    if future.set_running_or_notify_cancel():
        future.set_result(None)


async def _asweep(operations: Operations, minutes: float | None) -> None:
    while True:
        await asyncio.sleep(operations.sweep_seconds(minutes))
        await asyncio.to_thread(_sweep, operations)


def _sweep(operations: Operations) -> None:
    """Sweep, whatever happens: the next time may do better."""
    try:
        _log.debug("swept %d expired items", operations.sweep())
    except Exception as error:
        _log.warning("a sweep of expired items failed: %s", type(error).__name__)
