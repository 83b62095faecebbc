"""Whose memory a run uses, and which of its messages are learned: each once, for whom it was said."""

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, PIIMiddleware, SummarizationMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel
from tests.hosts.langchain.conftest import ANNA, human, recalled, said
from tests.support.chat_models import ScriptedModel, tool_call

from eunoe.errors import ScopeError
from eunoe.hosts.langchain import MemoryMiddleware
from eunoe.hosts.langchain.runs import NO_LOG, lasting_scope, learn, read_messages, run_scope
from eunoe.memory import Memory
from eunoe.model.scope import Scope

THREAD: Any = {"configurable": {"thread_id": "t1"}}
SCOPE = "thread=t1/user=anna"


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"a red door in {place}"


def test_a_second_turn_learns_only_what_is_new(
    memory: Memory, agent_of: Callable[..., Any], calls: dict[str, list[Any]]
) -> None:
    agent = agent_of(ScriptedModel("Hello Anna.", "Tea, then."), checkpointer=InMemorySaver())
    agent.invoke(human("I am Anna."), THREAD)
    agent.invoke(human("I like tea."), THREAD)
    assert said(memory, SCOPE) == [
        "user: I am Anna.",
        "assistant: Hello Anna.",
        "user: I like tea.",
        "assistant: Tea, then.",
    ]
    assert calls["observe"] == [2, 2]


def test_tools_results_and_recalled_text_are_not_learned(memory: Memory, agent_of: Callable[..., Any]) -> None:
    memory.remember("user=anna", "Anna is allergic to peanuts.")
    model = ScriptedModel(
        tool_call("search_long_term_memory", query="peanuts"), tool_call("look", place="hall", id="2"), "No nuts."
    )
    agent_of(model, tools=[look]).invoke(human("What must I not eat?"))
    assert recalled(model.requests[0])
    assert "allergic" in model.requests[1][-1].text
    assert said(memory) == ["user: What must I not eat?", "assistant: No nuts."]
    assert len(memory.list("user=anna").items) == 3


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_interrupt_and_resume_learn_once(memory: Memory, agent_of: Callable[..., Any], decision: str) -> None:
    memory.remember("user=anna", "Anna is allergic to peanuts.")
    model = ScriptedModel(
        tool_call("store_memory", "Shall I keep it?", content="Anna likes rice."), tool_call("look", place="x"), "Rice."
    )
    approval = HumanInTheLoopMiddleware({"store_memory": True})
    agent = agent_of(model, approval, tools=[look], checkpointer=InMemorySaver())
    paused = agent.invoke(human("What may I eat?"), THREAD)
    assert paused["__interrupt__"]
    assert said(memory, SCOPE) == []
    agent.invoke(Command(resume={"decisions": [{"type": decision}]}), THREAD)
    assert said(memory, SCOPE) == ["user: What may I eat?", "assistant: Shall I keep it?", "assistant: Rice."]
    facts = [item.text for item in memory.list("user=anna", kinds=["fact"]).items]
    assert ("Anna likes rice." in facts) == (decision == "approve")
    assert [len(recalled(request)) for request in model.requests] == [1, 1, 1]


def test_a_turn_that_broke_off_is_learned_by_the_next_one(memory: Memory, agent_of: Callable[..., Any]) -> None:
    model = ScriptedModel(tool_call("look", "Let me look.", place="x"), ValueError("provider down"), "A red door.")
    agent = agent_of(model, tools=[look], checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="provider down"):
        agent.invoke(human("What is there?"), THREAD)
    agent.invoke(human("Well?"), THREAD)
    assert [line.partition(": ")[2] for line in said(memory, SCOPE)] == [
        "What is there?",
        "Let me look.",
        "Well?",
        "A red door.",
    ]


@pytest.mark.parametrize("order", [1, -1], ids=["before", "after"])
def test_a_summary_takes_nothing_away(memory: Memory, order: int) -> None:
    steps = [tool_call("look", f"Step {number}.", place="x", id=str(number)) for number in range(4)]
    model = ScriptedModel(*steps, "A red door.")
    summary = SummarizationMiddleware(ScriptedModel("Talk of doors."), trigger=("messages", 3), keep=("messages", 1))
    stack = [summary, MemoryMiddleware(memory)][::order]
    agent = create_agent(model, [look], middleware=stack, checkpointer=InMemorySaver())
    state = agent.invoke(human("What is there?"), THREAD)
    assert len(state["messages"]) < 6
    assert [line.partition(": ")[2] for line in said(memory, SCOPE)] == [
        "What is there?",
        *(f"Step {number}." for number in range(4)),
        "A red door.",
    ]
    assert not any("Talk of doors" in line for line in said(memory, SCOPE))


def test_what_was_redacted_is_learned_redacted(memory: Memory, agent_of: Callable[..., Any]) -> None:
    redaction = PIIMiddleware("email", strategy="redact", apply_to_input=True, apply_to_output=True)
    agent_of(ScriptedModel("I wrote to ben@example.org."), redaction).invoke(human("I am anna@example.org."))
    assert said(memory) == ["user: I am [REDACTED_EMAIL].", "assistant: I wrote to [REDACTED_EMAIL]."]


def test_an_edited_message_is_learned_too(memory: Memory, agent_of: Callable[..., Any]) -> None:
    agent = agent_of(ScriptedModel("Ok."))
    for text in ("I live in Rome.", "I live in Paris.", "I live in Paris."):
        agent.invoke({"messages": [HumanMessage(text, id="m1")], **ANNA})
    assert [line for line in said(memory) if line.startswith("user")] == [
        "user: I live in Rome.",
        "user: I live in Paris.",
    ]


def test_a_message_that_cannot_be_stored_keeps_no_other_waiting(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    messages = [HumanMessage("I like tea.", id="m1"), HumanMessage("Secret.", id="m" * 2000), AIMessage("Ok.", id="m3")]
    learn(memory, read_messages(NO_LOG, messages, Scope(user="anna"))["waiting"])
    learn(memory, read_messages(NO_LOG, [HumanMessage("half \ud83d sign", id="m4")], Scope(user="anna"))["waiting"])
    assert said(memory) == ["user: I like tea.", "assistant: Ok.", "user: half \ufffd sign"]
    assert "Secret" not in caplog.text
    assert "cannot be learned" in caplog.text


def test_a_log_whose_last_message_is_gone_starts_at_the_last_question() -> None:
    log = read_messages(NO_LOG, [HumanMessage("a", id="1")], Scope(user="anna"))
    later = read_messages(log, [AIMessage("b", id="2"), HumanMessage("c", id="3"), AIMessage("d", id="4")], None)
    assert later == {"last": "4", "waiting": log["waiting"]}
    taken = read_messages(
        {"last": "1", "waiting": []},
        [AIMessage("b", id="2"), HumanMessage("c", id="3"), AIMessage("d", id="4")],
        Scope(user="anna"),
    )
    assert [entry["text"] for entry in taken["waiting"]] == ["c", "d"]
    assert read_messages(log, [], None) is log


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


def test_runs_in_one_event_loop_stay_apart(memory: Memory, shared_agent: Any) -> None:
    async def run_all() -> list[Any]:
        return await asyncio.gather(*(shared_agent.ainvoke(_run(number)) for number in range(RUNS // 2)))

    _check_apart(memory, asyncio.run(run_all()))


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
