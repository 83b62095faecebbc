"""The mixin on the real Agent: the model reads memories, the state does not keep them."""

import asyncio
from typing import Any

import pytest
from tenxgraph.core.state import AgentState
from tests.support.agentflow_graphs import ScriptedModel, graphs, user_message
from tests.support.agentflow_memory import (
    ANNA,
    BrokenStore,
    CountingStore,
    assistant,
    checkpointers,
    compile_chain,
    memory_callbacks,
    user,
)

from eunoe.errors import ScopeError
from eunoe.hosts.agentflow import MemoryAwareMixin, MemoryManager


class MemoryAgent(MemoryAwareMixin, graphs.Agent):  # type: ignore[misc, name-defined]
    """An agent as users write it."""


@pytest.fixture
def store() -> CountingStore:
    store = CountingStore()
    store.store(ANNA, "Anna likes {green} tea")
    store.writes = 0
    return store


def agent(model: ScriptedModel, manager: MemoryManager | None, **options: Any) -> Any:
    made = MemoryAgent(
        model="gpt-4o", provider="openai", api_key="none", retry_config=False, memory_manager=manager, **options
    )
    made.client = model.client
    return made


def sent(model: ScriptedModel) -> str:
    return "\n".join(str(message["content"]) for message in model.requests[-1]["messages"])


def test_the_model_reads_memories_and_the_state_does_not_keep_them(store: CountingStore) -> None:
    model = ScriptedModel(["Green tea."])
    prompt = [{"role": "system", "content": "You are helpful."}]
    checkpointer = checkpointers.InMemoryCheckpointer()
    nodes = {"MAIN": agent(model, MemoryManager(store), system_prompt=prompt)}
    app = compile_chain(nodes, checkpointer=checkpointer)
    asyncio.run(app.ainvoke(user_message("Which tea does Anna like?"), config=dict(ANNA)))
    assert "1. [episodic] Anna likes {green} tea (score 1.00, just now)" in sent(model)
    kept = asyncio.run(checkpointer.aget_state(dict(ANNA)))
    assert kept.context_summary is None
    assert "recalled" not in kept.model_dump_json()


def test_it_works_where_answers_are_streamed(store: CountingStore) -> None:
    async def run() -> None:
        app = compile_chain({"MAIN": agent(model, MemoryManager(store))})
        async for _ in app.astream(user_message("Which tea does Anna like?"), config=dict(ANNA)):
            pass

    model = ScriptedModel(["Green tea."])
    asyncio.run(run())
    assert "Anna likes {green} tea" in sent(model)


def test_agent_and_callbacks_share_one_search(store: CountingStore) -> None:
    manager = MemoryManager(store, dedup_threshold=None)
    model = ScriptedModel(["A draft.", "Green tea."])
    nodes = {"DRAFT": agent(model, manager), "MAIN": agent(model, manager)}
    app = compile_chain(nodes, memory_callbacks(manager, store_nodes=["MAIN"]))
    asyncio.run(app.ainvoke(user_message("Which tea does Anna like?"), config=dict(ANNA)))
    assert len(store.searches) == 1
    assert store.writes == 1


@pytest.mark.parametrize("manager", [None, MemoryManager(), MemoryManager(BrokenStore())])
def test_an_agent_without_a_working_memory_answers(manager: MemoryManager | None) -> None:
    model = ScriptedModel(["Hello."])
    app = compile_chain({"MAIN": agent(model, manager)})
    result = asyncio.run(app.ainvoke(user_message("Hello?"), config=dict(ANNA)))
    assert result["messages"][-1].text() == "Hello."


def test_an_agent_that_is_not_to_recall_by_itself_does_not(store: CountingStore) -> None:
    model = ScriptedModel(["Hello."])
    app = compile_chain({"MAIN": agent(model, MemoryManager(store, auto_retrieve=False))})
    asyncio.run(app.ainvoke(user_message("Which tea does Anna like?"), config=dict(ANNA)))
    assert store.searches == []


def test_the_context_is_a_copy_that_keeps_the_summary(store: CountingStore) -> None:
    own = agent(ScriptedModel([]), MemoryManager(store))
    state = AgentState(context=[user("Which tea does Anna like?")], context_summary="They talked.")
    enhanced, memories = asyncio.run(own.with_memory_context(state, ANNA))
    assert [memory.content for memory in memories] == ["Anna likes {green} tea"]
    assert state.context_summary == "They talked."
    assert enhanced.context_summary.startswith("They talked.\n\n<recalled_memories>")
    assert "Anna likes {green} tea" in enhanced.context_summary.format()
    again, _ = asyncio.run(own.with_memory_context(enhanced, ANNA))
    assert again.context_summary == enhanced.context_summary


@pytest.mark.parametrize("context", [[], [assistant("Hello.")], [user(" ")]])
def test_there_is_no_context_where_nobody_asked(store: CountingStore, context: list[Any]) -> None:
    state = AgentState(context=context)
    own = agent(ScriptedModel([]), MemoryManager(store))
    assert asyncio.run(own.with_memory_context(state, ANNA)) == (state, [])


def test_a_context_of_nobody_is_refused(store: CountingStore) -> None:
    own = agent(ScriptedModel([]), MemoryManager(store))
    with pytest.raises(ScopeError):
        asyncio.run(own.with_memory_context(AgentState(context=[user("tea?")]), {}))


def test_an_interaction_is_stored_under_an_id_that_leads_to_it(store: CountingStore) -> None:
    own = agent(ScriptedModel([]), MemoryManager(store))
    memory_id = asyncio.run(own.store_interaction_memory(AgentState(), ANNA, user("Hello"), assistant("Hi there!")))
    assert store.memories[memory_id].content == "User: Hello\nAssistant: Hi there!"
    assert (
        asyncio.run(agent(ScriptedModel([]), None).store_interaction_memory(AgentState(), ANNA, user("a"), user("b")))
        == ""
    )


def test_an_agent_without_a_manager_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "eunoe"):
        agent(ScriptedModel("Ok."), None)
    assert caplog.text.count("has no memory_manager") == 1
