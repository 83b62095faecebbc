"""What the user and the agent said is learned once, whatever happens to the run; what was recalled is not."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, PIIMiddleware, SummarizationMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from tests.hosts.langchain.conftest import ANNA, human, recalled, said
from tests.support.chat_models import ScriptedModel, tool_call

from eunoe.hosts.langchain import MemoryMiddleware
from eunoe.hosts.langchain.runs import NO_LOG, learn, read_messages
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


def test_a_client_that_sends_its_history_each_time_is_learned_from_once(
    memory: Memory, agent_of: Callable[..., Any]
) -> None:
    agent = agent_of(ScriptedModel("Hello Anna.", "Tea, then."))
    history: list[Any] = [{"role": "user", "content": "I am Anna."}]
    agent.invoke({"messages": history, **ANNA})
    history += [{"role": "assistant", "content": "Hello Anna."}, {"role": "user", "content": "I like tea."}]
    agent.invoke({"messages": history, **ANNA})
    assert len(said(memory)) == 4


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


def test_a_resumed_run_recalls_once(memory: Memory, agent_of: Callable[..., Any], calls: dict[str, list[Any]]) -> None:
    model = ScriptedModel(*(tool_call("look", place="x", id=str(number)) for number in range(3)), "Done, a red door.")
    agent = agent_of(model, tools=[look], checkpointer=InMemorySaver(), interrupt_before=["tools"])
    agent.invoke(human("What is there?"), THREAD)
    agent.interrupt_before_nodes = []
    agent.invoke(None, THREAD)
    assert calls["context"] == ["What is there?"] * 2
    assert memory.status().messages == 2


def test_the_thread_goes_on_in_another_process(memory: Memory, agent_of: Callable[..., Any], tmp_path: Path) -> None:
    for number in range(2):
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            agent_of(ScriptedModel(f"Answer {number}."), checkpointer=saver).invoke(human(f"Turn {number}."), THREAD)
    assert [line.split()[-1] for line in said(memory, SCOPE)] == ["0.", "0.", "1.", "1."]


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


def test_it_need_not_learn(memory: Memory, agent_of: Callable[..., Any]) -> None:
    agent_of(ScriptedModel("Ok."), options={"learns": False}).invoke(human("I like tea."))
    assert memory.scopes() == []


def test_async_runs_learn_too(memory: Memory, agent_of: Callable[..., Any]) -> None:
    agent = agent_of(ScriptedModel("Ok.", "Ok."), checkpointer=InMemorySaver())
    asyncio.run(agent.ainvoke(human("I like tea."), THREAD))
    asyncio.run(agent.ainvoke(human("I like rain."), THREAD))
    assert len(said(memory, SCOPE)) == 4


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
