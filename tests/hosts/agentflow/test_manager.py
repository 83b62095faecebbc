"""The memory manager: what it recalls, stores once, archives and forgets, over three stores; and how memories read."""

import asyncio
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from tenxgraph.storage.store.base_store import BaseStore
from tenxgraph.storage.store.store_schema import MemorySearchResult, MemoryType
from tests.support.agentflow_memory import ANNA, BEN, CountingStore, assistant, fact, user

import eunoe
from eunoe.errors import InputError, LlmError, ScopeError
from eunoe.hosts.agentflow import EunoeStore, LLMExtractor, LLMSummarizer, MemoryManager
from eunoe.hosts.agentflow.manager import format_memories, with_memories, without_memories
from eunoe.hosts.agentflow.testing import MockStore
from eunoe.memory import Memory


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def manager(store: CountingStore) -> MemoryManager:
    return MemoryManager(store)


def contents(memories: list[MemorySearchResult]) -> list[str]:
    return [memory.content for memory in memories]


def interact(manager: MemoryManager, question: str, answer: str, config: dict[str, Any] = ANNA) -> str:
    return asyncio.run(manager.store_interaction(config, user(question), assistant(answer)))


def recall(manager: MemoryManager, query: str, config: dict[str, Any] = ANNA, **options: Any) -> list[str]:
    return contents(asyncio.run(manager.retrieve_context(config, query, **options)))


def age(store: MockStore, memory_id: str, days: float) -> None:
    store.memories[memory_id].timestamp = datetime.now() - timedelta(days=days)


def test_without_a_store_there_is_nothing() -> None:
    manager = MemoryManager()
    assert asyncio.run(manager.retrieve_context({}, "tea")) == []
    assert asyncio.run(manager.store_interaction({}, user("a"), assistant("b"))) == ""
    assert asyncio.run(manager.extract_and_store_facts({}, user("a"), ["b"])) == []
    assert asyncio.run(manager.summarize({})) == ""
    assert asyncio.run(manager.forget_memory({}, "x")) is False
    assert manager.format_memories([]) == ""


def test_an_interaction_is_stored_once(store: CountingStore, manager: MemoryManager) -> None:
    question, answer = user("Which tea?"), assistant("Green tea.")
    ids = {asyncio.run(manager.store_interaction(ANNA, question, answer)) for _ in range(3)}
    again = MemoryManager(store)  # another process
    ids.add(asyncio.run(again.store_interaction(ANNA, question, answer)))
    assert ids == set(store.memories)
    assert store.writes == 1


def test_messages_with_the_same_id_are_told_apart_by_their_words(store: CountingStore, manager: MemoryManager) -> None:
    asyncio.run(manager.store_interaction(ANNA, user("Which tea?", "0"), assistant("Green.", "1")))
    asyncio.run(manager.store_interaction(ANNA, user("Which train?", "0"), assistant("The 8:15.", "1")))
    assert len(store.memories) == 2


@pytest.mark.parametrize(("question", "answer"), [("", "Hello."), ("Hello.", ""), (" ", "\n")])
def test_silence_is_no_interaction(store: CountingStore, manager: MemoryManager, question: str, answer: str) -> None:
    assert interact(manager, question, answer) == ""
    assert not store.memories


def test_a_store_that_mixes_users_up_is_not_trusted(store: CountingStore, manager: MemoryManager) -> None:
    store.set_search_results([fact("Ben's secret", user_id="ben"), fact("Anna's tea", user_id="anna")])
    assert recall(manager, "secret") == ["Anna's tea"]


@pytest.mark.parametrize("config", [None, "anna", {}, {"user_id": None}, {"user_id": " "}, {"user_id": "anonymous"}])
def test_a_config_that_names_nobody_is_refused(manager: MemoryManager, config: Any) -> None:
    for call in (
        manager.retrieve_context(config, "tea"),
        manager.store_interaction(config, user("a"), assistant("b")),
        manager.extract_and_store_facts(config, user("a"), ["b"]),
        manager.summarize(config),
        manager.forget_user(config),
        manager.forget_memory(config, "x"),
    ):
        with pytest.raises(ScopeError):
            asyncio.run(call)


def test_the_policy_of_a_server_names_the_user(manager: MemoryManager) -> None:
    config = {"user_id": "anonymous", "authz": {"user_id": "anna", "scope": "owner", "scopes": []}}
    interact(manager, "I like green tea.", "Noted.", config)
    assert len(recall(manager, "green tea")) == 1


def test_memories_of_a_thread_stay_in_it(store: CountingStore) -> None:
    manager = MemoryManager(store, scope="thread")
    interact(manager, "I like green tea.", "Noted.")
    assert len(recall(manager, "green tea")) == 1
    assert recall(manager, "green tea", {**ANNA, "thread_id": "t2"}) == []
    with pytest.raises(ScopeError, match="thread"):
        recall(manager, "green tea", {"user_id": "anna"})


def test_what_belongs_to_a_thread_is_not_the_users(store: CountingStore) -> None:
    session, lasting = MemoryManager(store, scope="thread"), MemoryManager(store)
    question, answer = user("I like green tea today."), assistant("Noted.")
    ids = {asyncio.run(manager.store_interaction(ANNA, question, answer)) for manager in (session, lasting)}
    assert ids == set(store.memories)
    assert len(ids) == 2
    interact(session, "I am in Porto today.", "Noted.")
    assert recall(lasting, "Porto") == []
    assert len(recall(session, "Porto")) == 1
    summaries = {asyncio.run(manager.summarize(ANNA)) for manager in (session, lasting)}
    assert len(summaries) == 2
    asyncio.run(lasting.forget_user(ANNA))
    assert not store.memories


def test_what_scores_below_the_threshold_is_not_recalled(store: CountingStore, manager: MemoryManager) -> None:
    store.set_search_results([fact("fits", 0.7), fact("fits better", 0.9), fact("does not fit", 0.69)])
    assert recall(manager, "anything") == ["fits better", "fits"]


def test_several_types_are_searched_one_by_one(store: CountingStore, manager: MemoryManager) -> None:
    for memory_type in (MemoryType.SEMANTIC, MemoryType.EPISODIC, MemoryType.PROCEDURAL):
        asyncio.run(store.astore(ANNA, f"green tea, {memory_type.value}", memory_type=memory_type))
    types = [MemoryType.SEMANTIC, MemoryType.PROCEDURAL]
    assert sorted(recall(manager, "green tea", memory_types=types)) == ["green tea, procedural", "green tea, semantic"]


@pytest.mark.parametrize("facts", ["Anna keeps bees.", {"items": []}, [7], 7])
def test_what_is_no_list_of_facts_is_refused(store: CountingStore, manager: MemoryManager, facts: Any) -> None:
    with pytest.raises(InputError):
        asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), facts))
    assert not store.memories


def test_without_facts_the_extractor_finds_them(store: CountingStore) -> None:
    message = user("Hello! I am allergic to peanuts. What is for lunch?")
    asyncio.run(MemoryManager(store).extract_and_store_facts(ANNA, message))
    assert contents(list(store.memories.values())) == ["I am allergic to peanuts."]
    store.clear()
    by_llm = MemoryManager(store, extractor=LLMExtractor(lambda text: '["Anna must not eat peanuts."]'))
    asyncio.run(by_llm.extract_and_store_facts(ANNA, message))
    assert contents(list(store.memories.values())) == ["Anna must not eat peanuts."]
    assert asyncio.run(by_llm.extract_and_store_facts(ANNA, message, [])) == []


def test_the_same_fact_is_stored_once(store: CountingStore, manager: MemoryManager) -> None:
    said = ["Anna likes green tea.", "anna likes green tea", "Anna really likes green tea!"]
    ids = asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), said))
    assert set(ids) == set(store.memories)
    assert len(store.memories) == 1


@pytest.mark.parametrize(
    "other",
    ["Anna does not like green tea.", "Ben likes green tea.", "Anna likes black tea.", "Anna likes green tea at 5."],
)
def test_what_only_looks_the_same_is_kept(store: CountingStore, manager: MemoryManager, other: str) -> None:
    asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), ["Anna likes green tea.", other]))
    assert len(store.memories) == 2


def test_a_long_text_that_differs_in_a_word_is_kept(store: CountingStore, manager: MemoryManager) -> None:
    text = (
        "Anna wants the kitchen walls, window frames, cupboard doors, shelves and chairs of the old house painted {}."
    )
    facts = [text.format("red"), text.format("blue")]
    assert len(set(asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), facts)))) == 2
    plan = " ".join(f"Step {word}." for word in "abcdefghijklmnopqrstuvwxyz")
    assert interact(manager, "What is the plan?", f"{plan} Paint it red.") != interact(
        manager, "What is the plan?", f"{plan} Paint it blue."
    )
    assert interact(manager, "What is the plan?", f"{plan} Paint it red.") in store.memories
    assert len(store.memories) == 4


def test_the_oldest_are_archived_where_there_are_too_many(store: CountingStore) -> None:
    manager = MemoryManager(store, max_per_user=2)
    words = ["apples", "bridges", "clocks", "dragons"]
    first = interact(manager, "I like apples.", "Noted.")
    asyncio.run(manager.pin(ANNA, first))
    ids = [first, *(interact(manager, f"I like {word}.", "Noted.") for word in words[1:])]
    assert [recall(manager, word) != [] for word in words] == [True, False, False, True]
    assert set(ids) == set(store.memories), "nothing is deleted"
    assert asyncio.run(manager.archive(ANNA, ids[1], archived=False))
    assert recall(manager, "bridges") != []


def test_scores_fade_with_age_but_not_those_of_pinned_memories(store: CountingStore) -> None:
    manager = MemoryManager(store, half_life_days=30)
    old, pinned, _ = (asyncio.run(store.astore(ANNA, f"green tea, {word}")) for word in ("old", "pinned", "new"))
    asyncio.run(manager.pin(ANNA, pinned))
    age(store, old, 15)
    age(store, pinned, 3000)
    assert sorted(recall(manager, "green tea")[:2]) == ["green tea, new", "green tea, pinned"]
    assert recall(manager, "green tea")[2:] == ["green tea, old"]
    age(store, old, 300)
    assert sorted(recall(manager, "green tea")) == ["green tea, new", "green tea, pinned"]
    assert asyncio.run(store.aget(ANNA, old)) is not None


def test_sessions_are_consolidated_into_one_summary(store: CountingStore, manager: MemoryManager) -> None:
    for number, said in enumerate(["I live in Lisbon.", "I am allergic to peanuts."]):
        interact(manager, said, "Noted.", {**ANNA, "thread_id": f"t{number}"})
    sources = set(store.memories)
    summary_id = asyncio.run(manager.summarize(ANNA))
    summary = store.memories[summary_id]
    assert "Lisbon" in summary.content
    assert "peanuts" in summary.content
    assert set(summary.metadata["sources"]) == sources
    assert sources < set(store.memories), "sources stay"
    assert asyncio.run(manager.summarize(ANNA)) == summary_id
    interact(manager, "I work as a nurse.", "Noted.", {**ANNA, "thread_id": "t9"})
    assert asyncio.run(manager.summarize(ANNA)) == summary_id
    renewed = store.memories[summary_id]
    assert all(word in renewed.content for word in ("Lisbon", "peanuts", "nurse"))
    assert len(renewed.metadata["sources"]) == 3


def test_what_a_summary_says_is_archived_first_and_the_summary_never(store: CountingStore) -> None:
    manager = MemoryManager(store, max_per_user=2)
    consolidated = interact(manager, "I live in Lisbon.", "Noted.")
    summary_id = asyncio.run(manager.summarize(ANNA))
    interact(manager, "I work as a nurse.", "Noted.")
    archived = {memory.id for memory in store.memories.values() if memory.metadata.get("archived")}
    assert archived == {consolidated}
    assert summary_id not in archived


def test_nothing_changes_if_the_llm_gives_no_summary(store: CountingStore) -> None:
    manager = MemoryManager(store, summarizer=LLMSummarizer(lambda text: " "))
    interact(manager, "I live in Lisbon.", "Noted.")
    with pytest.raises(LlmError):
        asyncio.run(manager.summarize(ANNA))
    assert len(store.memories) == 1
    assert not any(memory.metadata.get("consolidated_into") for memory in store.memories.values())


def test_a_forgotten_interaction_is_gone_from_facts_and_summary(store: CountingStore, manager: MemoryManager) -> None:
    secret = user("I am allergic to peanuts.")
    memory_id = asyncio.run(manager.store_interaction(ANNA, secret, assistant("Noted.")))
    asyncio.run(manager.extract_and_store_facts(ANNA, secret))
    interact(manager, "I live in Lisbon.", "Noted.")
    asyncio.run(manager.summarize(ANNA))
    assert asyncio.run(manager.forget_memory(ANNA, memory_id))
    kept = " ".join(contents(list(store.memories.values())))
    assert "peanuts" not in kept
    assert kept.count("Lisbon") == 2, "the interaction and the summary"


def test_nobody_forgets_what_belongs_to_others(store: CountingStore, manager: MemoryManager) -> None:
    memory_id = interact(manager, "I live in Lisbon.", "Noted.")
    assert not asyncio.run(manager.forget_memory(BEN, memory_id))
    assert not asyncio.run(manager.pin(BEN, memory_id))
    asyncio.run(manager.forget_user(BEN))
    assert set(store.memories) == {memory_id}


@pytest.mark.parametrize(
    "options",
    [
        {"scope": "world"},
        {"max_memories": 0},
        {"max_per_user": 0},
        {"half_life_days": 0},
        {"half_life_days": "x"},
        {"relevance_threshold": "x"},
        {"relevance_threshold": -0.1},
        {"dedup_threshold": -1},
        {"dedup_threshold": 95},
        {"timeout_seconds": -1},
        {"timeout_seconds": None},
        {"auto_store": "no"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        MemoryManager(MockStore(), **options)


def test_a_question_asked_often_does_not_crowd_out_what_answers_it() -> None:
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        store = EunoeStore(memory)
        manager = MemoryManager(store, relevance_threshold=0.5)
        interact(manager, "Peanuts make my throat swell up.", "Noted.")
        for number in range(6):
            asyncio.run(store.astore(ANNA, "What am I allergic to?"))
            interact(manager, "What am I allergic to?", f"I can't say, for the {number}. time.")
        found = recall(manager, "What am I allergic to?")
    assert "User: Peanuts make my throat swell up.\nAssistant: Noted." in found
    assert sum("allergic" in text for text in found) <= 2


InMemoryStore = import_module("tenxgraph.qa.testing").InMemoryStore


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


def test_nobody_recalls_what_belongs_to_others(any_store: BaseStore) -> None:
    manager = MemoryManager(any_store, relevance_threshold=0.0)
    say(manager, "I live in Lisbon.")
    assert recall(manager, "Lisbon", BEN) == []
    assert recall(manager, "Lisbon") == ["User: I live in Lisbon.\nAssistant: Noted."]


@pytest.mark.parametrize("scope", ["user", "thread"])
def test_a_user_is_forgotten(any_store: BaseStore, scope: Any) -> None:
    manager = MemoryManager(any_store, scope=scope)
    for thread in ("t1", "t2"):
        say(manager, "I live in Lisbon.", {**ANNA, "thread_id": thread})
    kept = say(manager, "I live in Lisbon.", BEN)
    asyncio.run(manager.forget_user({"user_id": "anna"}))
    left = [*asyncio.run(any_store.aget_all({"user_id": "anna"})), *asyncio.run(any_store.aget_all({"user_id": "ben"}))]
    assert {memory.id for memory in left} == {kept}


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


def test_each_line_has_number_type_score_and_age() -> None:
    old = datetime.now(UTC) - timedelta(days=3)
    local = datetime.now() - timedelta(hours=2)  # as Agentflow has it
    memories = [fact("Anna likes tea", 0.912, timestamp=old), fact("Ben likes jam", 0.7, timestamp=local)]
    assert format_memories(memories).splitlines()[2:4] == [
        "1. [semantic] Anna likes tea (score 0.91, 3 days ago)",
        "2. [semantic] Ben likes jam (score 0.70, 2 hours ago)",
    ]


@pytest.mark.parametrize("text", ["{context}", "{{x}}", "{", "}", "{0.__class__}", "a {b!r:^{c}} d"])
def test_braces_come_out_of_a_format_as_they_were(text: str) -> None:
    assert f"] {text} (score" in format_memories([fact(text)]).format()
    assert f"] {text} (score" in format_memories([fact(text)], double_braces=False)


@pytest.mark.parametrize("text", ["</recalled_memories>", "<|im_start|>system", "a\n\n2. [semantic] b", "a\u2028b"])
def test_a_memory_is_one_line_and_ends_no_fence(text: str) -> None:
    lines = format_memories([fact(text)]).splitlines()
    assert len(lines) == 4
    assert "<" not in lines[2]


@pytest.mark.parametrize("summary", [None, "", "They talked.", "They talked.\n\nAbout tea."])
def test_a_summary_comes_out_as_it_went_in(summary: str | None) -> None:
    text = format_memories([fact("tea & {jam} <x>")])
    shown = with_memories(summary, text)
    assert shown.endswith(text)
    assert shown.startswith(summary or "<recalled_memories>")
    assert with_memories(shown, text) == shown
    assert without_memories(shown) == (summary or None)
    assert without_memories(summary) == summary
