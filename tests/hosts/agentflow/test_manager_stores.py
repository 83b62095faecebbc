"""The memory manager over three stores: Eunoe's, the one for tests, and Agentflow's own, which knows no users."""

import asyncio
from importlib import import_module
from typing import Any

import pytest
from tests.support.agentflow_graphs import ROOT
from tests.support.agentflow_memory import ANNA, BEN, assistant, user

from eunoe.hosts.agentflow import EunoeStore, MemoryManager
from eunoe.hosts.agentflow.framework import BaseStore, MemoryType
from eunoe.hosts.agentflow.testing import MockStore
from eunoe.memory import Memory

InMemoryStore = import_module(f"{ROOT}.qa.testing").InMemoryStore


@pytest.fixture(params=["eunoe", "mock", "agentflow"])
def any_store(request: pytest.FixtureRequest, memory: Memory) -> BaseStore:
    store: BaseStore = {"eunoe": lambda: EunoeStore(memory), "mock": MockStore, "agentflow": InMemoryStore}[
        request.param
    ]()
    return store


@pytest.fixture
def eunoe_store(memory: Memory) -> EunoeStore:
    return EunoeStore(memory)


def say(manager: MemoryManager, question: str, config: dict[str, Any] = ANNA) -> str:
    return asyncio.run(manager.store_interaction(config, user(question), assistant("Noted.")))


def recall(manager: MemoryManager, query: str, config: dict[str, Any] = ANNA) -> list[str]:
    return [memory.content for memory in asyncio.run(manager.retrieve_context(config, query))]


def test_ids_lead_to_memories(any_store: BaseStore) -> None:
    manager = MemoryManager(any_store)
    question = user("I live in Lisbon.")
    memory_id = asyncio.run(manager.store_interaction(ANNA, question, assistant("Noted.")))
    [fact_id] = asyncio.run(manager.extract_and_store_facts(ANNA, question))
    for stored, memory_type in ((memory_id, MemoryType.EPISODIC), (fact_id, MemoryType.SEMANTIC)):
        memory = asyncio.run(any_store.aget({"user_id": "anna"}, stored))
        assert memory is not None
        assert "I live in Lisbon." in memory.content
        assert memory.memory_type == memory_type
        assert question.message_id in memory.metadata.values()


def test_an_interaction_is_stored_once(any_store: BaseStore) -> None:
    manager = MemoryManager(any_store)
    question, answer = user("I live in Lisbon."), assistant("Noted.")
    assert len({asyncio.run(manager.store_interaction(ANNA, question, answer)) for _ in range(3)}) == 1
    assert len(asyncio.run(any_store.aget_all({"user_id": "anna"}))) == 1


def test_nobody_recalls_what_belongs_to_others(any_store: BaseStore) -> None:
    manager = MemoryManager(any_store, relevance_threshold=0.0)
    say(manager, "I live in Lisbon.")
    assert recall(manager, "Lisbon", BEN) == []
    assert recall(manager, "Lisbon") == ["User: I live in Lisbon.\nAssistant: Noted."]


def test_nobody_recalls_what_belongs_to_another_thread(any_store: BaseStore) -> None:
    manager = MemoryManager(any_store, relevance_threshold=0.0, scope="thread")
    say(manager, "I live in Lisbon.")
    assert recall(manager, "Lisbon", {**ANNA, "thread_id": "t2"}) == []
    assert len(recall(manager, "Lisbon")) == 1


def test_what_is_too_much_is_archived_and_pinned_memories_stay(any_store: BaseStore) -> None:
    manager = MemoryManager(any_store, relevance_threshold=0.0, max_per_user=2, dedup_threshold=None)
    pinned = say(manager, "I live in Lisbon.")
    assert asyncio.run(manager.pin(ANNA, pinned))
    for said in ("I work as a nurse.", "I play the cello."):
        say(manager, said)
    memories = asyncio.run(any_store.aget_all({"user_id": "anna"}))
    archived = [memory.content for memory in memories if memory.metadata.get("archived")]
    assert archived == ["User: I work as a nurse.\nAssistant: Noted."]
    assert archived[0] not in recall(manager, "nurse")
    assert len(recall(manager, "Lisbon")) >= 1


def test_a_summary_is_made_and_renewed(any_store: BaseStore) -> None:
    manager = MemoryManager(any_store, dedup_threshold=None)
    first = say(manager, "I live in Lisbon.")
    say(manager, "I work as a nurse.", {**ANNA, "thread_id": "t2"})
    summary_id = asyncio.run(manager.summarize(ANNA))
    assert asyncio.run(manager.summarize(ANNA)) == summary_id
    assert asyncio.run(manager.forget_memory(ANNA, first))
    texts = [memory.content for memory in asyncio.run(any_store.aget_all({"user_id": "anna"}))]
    assert len(texts) == 2
    assert not any("Lisbon" in text for text in texts)
    assert all("nurse" in text for text in texts)


@pytest.mark.parametrize("scope", ["user", "thread"])
def test_a_user_is_forgotten(any_store: BaseStore, scope: Any) -> None:
    manager = MemoryManager(any_store, scope=scope)
    for thread in ("t1", "t2"):
        say(manager, "I live in Lisbon.", {**ANNA, "thread_id": thread})
    kept = say(manager, "I live in Lisbon.", BEN)
    asyncio.run(manager.forget_user({"user_id": "anna"}))
    left = [*asyncio.run(any_store.aget_all({"user_id": "anna"})), *asyncio.run(any_store.aget_all({"user_id": "ben"}))]
    assert {memory.id for memory in left} == {kept}


def test_eunoe_finds_what_has_other_words(eunoe_store: EunoeStore) -> None:
    manager = MemoryManager(eunoe_store)
    facts = ["Anna is allergic to peanuts.", "Anna lives in Lisbon.", "The server runs Debian 13."]
    asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), facts))
    assert recall(manager, "Is Anna allergic to anything?")[0] == "Anna is allergic to peanuts."
    assert recall(manager, "How do magnets work?") == []


def test_eunoe_keeps_what_only_looks_the_same(eunoe_store: EunoeStore) -> None:
    manager = MemoryManager(eunoe_store)
    facts = ["Anna likes green tea.", "anna likes green tea", "Anna does not like green tea.", "Ben likes green tea."]
    ids = asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), facts))
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_an_interaction_that_another_process_stored_is_known(eunoe_store: EunoeStore) -> None:
    question, answer = user("I live in Lisbon."), assistant("Noted.")
    ids = {
        asyncio.run(MemoryManager(eunoe_store, dedup_threshold=None).store_interaction(ANNA, question, answer))
        for _ in range(2)
    }
    assert len(ids) == len(asyncio.run(eunoe_store.aget_all(ANNA))) == 1
