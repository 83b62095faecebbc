"""Three agents as users write them: one that recalls by itself, one that callbacks serve, one that keeps facts."""

import asyncio
import json
from typing import Any

from tenxgraph.core.state import AgentState, Message
from tenxgraph.runtime.adapters.llm.model_response_converter import ModelResponseConverter
from tenxgraph.storage.store.store_schema import MemoryType
from tenxgraph.utils.callbacks import CallbackManager
from tests.support.agentflow_graphs import InjectQ, ScriptedModel, user_message
from tests.support.agentflow_memory import compile_chain, convert_messages, user

from eunoe.hosts.agentflow import (
    FACT_EXTRACTION_PROMPT,
    EunoeStore,
    MemoryRetrievalCallback,
    MemoryStorageCallback,
    configure_memory,
)
from eunoe.memory import Memory

ANNA = {"user_id": "anna", "thread_id": "t1"}
FACT = "Anna is allergic to peanuts."


async def complete(model: ScriptedModel, messages: list[dict[str, Any]]) -> Any:
    return await model.client.chat.completions.create(model="gpt-4o", messages=messages)  # type: ignore[call-overload]


def run(app: Any, text: str) -> str:
    result = asyncio.run(app.ainvoke(user_message(text), config=dict(ANNA)))
    answer: str = result["messages"][-1].text()
    return answer


def test_an_agent_that_uses_its_memory_itself(memory: Memory) -> None:
    container, store = InjectQ(), EunoeStore(memory)
    manager = configure_memory(container, store)
    asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), [FACT]))
    model = ScriptedModel(["You must not eat peanuts."])

    async def memory_aware_agent(state: AgentState, config: dict[str, Any]) -> Message:
        memories = await manager.retrieve_context(config, state.context[-1].text())
        prompt = f"You are helpful. Context from memory:\n{manager.format_memories(memories)}"
        messages = convert_messages(system_prompts=[{"role": "system", "content": prompt}], state=state)
        answer = await ModelResponseConverter(await complete(model, messages), converter="openai").invoke()
        await manager.store_interaction(config, state.context[-1], answer)
        return answer

    app = compile_chain({"MAIN": memory_aware_agent}, container=container)
    assert run(app, "What is Anna allergic to?") == "You must not eat peanuts."
    assert f"[semantic] {FACT} (score" in model.system_text
    stored = asyncio.run(store.aget_all(ANNA))
    assert stored[-1].content == "User: What is Anna allergic to?\nAssistant: You must not eat peanuts."


def test_an_agent_that_callbacks_serve(memory: Memory) -> None:
    container, store = InjectQ(), EunoeStore(memory)
    manager = configure_memory(container, store)
    asyncio.run(manager.extract_and_store_facts(ANNA, user("x"), [FACT]))
    model = ScriptedModel(["You must not eat peanuts."])
    callbacks = CallbackManager()
    MemoryRetrievalCallback(manager).register(callbacks)
    MemoryStorageCallback(manager, store_nodes=["MAIN"]).register(callbacks)

    async def simple_agent(state: AgentState, config: dict[str, Any]) -> ModelResponseConverter:
        prompt = f"You are helpful. {state.context_summary or ''}"
        messages = convert_messages(system_prompts=[{"role": "system", "content": prompt}], state=state)
        return ModelResponseConverter(await complete(model, messages), converter="openai")

    app = compile_chain({"MAIN": simple_agent}, callbacks, container=container)
    assert run(app, "What is Anna allergic to?") == "You must not eat peanuts."
    assert f"[semantic] {FACT} (score" in model.system_text
    [stored] = [memory for memory in asyncio.run(store.aget_all(ANNA)) if memory.memory_type == MemoryType.EPISODIC]
    assert stored.content == "User: What is Anna allergic to?\nAssistant: You must not eat peanuts."


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

    run(
        compile_chain({"MAIN": answer, "FACTS": extract_facts_agent}, container=container), "I live in Lisbon, {and}..."
    )
    assert "user: I live in Lisbon, {and}...\nassistant: Noted." in model.requests[0]["messages"][0]["content"]
    recalled = asyncio.run(manager.retrieve_context(ANNA, "What is Anna allergic to?"))
    assert recalled[0].content == FACT
    assert recalled[0].memory_type == MemoryType.SEMANTIC
