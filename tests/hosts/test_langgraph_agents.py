"""The store inside real graphs: LangGraph's own, LangMem's tools, deepagents' files."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any, TypedDict

import pytest
from deepagents import create_deep_agent
from deepagents.backends import StoreBackend
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_store
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime

from eunoe.hosts.langgraph import EunoeStore

with warnings.catch_warnings():  # it imports from where LangGraph has deprecated it
    warnings.simplefilter("ignore", DeprecationWarning)
    from langmem import create_manage_memory_tool, create_search_memory_tool


class Script(GenericFakeChatModel):
    """A chat model that says what it is told to."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def call(name, **arguments):
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def scripted(*messages):
    return Script(messages=iter(messages))


@pytest.fixture
def store(memory):
    return EunoeStore(memory, scope="agent=cook")


class State(TypedDict):
    user: str
    seen: list[str]


def test_nodes_of_a_compiled_graph_share_the_store(store):
    def write(state: State, runtime: Runtime) -> dict[str, Any]:
        runtime.store.put(("users", state["user"]), "name", {"text": f"I am {state['user']}."})
        return {}

    def read(state: State) -> dict[str, Any]:
        return {"seen": [item.value["text"] for item in get_store().search(("users", state["user"]))]}

    async def aread(state: State, runtime: Runtime) -> dict[str, Any]:
        return {"seen": [item.value["text"] for item in await runtime.store.asearch(("users",))]}

    graph = StateGraph(State).add_node(write).add_node(read).add_edge("write", "read").set_entry_point("write")
    assert graph.compile(store=store).invoke({"user": "anna"})["seen"] == ["I am anna."]
    awaited = StateGraph(State).add_node(write).add_node(aread).add_edge("write", "aread").set_entry_point("write")
    seen = asyncio.run(awaited.compile(store=store).ainvoke({"user": "ben"}))["seen"]
    assert sorted(seen) == ["I am anna.", "I am ben."]


def test_langmems_tools_keep_and_find_memories(store):
    namespace = ("memories", "{user}")
    tools = [create_manage_memory_tool(namespace=namespace), create_search_memory_tool(namespace=namespace)]
    model = scripted(
        call("manage_memory", content="Anna is allergic to peanuts.", action="create"),
        call("search_memory", query="peanuts"),
        AIMessage("No peanuts."),
    )
    agent = create_agent(model, tools, store=store)
    question = {"messages": [{"role": "user", "content": "Remember that."}]}
    result = agent.invoke(question, {"configurable": {"user": "anna"}})
    assert "allergic to peanuts" in result["messages"][-2].content
    (item,) = store.search(("memories", "anna"), query="peanuts")
    assert item.value == {"content": "Anna is allergic to peanuts."}

    model = scripted(call("manage_memory", id=item.key, action="delete"), AIMessage("Done."))
    agent = create_agent(model, tools, store=store)
    asyncio.run(agent.ainvoke(question, {"configurable": {"user": "anna"}}))
    assert store.search(("memories",)) == []


def test_deepagents_keeps_its_files_in_it(store):
    backend = StoreBackend(namespace=lambda runtime: ("files", "anna"))
    model = scripted(
        call("write_file", file_path="/notes.md", content="Rome\nParis\n"),
        call("edit_file", file_path="/notes.md", old_string="Paris", new_string="Turin"),
        call("read_file", file_path="/notes.md"),
        call("grep", pattern="Turin", path="/"),
        AIMessage("Written."),
    )
    agent = create_deep_agent(model=model, backend=backend, store=store)
    result = agent.invoke({"messages": [{"role": "user", "content": "Take a note."}]})
    read, found = [message.content for message in result["messages"] if message.type == "tool"][-2:]
    assert "Turin" in read
    assert "/notes.md" in found
    assert "Paris" not in str(store.get(("files", "anna"), "/notes.md").value)
    assert [item.key for item in store.search(("files", "anna"))] == ["/notes.md"]
