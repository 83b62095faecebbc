"""Memory in one stack with the middleware of LangChain and Deep Agents."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
)
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import BaseModel
from tests.hosts.langchain.conftest import ANNA, human, recalled, said
from tests.support.chat_models import ScriptedModel, tool_call

from eunoe.hosts.langchain import MemoryMiddleware
from eunoe.memory import Memory

THREAD: Any = {"configurable": {"thread_id": "t1"}}
SCOPE = "thread=t1/user=anna"
FACT = "Anna is allergic to peanuts."


class Menu(BaseModel):
    dish: str


def make_stack(memory: Memory, place: int) -> list[AgentMiddleware[Any, Any, Any]]:
    others: list[AgentMiddleware[Any, Any, Any]] = [
        TodoListMiddleware(),
        SummarizationMiddleware(ScriptedModel("A talk of food."), trigger=("messages", 12), keep=("messages", 4)),
        ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False),
        ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False),
        PatchToolCallsMiddleware(),
    ]
    return [*others[:place], MemoryMiddleware(memory), *others[place:]]


@pytest.mark.parametrize("place", [0, 3, 5])
@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_with_todos_summaries_retries_patches_checkpoints_streams_and_structure(
    place: int, is_async: bool, memory: Memory
) -> None:
    failures = iter([RuntimeError("flaky")])

    @tool
    def oven(dish: str) -> str:
        """Ask the oven."""
        for failure in failures:
            raise failure
        return f"{dish} is ready"

    memory.remember("user=anna", FACT)
    model = ScriptedModel(
        ConnectionError("provider down"),
        tool_call("write_todos", todos=[{"content": "cook", "status": "pending"}], id="1"),
        tool_call("oven", "Asking the oven.", dish="rice", id="2"),
        tool_call("store_memory", content="Anna gets rice.", id="3"),
        tool_call("Menu", dish="rice", id="4"),
    )
    agent = create_agent(
        model, [oven], middleware=make_stack(memory, place), response_format=Menu, checkpointer=InMemorySaver()
    )

    async def stream() -> list[Any]:
        return [chunk async for chunk in agent.astream(human("Cook for me."), THREAD, stream_mode="values")]

    chunks = (
        asyncio.run(stream()) if is_async else list(agent.stream(human("Cook for me."), THREAD, stream_mode="values"))
    )
    assert chunks[-1]["structured_response"] == Menu(dish="rice")
    assert "rice is ready" in str(chunks[-1]["messages"])
    assert all(len(recalled(request)) == 1 for request in model.requests)
    assert [item.text for item in memory.list("user=anna", exact=True).items] == [FACT, "Anna gets rice."]
    assert said(memory, SCOPE) == ["user: Cook for me.", "assistant: Asking the oven."]


def test_a_call_without_a_result_is_patched_before_memory_stands_beside_it(memory: Memory) -> None:
    memory.remember("user=anna", FACT)
    model = ScriptedModel("No peanuts.")
    agent = create_agent(model, middleware=[PatchToolCallsMiddleware(), MemoryMiddleware(memory)])
    history = [HumanMessage("Hi"), tool_call("store_memory", content="x"), HumanMessage("What must I not eat?")]
    agent.invoke({"messages": history, **ANNA})
    assert [message.type for message in model.requests[0]] == ["human", "ai", "tool", "human", "human"]
    assert recalled(model.requests[0])


def test_a_long_thread_under_summaries_in_a_sqlite_checkpointer(memory: Memory, tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        model = ScriptedModel(*(f"Answer {number}." for number in range(10)))
        agent = create_agent(model, middleware=make_stack(memory, 5), checkpointer=saver)
        for number in range(10):
            state = agent.invoke(human(f"Question {number}."), THREAD)
    assert len(state["messages"]) < 14
    expected = [line for number in range(10) for line in (f"user: Question {number}.", f"assistant: Answer {number}.")]
    assert said(memory, SCOPE) == expected


@pytest.mark.parametrize("question", [("user", "Write a menu for me."), HumanMessage("Write a menu for me.")])
def test_inside_a_deep_agent_beside_its_own_memory(question: Any, memory: Memory) -> None:
    memory.remember("user=anna", FACT)
    page = "# Menu\nRice with herbs."
    model = ScriptedModel(
        tool_call("write_file", file_path="/menu.md", content=page, id="1"),
        tool_call("store_memory", page, content="Anna gets rice.", id="2"),
        "Stored.",
        "Enjoy.",
    )
    agent = create_deep_agent(
        model, middleware=[MemoryMiddleware(memory)], memory=["/AGENTS.md"], checkpointer=InMemorySaver()
    )
    state = agent.invoke({"messages": [question], **ANNA}, THREAD)
    assert state["messages"][-1].text == page
    assert all(len(recalled(request)) == 1 for request in model.requests)
    assert said(memory, SCOPE) == ["user: Write a menu for me.", f"assistant: {page}"]
    assert [item.text for item in memory.list("user=anna", exact=True).items] == [FACT, "Anna gets rice."]
    agent.invoke({"messages": [("user", "Thanks.")], **ANNA}, THREAD)
    assert len(said(memory, SCOPE)) == 4


def test_subagents_with_memory_may_end_at_once(memory: Memory) -> None:
    def task(name: str) -> dict[str, Any]:
        return {"name": "task", "args": {"description": f"Go to {name}.", "subagent_type": "scout"}, "id": name}

    scout: Any = {
        "name": "scout",
        "description": "Looks around.",
        "system_prompt": "Look.",
        "model": ScriptedModel("Nothing here."),
        "middleware": [MemoryMiddleware(memory)],
    }
    main = ScriptedModel(AIMessage("", tool_calls=[task("hill"), task("lake")]), "Both are empty.")
    agent = create_deep_agent(main, subagents=[scout], middleware=[MemoryMiddleware(memory)])
    state = agent.invoke(human("Look around."))
    assert state["messages"][-1].text == "Both are empty."
    assert {"user: Go to hill.", "user: Go to lake.", "user: Look around."} <= set(said(memory))
