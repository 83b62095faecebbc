"""The store in real compiled graphs: what the model is shown, what its tools do, whose memory that is."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tenxgraph.core.state import AgentState
from tenxgraph.storage.store.store_schema import MemorySearchResult, MemoryType
from tests.support.agentflow_graphs import (
    InjectQ,
    ScriptedModel,
    graphs,
    scripted_agent,
    stores,
    tool_loop,
    user_message,
)
from tests.support.agentflow_memory import compile_chain

from eunoe.hosts.agentflow import (
    FACT_EXTRACTION_PROMPT,
    EunoeStore,
    configure_memory,
)
from eunoe.memory import Memory

ANNA = {"user_id": "anna", "thread_id": "t1"}
SEMANTIC = {"memory_type": "semantic"}


def contents(results: list[MemorySearchResult]) -> list[str]:
    return [result.content for result in results]


def run(app: Any, *turns: str, config: dict[str, Any] = ANNA) -> list[str]:
    """The last words of each turn. Writes are done when it returns."""

    async def take_turns() -> list[str]:
        answers = []
        for turn in turns:
            result = await app.ainvoke(user_message(turn), config=config)
            answers.append(result["messages"][-1].text())
            await app._task_manager.wait_for_all(
                return_exceptions=True
            )  # closing a graph cancels the writes that still run
        await app.aclose()
        return answers

    return asyncio.run(take_turns())


def with_tools(store: EunoeStore, model: ScriptedModel, **memory: Any) -> Any:
    """An agent that has its memory tools by MemoryConfig."""
    tools = graphs.ToolNode([])
    agent = scripted_agent(model, tool_node=tools, memory=stores.MemoryConfig(store=store, **memory))
    return tool_loop(agent, tools, store)


def with_integration(store: EunoeStore, model: ScriptedModel, mode: str = "postload") -> Any:
    """An agent that has the memory tool by MemoryIntegration."""
    integration = stores.MemoryIntegration(store=store, retrieval_mode=mode)
    tools = graphs.ToolNode(integration.tools)
    prompt = [{"role": "system", "content": integration.system_prompt}]
    return tool_loop(scripted_agent(model, tool_node=tools, system_prompt=prompt), tools, store, integration)


def test_an_agent_remembers_and_finds_again_in_another_thread(store: EunoeStore) -> None:
    call = {"tool": "user_memory_tool", "action": "remember", "text": "Anna is allergic to peanuts."}
    run(with_tools(store, ScriptedModel([call, "Noted."])), "I am allergic to peanuts.")
    (kept,) = store.get_all(ANNA)
    assert kept.content == "Anna is allergic to peanuts."
    assert kept.metadata == {"source": "user_memory_tool", "scope": "user", "category": "general"}
    model = ScriptedModel([{"tool": "user_memory_tool", "action": "search", "text": "allergic"}, "No peanuts."])
    answers = run(with_tools(store, model), "What must I not eat?", config={**ANNA, "thread_id": "t2"})
    assert answers == ["No peanuts."]
    (told,) = json.loads(model.tool_text)
    assert (told["id"], told["content"]) == (kept.id, kept.content)


def test_two_facts_of_the_same_form_are_both_kept_and_the_same_one_once(store: EunoeStore) -> None:
    texts = ["The user's name is Anna.", "The user's name is Ben.", "The user's name is Anna."]
    replies = [each for text in texts for each in ({"tool": "memory_tool", "action": "store", "content": text}, "Ok.")]
    run(with_integration(store, ScriptedModel(replies)), *texts)
    assert contents(store.get_all(ANNA)) == texts[:2]


def test_a_memory_key_is_updated_and_a_memory_deleted_by_the_tool(store: EunoeStore) -> None:
    def kept(text: str) -> dict[str, Any]:
        return {"tool": "memory_tool", "action": "store", "content": text, "memory_key": "home", **SEMANTIC}

    model = ScriptedModel([kept("Anna lives in Paris."), "Ok.", kept("Anna lives in Rome."), "Ok."])
    run(with_integration(store, model), "I live in Paris.", "I moved to Rome.")
    (home,) = store.get_all(ANNA)
    assert (home.content, home.memory_type) == ("Anna lives in Rome.", MemoryType.SEMANTIC)
    change = {"tool": "memory_tool", "action": "update", "memory_id": home.id, "metadata": {"sure": True}}
    model = ScriptedModel([{**change, "content": "Anna lives in Turin."}, "Ok."])
    run(with_integration(store, model), "I mean Turin.")
    (home,) = store.get_all(ANNA)
    assert (home.content, home.metadata["memory_key"], home.metadata["sure"]) == ("Anna lives in Turin.", "home", True)
    model = ScriptedModel([{**change, "content": "Anna lives in Bari.", "write_mode": "replace"}, "Ok."])
    run(with_integration(store, model), "I mean Bari.")
    assert store.get_all(ANNA)[0].metadata == {"sure": True, "category": "general"}
    model = ScriptedModel([{"tool": "memory_tool", "action": "delete", "memory_id": home.id}, "Ok."])
    run(with_integration(store, model), "Forget that.")
    assert store.get_all(ANNA) == []


@pytest.mark.parametrize("mode", ["agent", "integration"])
def test_what_is_known_stands_before_the_model_with_braces_as_they_are(store: EunoeStore, mode: str) -> None:
    # `{context.x}` would end the run, `{context_summary}` would be expanded, a single brace cannot be read.
    hostile = "Tea: {context.x} {context_summary} {0} {{x}} } {"
    store.store({"user_id": "anna"}, hostile)
    store.store({"user_id": "ben"}, "Ben's tea is a secret.")
    model = ScriptedModel(["Tea it is.", "Tea again."])
    if mode == "agent":
        config = stores.MemoryConfig(store=store, retrieval_mode="preload")
        app = tool_loop(scripted_agent(model, memory=config), graphs.ToolNode([]), store)
    else:
        app = with_integration(store, model, "preload")
    assert run(app, "Which tea?", "Which tea was it?") == ["Tea it is.", "Tea again."]
    for request in model.requests:
        text = json.dumps([each["content"] for each in request["messages"]])
        assert f"- {hostile} (relevance" in text
        assert "Ben" not in text
    assert store.search(ANNA, "Tea")[0].content == hostile


def test_the_memory_of_an_agent_is_shared_read_only_and_apart_from_its_users(store: EunoeStore) -> None:
    store.store({"user_id": "anna"}, "Anna's secret recipe.")
    store.store({"agent_id": "cook"}, "The house recipe is soup.")
    store.store({"agent_id": "waiter"}, "The waiter's recipe.")
    for name in ("anna", "ben"):
        model = ScriptedModel([{"tool": "agent_memory_tool", "query": "recipe"}, "Soup."])
        agent_memory = stores.AgentMemoryConfig(enabled=True, agent_id="cook")
        run(with_tools(store, model, agent_memory=agent_memory), "A recipe?", config={**ANNA, "user_id": name})
        assert [each["content"] for each in json.loads(model.tool_text)] == ["The house recipe is soup."]
    model = ScriptedModel(["Soup."])
    config = stores.MemoryConfig(store=store, retrieval_mode="preload", agent_memory=agent_memory)
    run(tool_loop(scripted_agent(model, memory=config), graphs.ToolNode([]), store), "A recipe?")
    assert "Agent memory:\n- The house recipe is soup." in model.system_text
    assert "User memory:\n- Anna's secret recipe." in model.system_text
    assert "waiter" not in model.system_text


@pytest.mark.parametrize("config", [{"thread_id": "t1"}, {"thread_id": "t1", "agent_id": "cook"}])
def test_a_run_without_a_user_reads_and_writes_nobodys_memory(store: EunoeStore, config: dict[str, Any]) -> None:
    store.store({"user_id": "anna"}, "Anna's secret.")
    search = {"tool": "user_memory_tool", "action": "search", "text": "secret"}
    remember = {"tool": "user_memory_tool", "action": "remember", "text": "A secret of somebody."}
    model = ScriptedModel([search, remember, "I cannot know."])
    assert run(with_tools(store, model), "What is the secret?", config=config) == ["I cannot know."]
    searched = [each["content"] for each in model.requests[1]["messages"] if each["role"] == "tool"]
    assert "no user_id" in json.loads(searched[0])["error"]
    assert store.memory.scopes() == store.memory.scopes(user="anna")
    assert contents(store.get_all({"user_id": "anna"})) == ["Anna's secret."]


FACT = "Anna is allergic to peanuts."


async def complete(model: ScriptedModel, messages: list[dict[str, Any]]) -> Any:
    return await model.client.chat.completions.create(model="gpt-4o", messages=messages)  # type: ignore[call-overload]


def ask(app: Any, text: str) -> str:
    result = asyncio.run(app.ainvoke(user_message(text), config=dict(ANNA)))
    answer: str = result["messages"][-1].text()
    return answer


def test_an_agent_that_keeps_facts(memory: Memory) -> None:
    container, store = InjectQ(), EunoeStore(memory)
    manager = configure_memory(container, store)
    model = ScriptedModel([json.dumps({"facts": [FACT, "Anna lives in Lisbon."]})])

    async def answer(state: AgentState, config: dict[str, Any]) -> str:
        return "Noted."

    async def extract_facts_agent(state: AgentState, config: dict[str, Any]) -> AgentState:
        conversation = "\n".join(f"{message.role}: {message.text()}" for message in state.context[-4:])
        prompt = FACT_EXTRACTION_PROMPT.replace("{conversation}", conversation)
        response = await complete(model, [{"role": "user", "content": prompt}])
        facts = json.loads(response.choices[0].message.content)
        await manager.extract_and_store_facts(config=config, message=state.context[-1], facts=facts)
        return state

    ask(
        compile_chain({"MAIN": answer, "FACTS": extract_facts_agent}, container=container), "I live in Lisbon, {and}..."
    )
    assert "user: I live in Lisbon, {and}...\nassistant: Noted." in model.requests[0]["messages"][0]["content"]
    recalled = asyncio.run(manager.retrieve_context(ANNA, "What is Anna allergic to?"))
    assert recalled[0].content == FACT
    assert recalled[0].memory_type == MemoryType.SEMANTIC
