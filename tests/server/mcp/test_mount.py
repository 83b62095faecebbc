"""MCP as the server has it: with its keys, tenants and audit log, behind its checks of Host and Origin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.support.live_server import LiveServer
from tests.support.mcp_client import call, refusal

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(server: LiveServer, mode: str, key: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http,
        Client(streamable_http_client(f"{server.origin}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def make_key(server: LiveServer, **binding: object) -> str:
    answer = server.call("POST", "/v1/keys", {"name": "test", **binding}, key=server.owner)
    assert answer.status < 300, answer.content
    return answer.json["token"]


async def test_the_owner_remembers_and_the_audit_log_says_so(server: LiveServer, mode: str, monkeypatch):
    async with connected(server, mode, server.owner) as client:
        await call(client, "remember", text="Anna likes tea.", scope="user=anna")
        found = await call(client, "recall", query="tea", scope="user=anna")
        assert found["memories"][0]["text"] == "Anna likes tea."
        assert "user=anna" in [resource.name for resource in (await client.list_resources()).resources]
    entry = server.call("GET", "/v1/audit", key=server.owner).json["items"][0]
    assert (entry["action"], entry["via"]) == ("remember", "mcp")


async def test_a_key_reaches_its_tenant_and_its_scopes_only(server: LiveServer, mode: str):
    acme = make_key(server, tenant="acme", scopes=["user=anna"])
    beta = make_key(server, tenant="beta")
    async with connected(server, mode, acme) as client:
        (tool, *_) = (await client.list_tools()).tools
        assert tool.input_schema["properties"]["scope"]["description"] == "default user=anna"
        kept = await call(client, "remember", text="Anna's PIN is swordfish.")
        assert (await call(client, "recall", query="PIN"))["memories"]
        assert await refusal(client, "recall", query="PIN", scope="user=bob")
        assert await refusal(client, "recall", query="PIN", scope="tenant=beta/user=anna")
        (contents,) = (await client.read_resource("eunoe://streams/user%3Danna")).contents
        assert '"facts": 1' in contents.text
    async with connected(server, mode, beta) as client:
        assert "scope is missing" in await refusal(client, "recall", query="PIN")
        assert (await call(client, "recall", query="PIN", scope="user=anna"))["memories"] == []
        assert await refusal(client, "recall", query="PIN", scope="tenant=acme/user=anna")
        assert await refusal(client, "get", ids=[kept["id"]], scope="user=anna")
        assert await refusal(client, "forget", ids=[kept["id"]], scope="user=anna")
        assert (await client.list_resources()).resources == []
        for uri in ("eunoe://streams/user%3Danna", "eunoe://streams/tenant%3Dacme%2Fuser%3Danna"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert "swordfish" not in str(caught.value)


async def test_a_key_is_listed_what_it_may_call(server: LiveServer, mode: str):
    key = make_key(server, tenant="acme", scopes=["user=anna"], rights=["read"])
    async with connected(server, mode, key) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["recall", "context", "get", "list"]


async def test_a_client_that_sent_too_much_is_told_and_keeps_its_session(server: LiveServer, mode: str):
    async with connected(server, mode, server.owner) as client:
        with pytest.raises(MCPError):
            await client.call_tool("remember", {"text": "x" * 30_000_000, "scope": "user=anna"})
        await call(client, "remember", text="Anna likes tea.", scope="user=anna")


async def test_a_key_without_a_scope_must_name_one(server: LiveServer, mode: str):
    for key in (server.owner, make_key(server), make_key(server, scopes=["user=anna", "user=ben"])):
        async with connected(server, mode, key) as client:
            assert "scope is missing" in await refusal(client, "remember", text="Anna likes tea.")
    assert server.call("GET", "/v1/scopes", key=server.owner).json["scopes"] == []


def test_strangers_are_turned_away(server: LiveServer):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    assert server.call("POST", "/mcp", body, headers=accept).status == 401
    assert server.call("POST", "/mcp", body, key="eun_wrong_key", headers=accept).status == 401
    foreign = accept | {"Host": "evil.example"}
    assert server.call("POST", "/mcp", body, key=server.owner, headers=foreign).status in (400, 403, 421)
    page = accept | {"Origin": "https://evil.example"}
    assert server.call("POST", "/mcp", body, key=server.owner, headers=page).status == 403
    assert server.call("POST", "/mcp", body, key=server.owner, headers=accept).status == 200
