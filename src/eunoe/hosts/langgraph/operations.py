"""LangGraph's operations on a memory, a batch at a time. Both stores are made of it."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from langgraph.store.base import (
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

import eunoe
from eunoe.errors import EunoeError
from eunoe.hosts.default_store import default_memory
from eunoe.hosts.langgraph.filters import check_filter
from eunoe.hosts.langgraph.index import FieldIndex, embedder_of
from eunoe.hosts.langgraph.items import item_of, search_item_of, with_plain_value
from eunoe.hosts.langgraph.names import Namespaces
from eunoe.hosts.langgraph.reading import Reader
from eunoe.hosts.langgraph.vectors import Rows
from eunoe.hosts.langgraph.writing import Writer
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import check_count, check_text
from eunoe.model.scope import Scope, ScopeLike

ROOT: Final = Scope(store="langgraph")
"""The root of a store that is bound to no scope."""
_TTL: Final[TTLConfig] = {"refresh_on_read": False}
"""What a `ttl` means where it does not say so: what SqliteStore takes it for."""
_SWEEP_MINUTES: Final = 5.0

MemoryLike = Memory | AsyncMemory | None


class Vectors(NamedTuple):
    """What a batch needs of the index: the vectors of texts to put and of queries, by text."""

    texts: Mapping[str, Rows] = {}
    queries: Mapping[str, Rows] = {}


class Operations:
    """Carries out the operations of one store."""

    def __init__(self, memory: MemoryLike, scope: ScopeLike, index: IndexConfig | None, ttl: TTLConfig | None) -> None:
        names = Namespaces(Scope.of(scope))
        self.memory: Memory = memory.blocking if isinstance(memory, AsyncMemory) else memory or default_memory()
        self.index = FieldIndex(index, self.memory) if index else None
        self.ttl: TTLConfig | None = {**_TTL, **ttl} if ttl else None
        self._reader = Reader(self.memory, names, self.index, self.ttl)
        self._writer = Writer(self.memory, names, self.index, self._reader)

    def run(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out a batch: all reads see what was there before it."""
        plain = _check(ops)
        vectors = Vectors(*self.index.embed(*_to_embed(plain, self.index))) if self.index else Vectors()
        return self._run(plain, vectors)

    async def arun(self, ops: Iterable[Op], alone: bool = False) -> list[Result]:
        """Do the same beside the event loop. With `alone`, the result of what is refused is the error."""
        plain = await asyncio.to_thread(_check, ops, alone)
        if self.index is None:
            return await asyncio.to_thread(self._run, plain, Vectors())
        to_embed = await asyncio.to_thread(_to_embed, plain, self.index)
        return await asyncio.to_thread(self._run, plain, Vectors(*await self.index.aembed(*to_embed)))

    def _run(self, ops: list[Op], vectors: Vectors) -> list[Result]:
        results = [self._read(op, vectors) for op in ops]
        if puts := [op for op in ops if isinstance(op, PutOp)]:
            self._writer.write(puts, vectors.texts)
        return results

    def _read(self, op: Op | Exception, vectors: Vectors) -> Any:
        if isinstance(op, Exception):
            return op
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op, vectors.queries)
        return self._reader.namespaces(op) if isinstance(op, ListNamespacesOp) else None

    def get(self, op: GetOp) -> Item | None:
        """Carry out a single read, as a batch of one would, in less time."""
        validate_op_namespace(op)
        return self._get(op)

    def _get(self, op: GetOp) -> Item | None:
        found = self._reader.get(tuple(op.namespace), op.key)
        if found is None:
            return None
        if op.refresh_ttl and self.ttl:
            self._writer.refresh([found])
        return item_of(found.atom, found.namespace)

    def _search(self, op: SearchOp, queries: Mapping[str, Rows]) -> list[SearchItem]:
        found = self._reader.search(op, queries)
        if op.refresh_ttl and self.ttl:
            self._writer.refresh(found)
        return [search_item_of(each.atom, each.namespace, each.score) for each in found]

    def sweep(self) -> int:
        """Delete the items whose time is over; return how many."""
        return self._writer.sweep()

    def sweep_seconds(self, minutes: float | None) -> float:
        """How long to wait between sweeps."""
        return 60 * float(minutes or (self.ttl or {}).get("sweep_interval_minutes") or _SWEEP_MINUTES)


def open_memory(target: str, index: IndexConfig | None, embedder: Any = "auto") -> Memory:
    """Open the memory of a store that has it for itself; the embedder of its index goes first."""
    return eunoe.open(target, embedder=embedder_of(index) or embedder, llm="none", form=False)


def check_op(op: Op) -> Op:
    """Return an operation as it is carried out; raise if there is something wrong with it."""
    if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
        raise ValueError(f"Unknown operation type: {type(op)}")
    validate_op_namespace(op)
    if isinstance(op, PutOp):
        return with_plain_value(op)
    if isinstance(op, SearchOp | ListNamespacesOp):
        check_count(op.limit, "limit", least=0)
        check_count(op.offset, "offset", least=0)
    if isinstance(op, SearchOp):
        check_filter(op.filter)
        return op._replace(query=op.query if op.query and check_text(op.query, "query").strip() else None)
    return op


def _check(ops: Iterable[Op], alone: bool = False) -> list[Op]:
    """Check a batch before anything of it is done. With `alone`, an error stands in the place of what it refuses."""
    checked: list[Any] = []
    for op in ops:
        try:
            checked.append(check_op(op))
        except (EunoeError, ValueError) as error:
            if not alone:
                raise
            checked.append(error)
    return checked


def _to_embed(ops: Iterable[Op], index: FieldIndex) -> tuple[Iterable[str], Iterable[str]]:
    """The texts and the queries of a batch, each once."""
    texts = dict[str, Any]()
    queries = dict[str, Any]()
    for op in ops:
        if isinstance(op, PutOp):
            texts |= dict.fromkeys(index.texts(op))
        elif isinstance(op, SearchOp) and op.query:
            queries[op.query] = None
    return texts, queries
