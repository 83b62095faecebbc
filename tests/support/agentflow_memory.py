"""Graphs of Agentflow with memory callbacks, and stores that count or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tenxgraph.core.state import AgentState, Message
from tenxgraph.storage.store.store_schema import MemorySearchResult, MemoryType
from tenxgraph.utils.callbacks import CallbackManager
from tests.support.agentflow_graphs import END, InjectQ, graphs

from eunoe.hosts.agentflow import MemoryManager, MemoryRetrievalCallback, MemoryStorageCallback
from eunoe.hosts.agentflow.testing import MockStore

checkpointers = import_module("tenxgraph.storage.checkpointer")
convert_messages = import_module("tenxgraph.utils.converter").convert_messages

ANNA = {"user_id": "anna", "thread_id": "t1"}
BEN = {"user_id": "ben", "thread_id": "t1"}


class CountingStore(MockStore):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.searches: list[str] = []
        self.writes = 0

    async def asearch(self, config: dict[str, Any], query: str, *args: Any, **kwargs: Any) -> list[MemorySearchResult]:
        self.searches.append(query)
        return await super().asearch(config, query, *args, **kwargs)

    async def astore(self, *args: Any, **kwargs: Any) -> str:
        self.writes += 1
        return await super().astore(*args, **kwargs)


class BrokenStore(MockStore):
    """Fails at everything."""

    async def asearch(self, *args: Any, **kwargs: Any) -> list[MemorySearchResult]:
        raise OSError("the disk is gone")

    async def aget(self, *args: Any, **kwargs: Any) -> MemorySearchResult | None:
        raise OSError("the disk is gone")


class HangingStore(MockStore):
    """Answers never."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    async def _hang(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        await asyncio.Event().wait()

    asearch = astore = aget = aupdate = _hang


def user(text: str, message_id: str | None = None) -> Message:
    return Message.text_message(text, role="user", message_id=message_id)


def assistant(text: str, message_id: str | None = None) -> Message:
    return Message.text_message(text, role="assistant", message_id=message_id)


def fact(content: str, score: float = 0.9, **fields: Any) -> MemorySearchResult:
    return MemorySearchResult(content=content, score=score, memory_type=MemoryType.SEMANTIC, **fields)


def memory_callbacks(manager: MemoryManager, **options: Any) -> CallbackManager:
    callbacks = CallbackManager()
    MemoryRetrievalCallback(manager).register(callbacks)
    MemoryStorageCallback(manager, **options).register(callbacks)
    return callbacks


def compile_chain(
    nodes: dict[str, Any],
    callbacks: CallbackManager | None = None,
    *,
    state: AgentState | None = None,
    container: Any = None,
    **options: Any,
) -> Any:
    """Nodes one after the other, in a graph with a container of its own."""
    graph = graphs.StateGraph(state or AgentState(), container=container or InjectQ())
    names = list(nodes)
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.set_entry_point(names[0])
    for name, following in zip(names, [*names[1:], END], strict=True):
        graph.add_edge(name, following)
    return graph.compile(callback_manager=callbacks or CallbackManager(), **options)


def answering(text: str, seen: list[Any] | None = None) -> Callable[..., Any]:
    """A node that answers always the same, and notes the state that it was given."""

    async def node(state: Any, config: dict[str, Any]) -> list[Message]:
        if seen is not None:
            seen.append(state)
        return [assistant(text)]

    return node
