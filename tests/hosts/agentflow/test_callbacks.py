"""Callbacks and mixin in real graphs: nodes see memories, checkpoints do not, each interaction is stored once."""

import asyncio
import logging
from typing import Any

import pytest
from tenxgraph.core.state import AgentState
from tenxgraph.storage.store.base_store import BaseStore
from tenxgraph.utils.callbacks import CallbackManager, InvocationType
from tenxgraph.utils.command import Command
from tests.support.agentflow_graphs import END, InjectQ, ScriptedModel, graphs, scripted_agent, user_message
from tests.support.agentflow_memory import (
    ANNA,
    BrokenStore,
    CountingStore,
    HangingStore,
    answering,
    assistant,
    checkpointers,
    compile_chain,
    convert_messages,
    fact,
    memory_callbacks,
    user,
)

from eunoe.hosts.agentflow import (
    MemoryAwareMixin,
    MemoryManager,
    MemoryRetrievalCallback,
    MemoryStorageCallback,
    configure_memory,
)
from eunoe.hosts.agentflow.manager import format_memories
from eunoe.hosts.agentflow.testing import MockStore

TALKED = AgentState(context_summary="They talked about tea.")


class Notes(AgentState):
    """A state with a field of the application."""

    mood: str = "calm"


@pytest.fixture
def store() -> CountingStore:
    store = CountingStore()
    store.store(ANNA, "Anna likes green tea")
    store.writes = 0
    return store


def ask(app: Any, text: str = "Which tea does Anna like?", config: dict[str, Any] = ANNA) -> dict[str, Any]:
    result: dict[str, Any] = asyncio.run(app.ainvoke(user_message(text), config=dict(config)))
    return result


async def stream(app: Any, text: str, config: dict[str, Any] = ANNA) -> list[Any]:
    return [chunk async for chunk in app.astream(user_message(text), config={**config, "is_stream": True})]


def test_a_node_sees_memories_and_the_checkpoint_does_not(store: CountingStore) -> None:
    seen: list[AgentState] = []
    checkpointer = checkpointers.InMemoryCheckpointer()
    callbacks = memory_callbacks(MemoryManager(store))
    app = compile_chain({"MAIN": answering("Green tea.", seen)}, callbacks, state=TALKED, checkpointer=checkpointer)
    ask(app)
    summary = seen[0].context_summary or ""
    assert summary.startswith("They talked about tea.\n\n<recalled_memories>")
    assert "1. [episodic] Anna likes green tea (score 1.00, just now)" in summary
    kept = asyncio.run(checkpointer.aget_state(dict(ANNA)))
    assert kept.context_summary == "They talked about tea."
    assert [message.text() for message in kept.context] == ["Which tea does Anna like?", "Green tea."]


def test_all_nodes_of_a_turn_share_one_search(store: CountingStore) -> None:
    seen: list[AgentState] = []
    nodes = {name: answering(f"{name} is done", seen) for name in ("PLAN", "MAIN", "CHECK")}
    checkpointer = checkpointers.InMemoryCheckpointer()
    app = compile_chain(nodes, memory_callbacks(MemoryManager(store, auto_store=False)), checkpointer=checkpointer)
    ask(app)
    assert store.searches == ["Which tea does Anna like?"]
    assert [(state.context_summary or "").count("<recalled_memories>") for state in seen] == [1, 1, 1]
    ask(app, "Does Anna like green tea?")
    assert len(store.searches) == 2


def return_state(state: AgentState, config: dict[str, Any]) -> AgentState:
    state.context = [*state.context, assistant("Green tea.")]
    return state


def return_copy(state: AgentState, config: dict[str, Any]) -> AgentState:
    return state.model_copy(deep=True, update={"context": [*state.context, assistant("Green tea.")]})


def return_command(state: AgentState, config: dict[str, Any]) -> Any:
    return Command(update=return_state(state, config), goto=END)


@pytest.mark.parametrize("node", [return_state, return_copy, return_command])
def test_a_node_that_returns_its_state_keeps_no_memories_in_it(store: CountingStore, node: Any) -> None:
    checkpointer = checkpointers.InMemoryCheckpointer()
    callbacks = memory_callbacks(MemoryManager(store))
    ask(compile_chain({"MAIN": node}, callbacks, state=TALKED, checkpointer=checkpointer))
    kept = asyncio.run(checkpointer.aget_state(dict(ANNA)))
    assert kept.context_summary == "They talked about tea."
    assert kept.context[-1].text() == "Green tea."


@pytest.mark.parametrize("node", [return_state, return_copy, return_command, answering("Green tea.")])
@pytest.mark.parametrize("has_memories", [True, False])
def test_a_summary_that_looks_like_memories_is_kept(store: CountingStore, node: Any, has_memories: bool) -> None:
    block = format_memories([fact("a thing")])
    summary = f"They quoted <recalled_memories>a tag</recalled_memories> and this:\n\n{block}"
    checkpointer = checkpointers.InMemoryCheckpointer()
    callbacks = memory_callbacks(MemoryManager(store if has_memories else CountingStore()))
    state = AgentState(context_summary=summary)
    ask(compile_chain({"MAIN": node}, callbacks, state=state, checkpointer=checkpointer))
    assert asyncio.run(checkpointer.aget_state(dict(ANNA))).context_summary == summary


def test_what_a_node_changes_in_its_state_is_kept(store: CountingStore) -> None:
    async def node(state: Notes, config: dict[str, Any]) -> str:
        state.mood = "merry"
        state.context_summary = f"Now merry. {state.context_summary}"
        return "Green tea."

    checkpointer = checkpointers.InMemoryCheckpointer()
    callbacks = memory_callbacks(MemoryManager(store))
    ask(compile_chain({"MAIN": node}, callbacks, state=Notes(), checkpointer=checkpointer))
    kept = asyncio.run(checkpointer.aget_state(dict(ANNA)))
    assert (kept.mood, kept.context_summary) == ("merry", "Now merry.")


def test_braces_in_memories_are_inert(store: CountingStore) -> None:
    sent: list[dict[str, Any]] = []
    store.store(ANNA, "Anna likes green {context_summary} tea {context[0]} } {")

    async def node(state: AgentState, config: dict[str, Any]) -> str:
        prompt = {"role": "system", "content": f"You are helpful. {state.context_summary}"}
        sent.extend(convert_messages(system_prompts=[prompt], state=state))
        return "Green tea."

    ask(compile_chain({"MAIN": node}, memory_callbacks(MemoryManager(store))))
    assert "Anna likes green {context_summary} tea {context[0]} } { (score" in sent[0]["content"]
    assert sent[0]["content"].count("Relevant memories") == 1


@pytest.mark.parametrize("store", [BrokenStore(), HangingStore()])
def test_a_store_that_fails_or_hangs_does_not_end_the_run(store: MockStore, caplog: pytest.LogCaptureFixture) -> None:
    manager = MemoryManager(store, timeout_seconds=0.05)
    seen: list[AgentState] = []
    with caplog.at_level(logging.WARNING, "eunoe"):
        result = ask(compile_chain({"MAIN": answering("Hello.", seen)}, memory_callbacks(manager)))
    assert result["messages"][-1].text() == "Hello."
    assert seen[0].context_summary is None
    assert [record.getMessage().split(":")[0] for record in caplog.records if record.name == "eunoe"] == [
        "no memories for this turn",
        "an interaction could not be stored",
    ]


def test_a_store_that_hangs_is_waited_for_once_in_a_run() -> None:
    store = HangingStore()
    nodes = {name: answering(f"{name} is done.") for name in ("PLAN", "MAIN", "CHECK")}
    app = compile_chain(nodes, memory_callbacks(MemoryManager(store, timeout_seconds=0.05, auto_retrieve=False)))
    ask(app)
    assert store.calls == 1
    ask(app, "And Ben?")
    assert store.calls == 2


def test_a_run_without_a_user_goes_on_without_memory(store: CountingStore) -> None:
    seen: list[AgentState] = []
    result = ask(compile_chain({"MAIN": answering("Hello.", seen)}, memory_callbacks(MemoryManager(store))), config={})
    assert result["messages"][-1].text() == "Hello."
    assert seen[0].context_summary is None
    assert store.writes == 0


def test_what_is_not_automatic_is_left_to_the_nodes(store: CountingStore) -> None:
    seen: list[AgentState] = []
    manager = MemoryManager(store, auto_retrieve=False, auto_store=False)
    ask(compile_chain({"MAIN": answering("Hello.", seen)}, memory_callbacks(manager)))
    assert (seen[0].context_summary, store.searches, store.writes) == (None, [], 0)


def test_an_interaction_of_several_nodes_is_stored_once_with_the_last_answer(store: CountingStore) -> None:
    nodes = {"DRAFT": answering("A draft."), "MAIN": answering("Green tea.")}
    ask(compile_chain(nodes, memory_callbacks(MemoryManager(store))))
    assert store.writes == 1
    assert list(store.memories.values())[-1].content.endswith("Assistant: Green tea.")


def test_only_answers_of_the_nodes_that_were_named_are_stored(store: CountingStore) -> None:
    nodes = {"MAIN": answering("Green tea."), "LOG": answering("Logged.")}
    ask(compile_chain(nodes, memory_callbacks(MemoryManager(store), store_nodes=["MAIN"])))
    assert list(store.memories.values())[-1].content.endswith("Assistant: Green tea.")
    assert store.writes == 1


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_loop_of_tools_is_stored_once(store: CountingStore, is_stream: bool) -> None:
    def weather(city: str) -> str:
        return f"It rains in {city}."

    model = ScriptedModel(
        [{"tool": "weather", "city": "Lisbon"}, {"tool": "weather", "city": "Porto"}, "Rain in both."]
    )
    tools = graphs.ToolNode([weather])
    callbacks = memory_callbacks(MemoryManager(store))
    app = _with_callbacks(scripted_agent(model, tool_node=tools), tools, callbacks)
    asyncio.run(stream(app, "Does it rain?")) if is_stream else ask(app, "Does it rain?")
    assert store.writes == 1
    assert list(store.memories.values())[-1].content == "User: Does it rain?\nAssistant: Rain in both."


def _with_callbacks(agent: Any, tools: Any, callbacks: CallbackManager) -> Any:
    graph = graphs.StateGraph(container=InjectQ())
    graph.add_node("MAIN", agent)
    graph.add_node("TOOL", tools)
    graph.add_edge("TOOL", "MAIN")
    choose = {"TOOL": "TOOL", END: END}
    graph.add_conditional_edges("MAIN", lambda state: "TOOL" if state.context[-1].tools_calls else END, choose)
    graph.set_entry_point("MAIN")
    return graph.compile(callback_manager=callbacks)


def test_a_new_question_is_not_paired_with_an_old_answer(store: CountingStore) -> None:
    async def silent(state: AgentState, config: dict[str, Any]) -> list[Any]:
        return []

    checkpointer = checkpointers.InMemoryCheckpointer()
    callbacks = memory_callbacks(MemoryManager(store))
    ask(compile_chain({"MAIN": answering("Green tea.")}, callbacks, checkpointer=checkpointer))
    ask(compile_chain({"MAIN": silent}, callbacks, checkpointer=checkpointer), "And Ben?")
    assert store.writes == 1


def test_runs_at_once_stay_apart() -> None:
    store = CountingStore()
    users = [f"user{number}" for number in range(30)]
    for name in users:
        store.store({"user_id": name}, f"The tea of {name} is {name} tea")
    seen: dict[str, str] = {}

    async def node(state: AgentState, config: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        seen[config["user_id"]] = state.context_summary or ""
        return f"Tea for {config['user_id']}."

    app = compile_chain({"MAIN": node}, memory_callbacks(MemoryManager(store)))

    async def run_all() -> None:
        configs = [{"user_id": name, "thread_id": name} for name in users]
        await asyncio.gather(*(app.ainvoke(user_message("Which tea?"), config=config) for config in configs))

    asyncio.run(run_all())
    assert all(f"is {name} tea" in seen[name] and seen[name].count("The tea of") == 1 for name in users)
    stored = [memory for memory in store.memories.values() if "Assistant" in memory.content]
    assert len(stored) == len(users)
    assert all(f"for {memory.user_id}." in memory.content for memory in stored)


@pytest.mark.parametrize("answer", ["text", "message", "list", "state"])
def test_as_plain_callbacks_they_work_too(store: CountingStore, answer: str) -> None:
    async def node(state: AgentState, config: dict[str, Any]) -> Any:
        message = assistant("Green tea.")
        outputs = {"text": "Green tea.", "message": message, "list": [message]}
        return outputs[answer] if answer in outputs else return_state(state, config)

    callbacks = CallbackManager()
    manager = MemoryManager(store)
    callbacks.register_before_invoke(InvocationType.AI, MemoryRetrievalCallback(manager))
    callbacks.register_after_invoke(InvocationType.AI, MemoryStorageCallback(manager, store_nodes=["MAIN"]))
    result = ask(compile_chain({"MAIN": node}, callbacks))
    memory = list(store.memories.values())[-1]
    assert memory.content.endswith("Assistant: Green tea.")
    assert memory.metadata["assistant_message_id"] == result["messages"][-1].message_id


def test_the_manager_and_its_store_are_in_the_container() -> None:
    container, store = InjectQ(), CountingStore()
    manager = configure_memory(container, store, relevance_threshold=0.5, max_memories=3, scope="thread")
    assert container.get(MemoryManager) is manager
    assert container.get(BaseStore) is store
    assert (manager.store, manager.relevance_threshold, manager.max_memories) == (store, 0.5, 3)
    assert manager.scope == "thread"


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


class MemoryAgent(MemoryAwareMixin, graphs.Agent):  # type: ignore[misc, name-defined]
    """An agent as users write it."""


@pytest.fixture
def braced() -> CountingStore:
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


def test_the_model_reads_memories_and_the_state_does_not_keep_them(braced: CountingStore) -> None:
    model = ScriptedModel(["Green tea."])
    prompt = [{"role": "system", "content": "You are helpful."}]
    checkpointer = checkpointers.InMemoryCheckpointer()
    nodes = {"MAIN": agent(model, MemoryManager(braced), system_prompt=prompt)}
    app = compile_chain(nodes, checkpointer=checkpointer)
    asyncio.run(app.ainvoke(user_message("Which tea does Anna like?"), config=dict(ANNA)))
    assert "1. [episodic] Anna likes {green} tea (score 1.00, just now)" in sent(model)
    kept = asyncio.run(checkpointer.aget_state(dict(ANNA)))
    assert kept.context_summary is None
    assert "recalled" not in kept.model_dump_json()


@pytest.mark.parametrize("manager", [None, MemoryManager(), MemoryManager(BrokenStore())])
def test_an_agent_without_a_working_memory_answers(manager: MemoryManager | None) -> None:
    model = ScriptedModel(["Hello."])
    app = compile_chain({"MAIN": agent(model, manager)})
    result = asyncio.run(app.ainvoke(user_message("Hello?"), config=dict(ANNA)))
    assert result["messages"][-1].text() == "Hello."


def test_the_context_is_a_copy_that_keeps_the_summary(braced: CountingStore) -> None:
    own = agent(ScriptedModel([]), MemoryManager(braced))
    state = AgentState(context=[user("Which tea does Anna like?")], context_summary="They talked.")
    enhanced, memories = asyncio.run(own.with_memory_context(state, ANNA))
    assert [memory.content for memory in memories] == ["Anna likes {green} tea"]
    assert state.context_summary == "They talked."
    assert enhanced.context_summary.startswith("They talked.\n\n<recalled_memories>")
    assert "Anna likes {green} tea" in enhanced.context_summary.format()
    again, _ = asyncio.run(own.with_memory_context(enhanced, ANNA))
    assert again.context_summary == enhanced.context_summary
