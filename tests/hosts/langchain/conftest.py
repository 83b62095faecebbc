"""Agents with memory, and what they were sent."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from tests.support.chat_models import ScriptedModel

from eunoe.hosts.langchain import MemoryMiddleware
from eunoe.memory import Memory

ANNA = {"user_id": "anna"}


@pytest.fixture
def agent_of(memory: Memory) -> Callable[..., Any]:
    """Makes an agent with memory that says what is scripted. Options of the middleware stand in `options`."""

    def make(model: ScriptedModel, *others: Any, options: Any = None, **arguments: Any) -> Any:
        middleware = [*others, MemoryMiddleware(memory, **(options or {}))]
        return create_agent(model, middleware=middleware, **arguments)

    return make


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What was asked of the memory: the messages of `context`, and how many `observe` was given."""
    made: dict[str, list[Any]] = {"context": [], "observe": []}
    context, observe = Memory.context, Memory.observe

    def note_context(self: Memory, scope: Any, message: str = "", **options: Any) -> Any:
        made["context"].append(message)
        return context(self, scope, message, **options)

    def note_observe(self: Memory, scope: Any, messages: Any) -> Any:
        made["observe"].append(len(messages))
        return observe(self, scope, messages)

    monkeypatch.setattr(Memory, "context", note_context)
    monkeypatch.setattr(Memory, "observe", note_observe)
    return made


def said(memory: Memory, scope: str = "user=anna") -> list[str]:
    """The log of a scope, as role and words."""
    return [f"{item.role}: {item.text}" for item in memory.list(scope, kinds=["message"], exact=True).items]


def recalled(request: list[BaseMessage]) -> list[str]:
    """The messages of a request that hold recalled text."""
    return [message.text for message in request if "<MemoryContext" in message.text]


def human(text: str, **state: Any) -> dict[str, Any]:
    return {"messages": [("user", text)], **(state or ANNA)}
