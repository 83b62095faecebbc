"""The profile for discussions: retrievers and updates, for the caller's own users only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from tests.support.mcp_client import ANNA, Connect, call, refusal, stdio_parameters

import eunoe
from eunoe.discussion import Discussion
from eunoe.model.scope import Scope

pytestmark = pytest.mark.anyio


def messages(count: int, topic: str = "Aurora") -> str:
    roles = ("user", "assistant")
    return json.dumps(
        [{"role": roles[each % 2], "content": f"Hotel {topic} is number {each}."} for each in range(count)]
    )


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"both": True, "lookbackStartTurn": 1}))
    monkeypatch.setenv("EUNOE_DISCUSSION_SETTINGS", str(path))


@pytest.mark.usefixtures("settings")
async def test_a_discussion_is_updated_and_read(connect: Connect, memory: eunoe.Memory) -> None:
    async with connect("discussion") as client:
        told = await call(client, "update_discussion", discussion_id="trip", messages=messages(21))
        assert told["made"] == 8
        for name in ("search_memories", "search_conversation"):
            assert "Aurora" in (await call(client, name, discussion_id="trip", keywords="Aurora; x", limit=2))["text"]
        recent = await call(client, "recent_memories", discussion_id="trip", limit=-1)
        assert len(recent["text"].split("--ChunkBreak--")) == 4
        assert "Aurora" in (await call(client, "chat_summary", discussion_id="trip"))["text"]
        empty = await call(client, "state_document", discussion_id="trip")
        assert (empty["text"], bool(empty["message"])) == ("", True)
    assert Discussion(memory, "trip", "anna").status().messages == 21


async def test_turns_are_taken_in_one_by_one(connect: Connect, memory: eunoe.Memory) -> None:
    async with connect("discussion") as client:
        for number in range(2):
            turn = {"user_message": f"Question {number}?", "assistant_message": f"Answer {number}."}
            await call(client, "update_discussion", discussion_id="trip", **turn)
    assert len(Discussion(memory, "trip", "anna").log.messages()) == 4


@pytest.mark.usefixtures("settings")
async def test_long_answers_are_read_in_parts(connect: Connect) -> None:
    async with connect("discussion") as client:
        await call(client, "update_discussion", discussion_id="trip", messages=messages(61))
        whole = (await call(client, "recent_memories", discussion_id="trip", limit=-1))["text"]
        parts, cursor = [], ""
        while True:
            arguments = {"discussion_id": "trip", "limit": -1, "max_tokens": 300, "cursor": cursor}
            answer = await call(client, "recent_memories", **arguments)
            parts.append(answer["text"])
            if not (cursor := answer.get("cursor", "")):
                break
        assert len(parts) > 1
        assert "".join(parts) == whole


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "discussion_id is missing"),
        ({"discussion_id": "../x"}, "no id of a discussion"),
        ({"discussion_id": "trip", "scope": "user=ben"}, "only scopes within"),
        ({"discussion_id": "trip", "scope": "user=anna/session=s1"}, "belong to users"),
        ({"discussion_id": "trip", "scope": "user=anna/discussion=other"}, "two discussions"),
    ],
)
async def test_nobody_elses_discussions(connect: Connect, arguments: dict[str, str], words: str) -> None:
    async with connect("discussion") as client:
        for name in ("chat_summary", "update_discussion"):
            assert words in await refusal(client, name, **arguments)


async def test_a_server_for_one_discussion_gives_no_other(connect: Connect, memory: eunoe.Memory) -> None:
    for id in ("trip", "work"):
        Discussion(memory, id, "anna").log.take_in(json.loads(messages(4, id)))
    own = Scope(user="anna", discussion="trip")
    async with connect("discussion", default=own, within=own) as client:
        assert "trip" in (await call(client, "search_conversation", keywords="hotel"))["text"]
        for arguments in ({"scope": "user=anna", "discussion_id": "work"}, {"across_discussions": True}):
            assert "only scopes within" in await refusal(client, "search_conversation", keywords="hotel", **arguments)
    async with connect("discussion") as client:
        arguments = {"discussion_id": "trip", "keywords": "work", "across_discussions": True}
        assert "work" in (await call(client, "search_conversation", **arguments))["text"]


async def test_who_may_only_read_is_shown_no_update(connect: Connect, memory: eunoe.Memory) -> None:
    async with connect("discussion", rights=["read"]) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "update_discussion" not in names
        await call(client, "chat_summary", discussion_id="trip")
    assert memory.scopes() == []


async def test_over_standard_input_and_output(tmp_path: Path) -> None:
    parameters = stdio_parameters(tmp_path / "s.db", "--profile", "discussion", "--embedder", "none", scope=ANNA.text)
    async with Client(stdio_client(parameters)) as client:
        await call(client, "update_discussion", discussion_id="trip", user_message="Hello Rome")
        found = await call(client, "search_conversation", discussion_id="trip", keywords="rome")
    assert "Hello Rome" in found["text"]
