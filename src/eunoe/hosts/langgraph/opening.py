"""A store that is opened by the path of its file, for the time of a block."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eunoe.hosts.langgraph.asynchronous import AsyncEunoeStore
from eunoe.hosts.langgraph.operations import open_memory

if TYPE_CHECKING:
    from eunoe.hosts.langgraph.store import EunoeStore

S = TypeVar("S", bound="EunoeStore")


class StoreOpening(Generic[S]):
    """A store while a block runs: with `with` one that blocks, with `async with` one that is awaited."""

    def __init__(self, kind: type[S], target: str, embedder: Any, **options: Any) -> None:
        self._kind = kind
        self._target = target
        self._embedder = embedder
        self._options = options
        self._store: S | None = None
        self._async_opening: AbstractAsyncContextManager[AsyncEunoeStore] | None = None

    def __enter__(self) -> S:
        memory = open_memory(self._target, self._options["index"], self._embedder)
        try:
            self._store = self._kind(memory, **self._options)
        except BaseException:
            memory.close()
            raise
        return self._store

    def __exit__(self, *_: object) -> None:
        if self._store:
            self._store.close()

    async def __aenter__(self) -> AsyncEunoeStore:
        self._async_opening = AsyncEunoeStore.from_conn_string(self._target, embedder=self._embedder, **self._options)
        return await self._async_opening.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        if self._async_opening:
            await self._async_opening.__aexit__(*error)
