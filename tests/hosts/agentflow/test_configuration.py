"""Memory in containers: each graph has its own, whichever was built last."""

import asyncio
import logging
from typing import Any

import pytest
from tenxgraph.core.state import AgentState
from tenxgraph.storage.store.base_store import BaseStore
from tests.support.agentflow_graphs import InjectQ, user_message
from tests.support.agentflow_memory import ANNA, CountingStore, answering, compile_chain, memory_callbacks

from eunoe.errors import InputError
from eunoe.hosts.agentflow import MemoryManager, configure_memory


def test_the_manager_and_its_store_are_in_the_container() -> None:
    container, store = InjectQ(), CountingStore()
    manager = configure_memory(container, store, relevance_threshold=0.5, max_memories=3, scope="thread")
    assert container.get(MemoryManager) is manager
    assert container.get(BaseStore) is store
    assert (manager.store, manager.relevance_threshold, manager.max_memories) == (store, 0.5, 3)
    assert manager.scope == "thread"


def test_without_a_store_there_is_a_manager_that_knows_nothing() -> None:
    container = InjectQ()
    manager = configure_memory(container, None)
    assert container.get(MemoryManager) is manager
    assert asyncio.run(manager.retrieve_context(ANNA, "tea")) == []


def test_what_is_missing_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InputError, match="container is None"):
        configure_memory(None, None)  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "eunoe"):
        manager = configure_memory(InjectQ(), None)
        for _ in range(2):
            asyncio.run(manager.retrieve_context(ANNA, "tea"))
    assert caplog.text.count("without a store") == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_graphs_that_are_built_before_either_runs_have_their_own_memory(order: tuple[int, int]) -> None:
    stores, apps, seen = [CountingStore(), CountingStore()], [], dict[int, list[Any]]()
    explicit: dict[int, list[str]] = {}
    for number, store in enumerate(stores):
        store.store(ANNA, f"Anna likes tea number {number}")
        container = InjectQ()
        manager = configure_memory(container, store)
        seen[number] = []

        async def node(
            state: AgentState, config: dict[str, Any], manager: MemoryManager = manager, number: int = number
        ) -> str:
            found = await manager.retrieve_context(config, "Which tea does Anna like?")
            explicit[number] = [memory.content for memory in found]
            return "Noted."

        nodes = {"SEE": answering("A draft.", seen[number]), "MAIN": node}
        apps.append(compile_chain(nodes, memory_callbacks(manager), container=container))
    for number in order:
        asyncio.run(apps[number].ainvoke(user_message("Which tea does Anna like?"), config=dict(ANNA)))
    for number, store in enumerate(stores):
        assert f"tea number {number} (score" in seen[number][0].context_summary
        assert explicit[number][:1] == [f"Anna likes tea number {number}"]
        assert len(store.memories) == 2, "what was there, and its own interaction"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_graph_without_memory_gets_none_of_another_graph(is_first: bool) -> None:
    store, seen = CountingStore(), list[Any]()
    store.store(ANNA, "Anna likes green tea")
    plain = {"MAIN": answering("Noted.", seen)}
    if is_first:
        app = compile_chain(plain)
    compile_chain({"MAIN": answering("Noted.")}, memory_callbacks(MemoryManager(store)))
    if not is_first:
        app = compile_chain(plain)
    asyncio.run(app.ainvoke(user_message("Which tea does Anna like?"), config=dict(ANNA)))
    assert seen[0].context_summary is None
    assert (store.searches, len(store.memories)) == ([], 1)


def test_a_graph_in_the_context_of_its_container_has_its_callbacks() -> None:
    store, seen, container = CountingStore(), list[Any](), InjectQ()
    store.store(ANNA, "Anna likes green tea")
    callbacks = memory_callbacks(configure_memory(container, store))
    app = compile_chain({"MAIN": answering("Noted.", seen)}, callbacks, container=container)
    compile_chain({"MAIN": answering("Noted.")})
    with container.context():
        asyncio.run(app.ainvoke(user_message("Which tea does Anna like?"), config=dict(ANNA)))
    assert "green tea" in seen[0].context_summary
