"""For tests of graphs with memory: a store in memory, and fixtures.

Load the fixtures in your `conftest.py`: `pytest_plugins = ["eunoe.hosts.agentflow.testing"]`.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from injectq import InjectQ
from tenxgraph.core.state import Message
from tenxgraph.storage.store.base_store import BaseStore
from tenxgraph.storage.store.store_schema import MemorySearchResult, MemoryType

from eunoe.form.evidence import content_words
from eunoe.hosts.agentflow.callbacks import configure_memory
from eunoe.hosts.agentflow.manager import is_own, own_config
from eunoe.text.normalize import fold

Config = dict[str, Any]
Content = str | Message


class MockStore(BaseStore):
    """A store that keeps memories in a dict, and finds them by their words. A score is the share of the query's content
    words that a memory has.

    >>> store, anna = MockStore(), {"user_id": "anna"}
    >>> _ = store.store(anna, "Anna likes green tea")
    >>> [(hit.content, hit.score) for hit in store.search(anna, "Which tea does Anna like?")]
    [('Anna likes green tea', 1.0)]
    """

    def __init__(self) -> None:
        self.memories: dict[str, MemorySearchResult] = {}
        self._search_results: list[MemorySearchResult] | None = None

    def set_search_results(self, results: list[MemorySearchResult] | None) -> None:
        """Say what each search gives from now on; None: what is stored."""
        self._search_results = results

    def clear(self) -> None:
        """Forget the memories of everybody, and what searches were to give."""
        self.memories.clear()
        self._search_results = None

    async def asetup(self) -> None:
        pass

    async def arelease(self) -> None:
        pass

    async def astore(
        self,
        config: Config,
        content: Content,
        memory_type: MemoryType = MemoryType.EPISODIC,
        category: str = "general",
        metadata: Config | None = None,
        **kwargs: Any,
    ) -> str:
        own = _owner(config)
        memory_id = str(kwargs.get("memory_id") or uuid4())
        self.memories[memory_id] = MemorySearchResult(
            id=memory_id,
            content=_text(content),
            score=1.0,
            memory_type=memory_type,
            metadata={**(metadata or {}), "category": category},
            user_id=str(own["user_id"]),
            thread_id=own.get("thread_id"),
            timestamp=datetime.now(UTC),
        )
        return memory_id

    async def asearch(  # type: ignore[override]  # how it ranks and what it costs is nothing to it
        self,
        config: Config,
        query: str,
        memory_type: MemoryType | None = None,
        category: str | None = None,
        limit: int = 10,
        score_threshold: float | None = None,
        filters: Config | None = None,
        **kwargs: Any,
    ) -> list[MemorySearchResult]:
        own = _owner(config)
        if self._search_results is not None:
            # What a test made up is that user's own, unless it says whose it is.
            owner = {"user_id": str(own["user_id"]), "thread_id": own.get("thread_id")}
            given = self._search_results[:limit]
            return [each.model_copy(update={n: getattr(each, n) or owner[n] for n in owner}) for each in given]
        wanted = {**(filters or {}), **({"category": category} if category else {})}
        hits = [
            memory.model_copy(update={"score": score})
            for memory in self._memories_of(own)
            if memory_type in (None, memory.memory_type) and wanted.items() <= memory.metadata.items()
            if (score := word_score(query, memory.content)) > 0 and score >= (score_threshold or 0)
        ]
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    async def aget(self, config: Config, memory_id: str, **kwargs: Any) -> MemorySearchResult | None:
        memory = self.memories.get(memory_id)
        return memory if memory and is_own(memory, _owner(config)) else None

    async def aget_all(self, config: Config, limit: int = 100, **kwargs: Any) -> list[MemorySearchResult]:
        return list(self._memories_of(_owner(config)))[:limit]

    async def aupdate(
        self, config: Config, memory_id: str, content: Content, metadata: Config | None = None, **kwargs: Any
    ) -> bool:
        memory = await self.aget(config, memory_id)
        if memory is None:
            return False
        kept = {} if kwargs.get("replace_metadata") else memory.metadata
        changes = {"content": _text(content), "metadata": {**kept, **(metadata or {})}}
        self.memories[memory_id] = memory.model_copy(update=changes)
        return True

    async def adelete(self, config: Config, memory_id: str, **kwargs: Any) -> bool:
        is_there = await self.aget(config, memory_id) is not None
        if is_there:
            del self.memories[memory_id]
        return is_there

    async def aforget_memory(self, config: Config, **kwargs: Any) -> int:
        own = list(self._memories_of(_owner(config)))
        for memory in own:
            del self.memories[memory.id]
        return len(own)

    def _memories_of(self, own: Mapping[str, Any]) -> Iterator[MemorySearchResult]:
        return (memory for memory in self.memories.values() if is_own(memory, own))


@pytest.fixture
def mock_store() -> MockStore:
    return MockStore()


@pytest.fixture
def container_with_memory(mock_store: MockStore) -> InjectQ:
    """A container with that store and a `MemoryManager` over it."""
    container = InjectQ()
    configure_memory(container, mock_store)
    return container


def word_score(query: str, text: str) -> float:
    """The share of a query's content words that a text has; of all its words where none has content."""
    asked = content_words(query)
    if asked:
        return len(asked & content_words(text)) / len(asked)
    words = set(fold(query).split())
    return len(words & set(fold(text).split())) / len(words) if words else 0.0


def _owner(config: Mapping[str, Any]) -> Config:
    return own_config(config, "thread" if config.get("thread_id") else "user")


def _text(content: Content) -> str:
    return content if isinstance(content, str) else content.text()
