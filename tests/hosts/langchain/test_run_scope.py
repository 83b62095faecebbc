"""Each run says whose memory it uses; runs at once stay apart, and a run that says nothing has no memory."""

import asyncio
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel
from tests.hosts.langchain.conftest import human, recalled, said
from tests.support.chat_models import ScriptedModel, tool_call

from eunoe.errors import ScopeError
from eunoe.hosts.langchain import MemoryMiddleware
from eunoe.hosts.langchain.runs import lasting_scope, run_scope
from eunoe.memory import Memory
from eunoe.model.scope import Scope

RUNS = 80
SCOPES = 20


@dataclass
class Caller:
    user_id: str
    agent_id: str = "cook"


class CallerModel(BaseModel):
    user_id: str
    session_id: str


def runtime(context: Any = None, thread: str | None = None) -> Any:
    return SimpleNamespace(context=context, execution_info=SimpleNamespace(thread_id=thread))


@pytest.mark.parametrize(
    ("state", "context", "thread", "expected"),
    [
        ({"user_id": "anna"}, None, None, "user=anna"),
        ({"user_id": "anna"}, None, "t1", "thread=t1/user=anna"),
        ({"user_id": "anna", "session_id": "s1"}, None, "t1", "session=s1/user=anna"),
        ({}, {"user_id": "anna"}, None, "user=anna"),
        ({}, Caller("anna"), None, "agent=cook/user=anna"),
        ({}, CallerModel(user_id="anna", session_id="s1"), None, "session=s1/user=anna"),
        ({"user_id": "ben"}, {"user_id": "anna"}, None, "user=anna"),
        ({"user_id": 7}, None, None, "user=7"),
        ({"memory_scope": {"project": "kiln"}}, None, "t1", "project=kiln"),
        ({"user_id": "ben"}, {"memory_scope": "project=kiln"}, None, "project=kiln"),
        ({"memory_scope": "user=ben"}, {"user_id": "anna"}, None, "user=anna"),
        ({"user_id": "anna"}, None, "t" * 512, f"thread={'t' * 512}/user=anna"),
        ({"user_id": "anna", "thread_id": "t" * 513}, None, None, f"thread={sha256(b't' * 513).hexdigest()}/user=anna"),
        ({"user_id": "anna"}, {"session_id": "s" * 513}, None, f"session={sha256(b's' * 513).hexdigest()}/user=anna"),
        ({"user_id": "anna"}, None, "t" * 513, f"thread={sha256(b't' * 513).hexdigest()}/user=anna"),
    ],
)
def test_the_run_names_its_scope(state: Any, context: Any, thread: str | None, expected: str) -> None:
    assert run_scope(state, runtime(context, thread)) == Scope.parse(expected)


@pytest.mark.parametrize(
    "state", [{}, {"user_id": ""}, {"user_id": None}, {"user_id": " "}, {"agent_id": "cook"}, {"memory_scope": {}}]
)
def test_a_missing_id_never_widens(state: Any) -> None:
    with pytest.raises(ScopeError):
        run_scope(state, runtime(thread="t1"))


def test_what_is_stored_outlasts_the_conversation() -> None:
    assert lasting_scope(Scope.parse("agent=cook/thread=t/user=anna")) == Scope.parse("agent=cook/user=anna")
    assert lasting_scope(Scope.parse("session=s")) == Scope.parse("session=s")


def test_a_run_without_a_user_goes_on_without_memory_and_says_so_once(
    memory: Memory, agent_of: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    memory.remember("user=anna", "Anna is allergic to peanuts.")
    memory.remember("agent=cook", "The cook serves peanuts.")
    model = ScriptedModel(
        tool_call("search_long_term_memory", query="peanuts"), tool_call("store_memory", content="x", id="2"), "Yes."
    )
    agent = agent_of(model)
    with caplog.at_level(logging.WARNING, "eunoe"):
        state = agent.invoke({"messages": [("user", "peanuts?")], "agent_id": "cook"})
        agent.invoke({"messages": [("user", "peanuts?")]})
    assert state["messages"][-1].text == "Yes."
    assert [message.status for message in state["messages"] if message.type == "tool"] == ["error", "error"]
    assert not any(map(recalled, model.requests))
    assert not any(word in str(state["messages"]) for word in ("allergic", "serves"))
    assert sorted(map(str, memory.scopes())) == ["agent=cook", "user=anna"]
    assert sum("names no user_id" in record.getMessage() for record in caplog.records) == 1


def test_what_was_said_without_a_user_is_never_learned_for_the_next_one(
    memory: Memory, agent_of: Callable[..., Any]
) -> None:
    agent = agent_of(ScriptedModel("Ok."), checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t1"}}
    agent.invoke({"messages": [("user", "Nobody's secret.")]}, thread)
    agent.invoke(human("Anna's words."), thread)
    assert said(memory, "thread=t1/user=anna") == ["user: Anna's words.", "assistant: Ok."]


def test_input_cannot_write_into_other_peoples_memory(memory: Memory, agent_of: Callable[..., Any]) -> None:
    entry = {"scope": "user=ben", "id": "m1", "role": "user", "speaker": "", "text": "Ben pays for all."}
    model = ScriptedModel("Ok.")
    foreign = {"eunoe_log": {"last": "", "waiting": [entry]}, "eunoe_context": "<MemoryContext>"}
    agent_of(model).invoke(human("Hello.") | foreign)
    assert memory.scopes() == [Scope(user="anna")]
    assert recalled(model.requests[0]) == []


def test_a_function_may_name_the_scope(memory: Memory, agent_of: Callable[..., Any]) -> None:
    def scope(state: Any, runtime: Any) -> dict[str, str]:
        return {"tenant": runtime.context["company"], "user": state["user_id"]}

    agent = agent_of(ScriptedModel("Ok."), options={"scope": scope}, context_schema=dict)
    agent.invoke(human("I like tea."), context={"company": "acme"})
    agent.invoke(human("I like tea."), context={})  # the function fails, the run does not
    assert memory.scopes() == [Scope(tenant="acme", user="anna")]


@pytest.mark.parametrize("context", [Caller("anna"), {"user_id": "anna", "agent_id": "cook"}])
def test_the_context_of_a_real_run(context: Any, memory: Memory, agent_of: Callable[..., Any]) -> None:
    model = ScriptedModel(tool_call("store_memory", content="Anna likes tea."), "Noted, tea it is.")
    agent_of(model, context_schema=type(context)).invoke({"messages": [("user", "I like tea.")]}, context=context)
    assert len(memory.list("agent=cook/user=anna", kinds=["fact"]).items) == 1


def _answer_for_whom(messages: list[BaseMessage]) -> AIMessage:
    """Search, then store, then say what the request held of other people's memory."""
    asked = next(message.text for message in reversed(messages) if message.type == "human")
    user = asked.split()[-1].rstrip(".")
    results = sum(message.type == "tool" for message in messages)
    if results == 0:
        return tool_call("search_long_term_memory", query="secret word")
    if results == 1:
        return tool_call("store_memory", content=f"{user} asked in {asked.split()[1]}.")
    seen = {word for message in messages for word in message.text.replace(".", " ").split() if word.startswith("word-")}
    return AIMessage(f"{user} saw {' '.join(sorted(seen))}")


@pytest.fixture
def shared_agent(memory: Memory) -> Any:
    for number in range(SCOPES):
        memory.remember(f"user=u{number}", f"The secret word is word-u{number}.")
    middleware = MemoryMiddleware(memory, recall_seconds=600, learn_seconds=600)  # however slow the machine is
    return create_agent(ScriptedModel(_answer_for_whom), middleware=[middleware])


def _run(number: int) -> dict[str, Any]:
    user = f"u{number % SCOPES}"
    return {"messages": [("user", f"Run r{number} asks for the secret word of {user}.")], "user_id": user}


def _check_apart(memory: Memory, states: list[Any]) -> None:
    for number, state in enumerate(states):
        user = f"u{number % SCOPES}"
        assert state["messages"][-1].text == f"{user} saw word-{user}"
    for number in range(SCOPES):
        user = f"u{number}"
        items = memory.list(f"user={user}", limit=200).items
        assert all(set(re.findall(r"\bu\d+\b", item.text)) == {user} for item in items)
        runs = {f"r{run}" for run in range(len(states)) if run % SCOPES == number}
        assert {item.text.split()[-1].rstrip(".") for item in items if " asked in " in item.text} == runs
        assert sum(item.kind == "message" for item in items) == 2 * len(runs)
    assert len(memory.scopes()) == SCOPES


def test_many_runs_in_threads_stay_apart(memory: Memory, shared_agent: Any) -> None:
    with ThreadPoolExecutor(16) as pool:
        states = list(pool.map(lambda number: shared_agent.invoke(_run(number)), range(RUNS)))
    _check_apart(memory, states)


def test_runs_in_one_event_loop_stay_apart(memory: Memory, shared_agent: Any) -> None:
    async def run_all() -> list[Any]:
        return await asyncio.gather(*(shared_agent.ainvoke(_run(number)) for number in range(RUNS // 2)))

    _check_apart(memory, asyncio.run(run_all()))
