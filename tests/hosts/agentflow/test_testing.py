"""The store for tests, which really stores and searches, and its fixtures in somebody else's tests."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tenxgraph.storage.store.store_schema import MemoryType
from tests.support.agentflow_memory import ANNA, BEN, fact, user

from eunoe.errors import ScopeError
from eunoe.hosts.agentflow.testing import MockStore

TESTS = """
import asyncio

from injectq import Inject, InjectQ
from tenxgraph.core.graph import StateGraph
from tenxgraph.core.state import AgentState, Message
from tenxgraph.storage.store import BaseStore, MemorySearchResult, MemoryType
from tenxgraph.utils import END

from eunoe.hosts.agentflow import MemoryManager, configure_memory

CONFIG = {"user_id": "test", "thread_id": "t1"}


class TestMemoryManager:
    def test_retrieve_context(self, mock_store):
        mock_store.set_search_results(
            [MemorySearchResult(id="1", content="User likes pizza", score=0.9, memory_type=MemoryType.SEMANTIC)]
        )
        manager = MemoryManager(store=mock_store)
        results = asyncio.run(manager.retrieve_context(CONFIG, "What food do I like?"))
        assert len(results) == 1
        assert results[0].content == "User likes pizza"

    def test_store_interaction(self, mock_store):
        manager = MemoryManager(store=mock_store)
        user_msg = Message.text_message("Hello", role="user")
        assistant_msg = Message.text_message("Hi there!", role="assistant")
        mem_id = asyncio.run(manager.store_interaction(CONFIG, user_msg, assistant_msg))
        assert mem_id in mock_store.memories
        assert "Hello" in mock_store.memories[mem_id].content
        assert "Hi there!" in mock_store.memories[mem_id].content

    def test_each_test_has_an_empty_store(self, mock_store, container_with_memory):
        assert mock_store.memories == {}
        assert container_with_memory.get(BaseStore) is mock_store
        assert container_with_memory.get(MemoryManager).store is mock_store


class TestMemoryGraphIntegration:
    def test_memory_injection_in_node(self, mock_store):
        container = InjectQ()
        configure_memory(container, mock_store)
        mock_store.set_search_results([MemorySearchResult(id="1", content="User's name is John", score=0.95)])

        async def memory_node(
            state: AgentState, config: dict, memory_manager: MemoryManager = Inject[MemoryManager]
        ):
            memories = await memory_manager.retrieve_context(config, state.context[-1].text())
            answer = f"Found {len(memories)} memories: {memories[0].content}"
            return [Message.text_message(answer, role="assistant")]

        graph = StateGraph(container=container)
        graph.add_node("MAIN", memory_node)
        graph.set_entry_point("MAIN")
        graph.add_edge("MAIN", END)
        message = Message.text_message("What's my name?", role="user")
        result = asyncio.run(graph.compile().ainvoke({"messages": [message]}, config=CONFIG))
        assert "Found 1 memories" in result["messages"][-1].text()
        assert "John" in result["messages"][-1].text()
"""


def found(store: MockStore, query: str, config: dict[str, Any] = ANNA, **options: Any) -> list[str]:
    return [hit.content for hit in asyncio.run(store.asearch(config, query, **options))]


@pytest.fixture
def teas() -> MockStore:
    store = MockStore()
    store.store(ANNA, "Anna likes green tea", memory_type=MemoryType.SEMANTIC, category="drinks", metadata={"cups": 2})
    store.store(ANNA, "Anna went to the tea house", metadata={"sources": ["m1"]})
    store.store(BEN, "Ben likes black tea")
    return store


class Outcomes:
    """Counts how the tests of another pytest ended."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self.seen.append(report.outcome)


def test_the_fixtures_are_there_in_other_peoples_tests(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["eunoe.hosts.agentflow.testing"]', encoding="utf-8")
    (tmp_path / "test_memory.py").write_text(TESTS, encoding="utf-8")
    warnings = ["-Werror", "-Wignore::pytest.PytestAssertRewriteWarning"]  # it was imported for this module already
    options = ["-q", *warnings, "-pno:cacheprovider", "--import-mode=importlib", f"--rootdir={tmp_path}"]
    outcomes = Outcomes()
    pytest.main([*options, str(tmp_path)], plugins=[outcomes])
    assert outcomes.seen == ["passed"] * 4


def test_it_finds_by_words_the_best_first(teas: MockStore) -> None:
    assert found(teas, "Does Anna like green tea?") == ["Anna likes green tea", "Anna went to the tea house"]
    assert found(teas, "Does Anna like green tea?", score_threshold=0.7) == ["Anna likes green tea"]
    assert found(teas, "Does Anna like green tea?", limit=1) == ["Anna likes green tea"]
    assert found(teas, "magnets") == []
    assert found(teas, "black tea", BEN) == ["Ben likes black tea"]


@pytest.mark.parametrize(
    "options", [{"memory_type": MemoryType.SEMANTIC}, {"category": "drinks"}, {"filters": {"cups": 2}}]
)
def test_it_filters(teas: MockStore, options: dict[str, Any]) -> None:
    assert found(teas, "tea", **options) == ["Anna likes green tea"]


def test_results_can_be_given(teas: MockStore) -> None:
    teas.set_search_results([fact("made up")])
    assert found(teas, "tea") == ["made up"]
    teas.set_search_results([])
    assert found(teas, "tea") == []
    teas.set_search_results(None)
    assert len(found(teas, "tea")) == 2
    teas.clear()
    assert (teas.memories, found(teas, "tea")) == ({}, [])


def test_it_updates_and_deletes_only_what_is_the_users(teas: MockStore) -> None:
    memory_id = next(iter(teas.memories))
    assert teas.update(BEN, memory_id, "changed") is False
    assert teas.delete(BEN, memory_id) is False  # type: ignore[func-returns-value]
    assert teas.get(BEN, memory_id) is None
    assert teas.update(ANNA, memory_id, user("Anna likes white tea"), metadata={"cups": 3})
    memory = teas.get(ANNA, memory_id)
    assert memory is not None
    assert (memory.content, memory.metadata) == ("Anna likes white tea", {"cups": 3, "category": "drinks"})
    assert teas.update(ANNA, memory_id, "tea", metadata={"pots": 1}, replace_metadata=True)
    assert teas.memories[memory_id].metadata == {"pots": 1}
    assert teas.delete(ANNA, memory_id) is True  # type: ignore[func-returns-value]
    assert teas.forget_memory({"user_id": "anna"}) == 1
    assert [memory.user_id for memory in teas.memories.values()] == ["ben"]


@pytest.mark.parametrize("config", [{}, {"user_id": ""}, {"user_id": "anonymous"}])
def test_a_config_that_names_nobody_is_refused(teas: MockStore, config: dict[str, Any]) -> None:
    for call in (
        teas.astore(config, "x"),
        teas.asearch(config, "x"),
        teas.aget_all(config),
        teas.aforget_memory(config),
    ):
        with pytest.raises(ScopeError):
            asyncio.run(call)
    assert len(teas.memories) == 3
