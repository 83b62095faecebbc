"""The memory manager over three stores: Eunoe's, the one for tests, and Agentflow's own, which knows no users."""

import asyncio
from importlib import import_module
from typing import Any

import pytest
from tenxgraph.storage.store.base_store import BaseStore
from tenxgraph.storage.store.store_schema import MemoryType
from tests.support.agentflow_graphs import ROOT
from tests.support.agentflow_memory import ANNA, BEN, assistant, user

from eunoe.hosts.agentflow import EunoeStore, MemoryManager
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


@pytest.mark.parametrize("scope", ["user", "thread"])
def test_the_same_words_at_once_are_one_memory(eunoe_store: EunoeStore, scope: Any) -> None:
    """Managers of their own stand for processes."""

    async def store_all() -> tuple[set[str], set[str]]:
        managers = [MemoryManager(eunoe_store, scope=scope) for _ in range(6)]
        said = "I am allergic to peanuts."
        interactions = [each.store_interaction(ANNA, user(said), assistant("Noted.")) for each in managers]
        facts = [each.extract_and_store_facts(ANNA, user(said)) for each in managers]
        return set(await asyncio.gather(*interactions)), {id for ids in await asyncio.gather(*facts) for id in ids}

    ids = [id for group in asyncio.run(store_all()) for id in group]
    assert len(ids) == 2
    assert {memory.id for memory in eunoe_store.get_all(ANNA)} == set(ids)
    say(MemoryManager(eunoe_store, scope=scope), "I am allergic to peanuts.", {**ANNA, "thread_id": "t2"})
    assert len(eunoe_store.get_all(ANNA)) == (2 if scope == "user" else 3)


def test_a_later_answer_that_another_process_gets_takes_the_place_of_the_first(any_store: BaseStore) -> None:
    question = user("Which tea?")
    for answer in ("I am not sure.", "Green tea."):
        manager = MemoryManager(any_store)
        asyncio.run(manager.store_interaction(ANNA, question, assistant(answer)))
    (memory,) = asyncio.run(any_store.aget_all({"user_id": "anna"}))
    assert memory.content.endswith("Green tea.")


def test_a_fact_that_is_stored_again_brings_back_the_one_that_was_archived(eunoe_store: EunoeStore) -> None:
    manager = MemoryManager(eunoe_store, relevance_threshold=0.0)
    [first] = asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), ["Anna lives in Lisbon."]))
    asyncio.run(manager.archive(ANNA, first))
    assert recall(manager, "Lisbon") == []
    assert asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), ["Anna lives in Lisbon."])) == [first]
    assert recall(manager, "Lisbon") == ["Anna lives in Lisbon."]


def test_a_fact_that_was_changed_is_not_overwritten_by_its_first_words(eunoe_store: EunoeStore) -> None:
    manager = MemoryManager(eunoe_store)
    [first] = asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), ["Anna lives in Lisbon."]))
    eunoe_store.update(ANNA, first, "Anna lives in Porto.")
    [second] = asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), ["Anna lives in Lisbon."]))
    texts = {memory.id: memory.content for memory in eunoe_store.get_all(ANNA)}
    assert texts == {first: "Anna lives in Porto.", second: "Anna lives in Lisbon."}


def test_turns_that_share_a_memory_do_not_overwrite_each_other(eunoe_store: EunoeStore) -> None:
    manager = MemoryManager(eunoe_store)
    turns = [user("Which tea?"), user("Which tea?")]

    async def run() -> None:
        await asyncio.gather(*(manager.store_interaction(ANNA, turn, assistant("Green tea.")) for turn in turns))
        for number, turn in enumerate(turns):
            await manager.store_interaction(ANNA, turn, assistant(f"Black tea, number {number}."))

    asyncio.run(run())
    texts = [memory.content.partition("Assistant: ")[2] for memory in eunoe_store.get_all(ANNA)]
    assert sorted(texts) == ["Black tea, number 0.", "Black tea, number 1."]


def test_a_user_is_forgotten_in_sessions_of_other_programs_too(eunoe_store: EunoeStore, memory: Memory) -> None:
    memory.observe("session=s1/user=anna", [{"role": "user", "content": "I like plums."}])
    asyncio.run(MemoryManager(eunoe_store).forget_user(ANNA))
    assert not memory.list("session=s1/user=anna").items
