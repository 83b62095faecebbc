"""LlamaIndex's memory: its chat engine with a scripted model, and the chat as it was put."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.llama_index import EunoeMemory

SCOPE = "agent=cook/session=s1/user=anna"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(tmp_path / "memory.db", embedder="none", llm="none") as opened:
        yield opened


@pytest.fixture
def chat(memory: eunoe.Memory) -> EunoeMemory:
    return EunoeMemory.from_defaults(memory, SCOPE)


MESSAGES = [
    ChatMessage(role=MessageRole.USER, content="ok"),
    ChatMessage(role=MessageRole.ASSISTANT, content="ok", additional_kwargs={"tool_calls": [{"id": "c1"}]}),
    ChatMessage(role=MessageRole.TOOL, content="sunny", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text="Look"), ImageBlock(image=b"AAAA")]),
    ChatMessage(role=MessageRole.USER, content="ok"),
]


def test_a_chat_comes_back_as_it_was_put(chat: EunoeMemory) -> None:
    chat.put(MESSAGES[0])
    chat.put_messages(MESSAGES[1:])
    assert [_plain(each) for each in chat.get_all()] == [_plain(each) for each in MESSAGES]
    assert [_plain(each) for each in chat.get()] == [_plain(each) for each in MESSAGES]


def _plain(message: ChatMessage) -> dict[str, Any]:
    return message.model_dump(mode="json", exclude_none=True)


def test_set_replaces_and_reset_forgets(memory: eunoe.Memory, chat: EunoeMemory) -> None:
    chat.put_messages(MESSAGES)
    chat.set([ChatMessage(content="ok")])
    assert [message.content for message in chat.get_all()] == ["ok"]
    chat.reset()
    assert chat.get_all() == []
    assert memory.list(SCOPE).items == ()


def test_what_bears_on_the_input_goes_before_the_chat(memory: eunoe.Memory, chat: EunoeMemory) -> None:
    memory.remember("agent=cook/user=anna", "Anna is allergic to peanuts.")
    chat.put(ChatMessage(content="Hello"))
    first, last = chat.get("What must I not eat? Any allergic reaction to peanuts?")
    assert first.role is MessageRole.USER
    assert "allergic to peanuts" in (first.content or "")
    assert last.content == "Hello"
    assert len(chat.get()) == 1


def test_only_the_latest_messages_are_given(memory: eunoe.Memory) -> None:
    chat = EunoeMemory.from_defaults(memory, SCOPE, chat_limit=2)
    chat.put_messages([ChatMessage(content=str(number)) for number in range(5)])
    assert [message.content for message in chat.get()] == ["3", "4"]


def _chat(memory: eunoe.Memory, limit: int, *roles: MessageRole) -> list[str]:
    memory.forget(SCOPE, everything=True, may_return=True)
    chat = EunoeMemory.from_defaults(memory, SCOPE, chat_limit=limit)
    chat.put_messages([ChatMessage(role=role, content=str(number)) for number, role in enumerate(roles)])
    return [message.role.value for message in chat.get()]


def test_the_latest_messages_do_not_begin_with_the_result_of_a_tool(memory: eunoe.Memory) -> None:
    user, assistant, tool = MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL
    for limit in (2, 3):
        assert _chat(memory, limit, user, assistant, tool, assistant) == ["assistant", "tool", "assistant"]
    assert _chat(memory, 1, user, assistant, tool, tool) == ["assistant", "tool", "tool"]
    assert _chat(memory, 2, tool, tool, tool) == ["tool", "tool", "tool"]
    assert _chat(memory, 1, assistant, MessageRole.FUNCTION, user) == ["user"]


def test_an_option_that_is_not_known_is_refused(memory: eunoe.Memory) -> None:
    with pytest.raises(InputError, match="token_limit"):
        EunoeMemory.from_defaults(memory, SCOPE, token_limit=3000)
    with pytest.raises(InputError, match="chat_limit"):
        EunoeMemory.from_defaults(memory, SCOPE, chat_limit=0)


def test_a_chat_engine_runs_on_it(chat: EunoeMemory) -> None:
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=chat)
    engine.chat("I live in Rome.")
    engine.chat("Where do I live?")
    assert [message.role.value for message in chat.get_all()] == ["user", "assistant"] * 2


def test_a_scope_must_be_named(memory: eunoe.Memory) -> None:
    with pytest.raises(InputError, match="scope is missing"):
        EunoeMemory.from_defaults(memory)
