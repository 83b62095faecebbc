"""The profile for discussions: retrievers and updates, for the caller's own users only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from tests.support.mcp_client import ANNA, Connect, call, refusal, stdio_parameters

import eunoe
from eunoe.apps.discussion import Discussion, retrievers
from eunoe.apps.discussion.files import import_discussion
from eunoe.model.scope import Scope
from eunoe.server.mcp.discussion import DISCUSSION_TOOLS, update_discussion
from eunoe.server.mcp.tool import Caller, Confirmation, ScopeRule, Tool, ToolCall

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
        assert "Aurora" in (await call(client, "full_chat_summary", discussion_id="trip"))["text"]
        first = await call(client, "first_memories", discussion_id="trip", limit="1")
        assert first["text"] == (await call(client, "all_memories", discussion_id="trip"))["text"].split("--Ch")[0]
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


@pytest.mark.parametrize("tool", DISCUSSION_TOOLS, ids=lambda tool: tool.name)
async def test_without_an_id_the_text_is_empty_and_nothing_is_kept(
    connect: Connect, memory: eunoe.Memory, tool: Tool
) -> None:
    arguments = {"keywords": "hotel"} if "keywords" in tool.required else {}
    async with connect("discussion") as client:
        answer = await call(client, tool.name, discussion_id="", **arguments)
    assert (answer["text"], "discussion id" in answer["message"]) == ("", True)
    assert memory.scopes() == []


async def test_the_sentences_of_the_host(connect: Connect) -> None:
    arguments = {"discussion_id": "trip", "host_messages": "true"}
    async with connect("discussion") as client:
        assert (await call(client, "chat_summary", **arguments))["text"] == retrievers.NO_SUMMARY
        assert (await call(client, "recent_memories", **arguments))["text"] == retrievers.NO_MEMORIES


async def test_numbers_within_the_schema_are_taken(connect: Connect) -> None:
    async with connect("discussion") as client:
        for limit in ("0", "5", 5):
            await call(client, "search_memories", discussion_id="trip", keywords="x", limit=limit)
        for wrong in (-1, "-1", "five", "9" * 5000):
            assert "limit" in await refusal(client, "search_memories", discussion_id="trip", keywords="x", limit=wrong)


async def test_all_discussions_of_a_user_are_read(connect: Connect, memory: eunoe.Memory) -> None:
    for id in ("trip", "work"):
        Discussion(memory, id, "anna").update(json.loads(messages(24, id)))
    arguments = {"discussion_id": "trip", "across_discussions": True}
    async with connect("discussion") as client:
        for name in ("all_memories", "chat_summary"):
            assert "work" in (await call(client, name, **arguments))["text"]


async def test_an_imported_chat_goes_on(connect: Connect, memory: eunoe.Memory, tmp_path: Path) -> None:
    for id in ("trip", "work"):
        folder = tmp_path / "Discussions" / id
        folder.mkdir(parents=True)
        (folder / "memories.json").write_text(json.dumps([{"text_block": "Ann is here.", "hash": "0" * 64}]))
        import_discussion(memory, folder, user="anna")
    async with connect("discussion") as client:
        for number in range(6):
            turn = {"user_message": f"Question {number}?", "assistant_message": f"Answer {number}."}
            await call(client, "update_discussion", discussion_id="trip", **turn)
        assert "Question 0" in (await call(client, "all_memories", discussion_id="trip"))["text"]
        whole = {"discussion_id": "work", "messages": messages(12)}
        assert "continue_at" in await refusal(client, "update_discussion", **whole)
        assert (await call(client, "update_discussion", continue_at="start", **whole))["made"] > 0


async def test_files_that_the_environment_names(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflows = tmp_path / "workflows"
    workflows.mkdir()
    (workflows / "mine.json").write_text(json.dumps([{"type": "StaticResponse", "content": "Made by a workflow."}]))
    (tmp_path / "models.json").write_text(json.dumps({"endpoints": {}}))
    (tmp_path / "settings.json").write_text(json.dumps({"fileMemoryWorkflowName": "mine", "prot": 1}))
    for name, path in {"SETTINGS": "settings.json", "MODELS": "models.json", "WORKFLOWS": "workflows"}.items():
        monkeypatch.setenv(f"EUNOE_DISCUSSION_{name}", str(tmp_path / path))
    monkeypatch.setenv("EUNOE_DISCUSSION_FILES_DIR", str(tmp_path / "files"))
    (tmp_path / "files").mkdir()
    async with connect("discussion") as client:
        told = await call(client, "update_discussion", discussion_id="trip", messages=messages(12))
        assert (told["failed"], told["notes"]) == (0, ["prot is not supported: there is no setting of that name"])
        assert "Note: prot" in told["text"]
        assert "Made by a workflow." in (await call(client, "recent_memories", discussion_id="trip"))["text"]
    (written,) = (tmp_path / "files").rglob("memories.json")
    assert "Made by a workflow." in written.read_text()


async def test_tenants_share_no_files(memory: eunoe.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUNOE_DISCUSSION_FILES_DIR", str(tmp_path / "files"))
    acme = Caller(lambda: memory.restricted(tenant="acme"), scopes=ScopeRule(ANNA), tenant="acme")
    arguments = {"discussion_id": "trip", "messages": messages(12)}
    answer = update_discussion(ToolCall(acme.find_memory(), acme, Confirmation(b"x"), arguments))
    assert answer.data["made"] > 0
    assert not (tmp_path / "files").exists()
