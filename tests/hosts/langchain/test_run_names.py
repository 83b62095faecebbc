"""Whose memory a run uses does not outlive it, though the thread has a checkpointer; an interrupt is no end."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from tests.hosts.langchain.conftest import human, recalled, said
from tests.support.chat_models import ScriptedModel, tool_call

from eunoe.hosts.langchain import MemoryMiddleware
from eunoe.memory import Memory

THREAD: Any = {"configurable": {"thread_id": "t1"}}
APPROVE: Any = Command(resume={"decisions": [{"type": "approve"}]})
Invoke = Callable[..., Any]


def ainvoke(agent: Any, *arguments: Any) -> Any:
    return asyncio.run(agent.ainvoke(*arguments))


def invoke(agent: Any, *arguments: Any) -> Any:
    return agent.invoke(*arguments)


both_ways = pytest.mark.parametrize("call", [invoke, ainvoke], ids=["blocking", "async"])


def learned(memory: Memory) -> dict[str, list[str]]:
    """What the users of a memory said, by scope."""
    return {
        scope.text: [line for line in said(memory, scope.text) if line.startswith("user")] for scope in memory.scopes()
    }


@both_ways
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"memory_scope": {"user": "alice"}}, {"user_id": "bob"}, {"user=alice": 1, "thread=t1/user=bob": 1}),
        (
            {"user_id": "alice", "session_id": "s"},
            {"user_id": "bob"},
            {"session=s/user=alice": 1, "thread=t1/user=bob": 1},
        ),
        ({"user_id": "alice", "agent_id": "cook"}, {}, {"agent=cook/thread=t1/user=alice": 1}),
        ({"user_id": "alice"}, {"user_id": "alice"}, {"thread=t1/user=alice": 2}),
    ],
)
def test_a_run_uses_nothing_that_an_earlier_one_named(
    call: Invoke, first: Any, second: Any, expected: Any, memory: Memory, agent_of: Callable[..., Any]
) -> None:
    memory.remember("user=alice", "Alice is allergic to peanuts.")
    memory.forget("user=alice", memory.remember("user=alice", "x").id)
    model = ScriptedModel("Ok.")
    agent = agent_of(model, checkpointer=InMemorySaver())
    for number, names in enumerate([first, second]):
        call(agent, {"messages": [("user", f"Peanuts {number}?")], **names}, THREAD)
    assert {scope: len(lines) for scope, lines in learned(memory).items() if lines} == expected
    assert bool(recalled(model.requests[1])) == (second.get("user_id") == "alice")
    assert not {"user_id", "session_id", "agent_id", "memory_scope"} & agent.get_state(THREAD).values.keys()
    assert "alice" not in str(agent.get_state(THREAD).values)


@pytest.mark.parametrize("names", [{}, {"user_id": "bob"}])
def test_a_run_that_broke_off_leaves_no_name_to_the_next(
    names: Any, memory: Memory, agent_of: Callable[..., Any]
) -> None:
    model = ScriptedModel(ConnectionError("down"), tool_call("store_memory", content="Bob's own fact."), "Ok.")
    agent = agent_of(model, checkpointer=InMemorySaver())
    with pytest.raises(ConnectionError):
        agent.invoke({"messages": [("user", "Alice's words.")], "memory_scope": "user=alice"}, THREAD)
    agent.invoke({"messages": [("user", "Bob's words.")], **names}, THREAD)
    assert learned(memory).get("user=alice", []) == ["user: Alice's words."]
    assert learned(memory).get("thread=t1/user=bob", []) == (["user: Bob's words."] if names else [])
    assert [item.text for item in memory.list("user=alice", kinds=["fact"]).items] == []


def test_a_run_that_broke_off_and_goes_on_keeps_its_user(memory: Memory, agent_of: Callable[..., Any]) -> None:
    model = ScriptedModel(ConnectionError("down"), tool_call("store_memory", content="Anna likes tea."), "Ok.")
    agent = agent_of(model, checkpointer=InMemorySaver())
    with pytest.raises(ConnectionError):
        agent.invoke(human("I like tea."), THREAD)
    agent.invoke(None, THREAD)
    assert said(memory, "thread=t1/user=anna") == ["user: I like tea.", "assistant: Ok."]
    assert [item.text for item in memory.list("user=anna", kinds=["fact"]).items] == ["Anna likes tea."]


@both_ways
@pytest.mark.parametrize("names", [{"user_id": "anna", "session_id": "s1"}, {"memory_scope": "session=s1/user=anna"}])
def test_a_run_that_was_interrupted_goes_on_with_its_user(
    call: Invoke, names: Any, memory: Memory, agent_of: Callable[..., Any]
) -> None:
    memory.remember("user=anna", "Anna is allergic to peanuts.")
    model = ScriptedModel(tool_call("store_memory", content="Anna likes tea."), "Noted, you like tea.")
    approval = HumanInTheLoopMiddleware({"store_memory": True})
    agent = agent_of(model, approval, checkpointer=InMemorySaver())
    call(agent, human("What of peanuts? I like tea.", **names), THREAD)
    call(agent, APPROVE, THREAD)
    assert all(map(recalled, model.requests))
    assert len(memory.list("user=anna", kinds=["fact"]).items) == 2
    assert len(said(memory, "session=s1/user=anna")) == 2
    call(agent, {"messages": [("user", "Nobody's words.")]}, THREAD)
    assert "Nobody's" not in str(learned(memory))


def test_who_resumes_a_run_may_name_another_user(memory: Memory, agent_of: Callable[..., Any]) -> None:
    model = ScriptedModel(tool_call("store_memory", content="A fact."), "Noted, a fact.")
    approval = HumanInTheLoopMiddleware({"store_memory": True})
    agent = agent_of(model, approval, checkpointer=InMemorySaver())
    agent.invoke(human("Anna's words.", memory_scope="user=anna"), THREAD)
    agent.invoke(Command(resume=APPROVE.resume, update={"user_id": "ben"}), THREAD)
    assert [item.text for item in memory.list("user=ben", kinds=["fact"]).items] == ["A fact."]
    assert memory.list("user=anna", kinds=["fact"]).items == ()
    assert said(memory, "user=anna") == ["user: Anna's words."]


def test_a_function_sees_what_the_run_named_also_after_an_interrupt(
    memory: Memory, agent_of: Callable[..., Any]
) -> None:
    model = ScriptedModel(tool_call("store_memory", content="A fact."), "Noted, a fact.")
    approval = HumanInTheLoopMiddleware({"store_memory": True})
    options = {"scope": lambda state, runtime: {"tenant": state["user_id"]}}
    agent = agent_of(model, approval, options=options, checkpointer=InMemorySaver())
    agent.invoke(human("Hello."), THREAD)
    agent.invoke(APPROVE, THREAD)
    assert [scope.text for scope in memory.scopes()] == ["tenant=anna"]
    assert len(memory.list("tenant=anna").items) == 3


def test_a_subagent_of_a_resumed_run_has_its_user(memory: Memory) -> None:
    call = tool_call("task", description="Go to the hill.", subagent_type="scout")
    scout: Any = {
        "name": "scout",
        "description": "Looks around.",
        "system_prompt": "Look.",
        "model": ScriptedModel("Nothing here."),
        "middleware": [MemoryMiddleware(memory)],
    }
    agent = create_deep_agent(
        ScriptedModel(call, "It is empty."),
        subagents=[scout],
        middleware=[MemoryMiddleware(memory)],
        interrupt_on={"task": True},
        checkpointer=InMemorySaver(),
    )
    agent.invoke(human("Look around."), THREAD)
    agent.invoke(APPROVE, THREAD)
    assert "user: Go to the hill." in said(memory, "thread=t1/user=anna")
