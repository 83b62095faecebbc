"""EunoeStore: LangGraph's `BaseStore` on a memory."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any
from weakref import finalize

from langgraph.store.base import BaseStore, GetOp, IndexConfig, Item, Op, Result, TTLConfig

from eunoe.hosts.langgraph.opening import StoreOpening
from eunoe.hosts.langgraph.operations import ROOT, MemoryLike, Operations
from eunoe.hosts.langgraph.sweeper import Sweeper
from eunoe.model.scope import ScopeLike


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
        self._sweeper = Sweeper(self._operations.sweep)
        finalize(self, self._sweeper.end.set)

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
        """Return an item; None if there is none."""
        default = self.ttl_config.get("refresh_on_read", True) if self.ttl_config else True
        return self._operations.get(GetOp(namespace, str(key), default if refresh_ttl is None else refresh_ttl))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations. All reads see what was there before the batch; of several puts the last one counts."""
        return self._operations.run(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations beside the event loop."""
        return await self._operations.arun(ops)

    def sweep_ttl(self) -> int:
        """Delete the items whose time is over; return how many."""
        return self._operations.sweep()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep now and then in a thread, if the store has a `ttl`; cancelling the future ends that."""
        if not self.ttl_config:
            return _nothing_to_do()
        return self._sweeper.start(self._operations.sweep_seconds(sweep_interval_minutes))

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; return whether the thread has ended within so many seconds."""
        return self._sweeper.stop(timeout)

    def close(self) -> None:
        """Stop sweeping and close the memory."""
        self.stop_ttl_sweeper()
        self.memory.close()


def _nothing_to_do() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future
