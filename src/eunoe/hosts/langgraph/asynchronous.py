"""AsyncEunoeStore: the store for who only awaits, as `AsyncSqliteStore` stands beside `SqliteStore`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, Self

from langgraph.store.base import (
    NOT_PROVIDED,
    IndexConfig,
    ListNamespacesOp,
    NotProvided,
    Op,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)
from langgraph.store.base.batch import AsyncBatchedBaseStore

from eunoe.hosts.langgraph.operations import ROOT, MemoryLike, Operations, check_op, open_memory
from eunoe.hosts.langgraph.sweeper import sweep_once
from eunoe.model.scope import ScopeLike


class AsyncEunoeStore(AsyncBatchedBaseStore):
    """An `EunoeStore` that is awaited: calls that are made at the same time are one batch.

    It belongs to the event loop that it was made in. Its blocking methods are for other threads; in the loop's own they
    raise `asyncio.InvalidStateError`.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: MemoryLike = None,
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
        memory = await asyncio.to_thread(open_memory, conn_string, index, embedder)
        try:
            async with cls(memory, scope=scope, index=index, ttl=ttl) as store:
                yield store
        finally:
            await asyncio.to_thread(memory.close)

    async def setup(self) -> None:
        """Do nothing: the store is ready. LangGraph's database stores have this method."""

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Search as `search` does. What is asked for wrongly is refused here, before it joins a batch."""
        check_op(SearchOp(namespace_prefix, filter, limit, offset, query))
        return await super().asearch(
            namespace_prefix, query=query, filter=filter, limit=limit, offset=offset, refresh_ttl=refresh_ttl
        )

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Keep an item as `put` does."""
        refused: object = await super().aput(namespace, key, value, index, ttl=ttl)  # type: ignore[func-returns-value]
        if isinstance(refused, Exception):
            raise refused

    async def alist_namespaces(
        self,
        *,
        prefix: tuple[str, ...] | None = None,
        suffix: tuple[str, ...] | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """List namespaces as `list_namespaces` does."""
        check_op(ListNamespacesOp(None, max_depth, limit, offset))
        return await super().alist_namespaces(
            prefix=prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset
        )

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations. All reads see what was there before the batch; of several puts the last one counts."""
        # LangGraph's task runs what several callers asked for: a put that is refused is its own caller's error alone.
        return await self._operations.arun(ops, alone=asyncio.current_task() is self._task)

    async def sweep_ttl(self) -> int:
        """Delete the items whose time is over; return how many."""
        return await asyncio.to_thread(self._operations.sweep)

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Task[None]:
        """Sweep now and then in a task, if the store has a `ttl`."""
        if not self.ttl_config:
            return asyncio.create_task(asyncio.sleep(0))
        if self._sweeps is None or self._sweeps.done():
            self._sweeps = asyncio.create_task(_sweep(self._operations, sweep_interval_minutes))
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


async def _sweep(operations: Operations, minutes: float | None) -> None:
    while True:
        await asyncio.sleep(operations.sweep_seconds(minutes))
        await asyncio.to_thread(sweep_once, operations.sweep)
