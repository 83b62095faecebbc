"""Recall as a tool: for a blocking and for an async memory, whatever an agent passes to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.memory_tool import Tool, tool
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import MEMORY_TYPES

HERE = "agent=cook/session=s1/user=anna"
ANNA = "agent=cook/user=anna"
QUERY = {"query": "What is the dog called?"}


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.remember(ANNA, "Anna's dog is called Bruno.")
        yield memory


@pytest.fixture(params=["blocking", "async"])
def search(memory: Memory, request: pytest.FixtureRequest) -> Tool:
    return tool(memory if request.param == "blocking" else AsyncMemory(memory), HERE)


def test_either_memory_is_searched_from_code_that_blocks_and_from_code_that_awaits(search: Tool) -> None:
    answer = search.call(QUERY)
    assert answer == "Retrieved memories:\n\n- Anna's dog is called Bruno. (just now)"
    assert asyncio.run(search.acall(QUERY)) == answer
    assert search.call({"query": "quantum chromodynamics"}) == "No relevant memories found."


def test_a_memory_that_was_opened_to_be_awaited(path: Path) -> None:
    async def main() -> list[str]:
        async with eunoe.open_async(path, embedder="none", llm="none", form=False) as memory:
            await memory.remember(ANNA, "Anna's dog is called Bruno.")
            search = tool(memory, HERE)
            answers = await asyncio.gather(*(search.acall(QUERY) for _ in range(3)))
        return [*answers, await search.acall(QUERY)]

    *answers, closed = asyncio.run(main())
    assert all("Bruno" in answer for answer in answers)
    assert closed == "The memory cannot be searched at the moment (ClosedError). Answer without it."


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "query must be a text or a list of 1 to 3 texts"),
        ({"query": ["a", "b", "c", "d"]}, "query must be a text or a list of 1 to 3 texts"),
        ({"query": ["a", " "]}, "say what to look for"),
        ({**QUERY, "match_count": 26}, "from 1 to 25"),
        ({**QUERY, "match_count": 0}, "from 1 to 25"),
        ({**QUERY, "match_count": True}, "from 1 to 25"),
        ({**QUERY, "memory_types": ["all"]}, "session, user, collective"),
        ({**QUERY, "memory_types": 3}, "memory_types must be a list"),
        ({**QUERY, "stream": 1}, "there is no argument stream"),
        ("query", "an object with a `query`"),
    ],
)
def test_a_wrong_argument_is_explained_to_the_agent(search: Tool, arguments: Any, reason: str) -> None:
    answer = search.call(arguments)
    assert answer.startswith("The memory could not be searched: ")
    assert reason in answer
    assert asyncio.run(search.acall(arguments)) == answer


@pytest.mark.parametrize("value", [None, "user", ["user"]])
def test_what_is_left_out_or_stands_alone_is_taken(search: Tool, value: Any) -> None:
    assert "Bruno" in search.call({**QUERY, "memory_types": value, "match_count": None})


def test_what_the_tool_answered_is_not_found_again(memory: Memory) -> None:
    search = tool(memory, HERE)
    reply = {"role": "tool", "speaker": search.name, "content": "Retrieved memories:\n\n- The dog chased a zebra."}
    memory.observe(HERE, [reply, *"abcd"])
    assert "zebra" not in search.call({"query": "zebra"})


def test_a_message_is_shown_with_its_speaker_and_without_recalled_memory(memory: Memory) -> None:
    text = "<MemoryContext>secret</MemoryContext> My cat\nchased a zebra."
    memory.observe(HERE, [{"role": "user", "speaker": "Anna", "content": text}, *"abcd"])
    assert "- Anna: My cat chased a zebra. (just now)" in tool(memory, HERE).call({"query": "zebra"}).splitlines()


def test_the_definition_names_what_the_memory_takes(memory: Memory) -> None:
    search = tool(memory, HERE)
    assert search.openai()["function"]["name"] == search.anthropic()["name"] == "search_long_term_memory"
    assert search.openai()["function"]["parameters"] == search.anthropic()["input_schema"] == search.schema
    assert json.loads(json.dumps(search.schema)) == search.schema
    assert search.schema["properties"]["memory_types"]["items"]["enum"] == list(MEMORY_TYPES)


def test_what_a_host_gets_wrong_is_an_error(memory: Memory) -> None:
    with pytest.raises(InputError, match=r"did you mean \['anna'\]"):
        tool(memory, HERE, "anna")
    with pytest.raises(InputError, match="best"):
        tool(memory, HERE, recipe="best")  # type: ignore[arg-type]
