"""MCP over HTTP: without sessions, and as the server has it, with its keys, tenants and audit log."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.support.live_server import LiveServer
from tests.support.mcp_client import ANNA, call, refusal

import eunoe

pytestmark = pytest.mark.anyio


CHILD = Path(__file__).parents[2] / "support" / "mcp_http_child.py"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("http") / "memory.db"


@pytest.fixture(scope="module")
def ports(store: Path) -> Iterator[list[int]]:
    command = [sys.executable, str(CHILD), str(store)]
    servers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    yield [int(server.stdout.readline()) for server in servers]
    for server in servers:
        server.terminate()
        server.wait()
        server.stdout.close()


class Proxy:
    """Sends every request to the next server in turn; a connection carries one request."""

    def __init__(self, ports: list[int]) -> None:
        self._turns = itertools.cycle(ports)
        self.counts = dict.fromkeys(ports, 0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = next(self._turns)
        self.counts[port] += 1
        above_reader, above_writer = await asyncio.open_connection("127.0.0.1", port)
        tasks = [_copy(reader, above_writer), _copy(above_reader, writer)]
        with suppress(ConnectionError):
            await asyncio.gather(*tasks)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()


@pytest.fixture
async def proxy(ports: list[int]) -> AsyncIterator[tuple[Proxy, str]]:
    proxy = Proxy(ports)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield proxy, f"http://{host}:{port}/mcp"
    server.close()


@asynccontextmanager
async def connected(url: str, mode: str, caller: str = "anna") -> AsyncIterator[Client]:
    """A client that opens a connection for every request, so that a proxy can send each elsewhere."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with (
        httpx2.AsyncClient(headers={"x-caller": caller, "connection": "close"}, limits=limits) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"], indirect=True)
async def test_two_processes_serve_one_conversation(proxy: tuple[Proxy, str], mode: str):
    counter, url = proxy
    async with connected(url, mode) as client:
        assert len((await client.list_tools()).tools) == 7
        for number in range(10):
            kept = await call(client, "remember", text=f"The tower of {mode} number {number} is high.")
            assert (await call(client, "get", ids=[kept["id"]]))["memories"][0]["id"] == kept["id"]
        assert (await client.list_resources()).resources
        preview = await call(client, "forget", words=f"tower of {mode}")
        assert (await call(client, "forget", token=preview["token"]))["removed"] == len(preview["memories"])
    assert min(counter.counts.values()) > 5


async def test_a_token_of_another_caller_is_refused(proxy: tuple[Proxy, str], mode: str, store: Path):
    _, url = proxy
    async with connected(url, mode) as client:
        await call(client, "remember", text="Anna likes mangoes.", again=True)
        token = (await call(client, "forget", words="mangoes"))["token"]
    async with connected(url, mode, "somebody") as client:
        assert "not valid" in await refusal(client, "forget", token=token)
    with eunoe.open(store, embedder="none") as memory:
        assert "Anna likes mangoes." in [item.text for item in memory.list(ANNA).items]


async def test_profiles_are_paths(proxy: tuple[Proxy, str], mode: str):
    _, url = proxy
    async with connected(f"{url}/chatgpt", mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "fetch"]
    async with connected(f"{url}/reference", mode) as client:
        entity = {"name": f"Alice {mode}", "entityType": "person", "observations": ["likes tea"]}
        assert await call(client, "create_entities", entities=[entity]) == {"entities": [entity]}
        assert entity in (await call(client, "search_nodes", query=mode))["entities"]


async def test_other_requests_are_refused_in_order(ports: list[int]):
    url = f"http://127.0.0.1:{ports[0]}/mcp"
    async with httpx2.AsyncClient() as http:
        missing = await http.post(f"{url}/unknown", json={})
        assert missing.status_code == 404
        assert missing.headers["content-type"] == "application/problem+json"
        assert missing.json()["code"] == "no_such_path"
        assert (
            await http.post(url, content=b"no json", headers={"content-type": "application/json"})
        ).status_code == 400
        large = b"x" * (17 * 1024 * 1024)
        assert (await http.post(url, content=large, headers={"content-type": "application/json"})).status_code == 413
        assert (await http.post(url, content=b"{}", headers={"content-type": "text/plain"})).status_code in (
            400,
            406,
            415,
        )
        assert (await http.delete(url)).status_code in (400, 405)


@asynccontextmanager
async def mounted(server: LiveServer, mode: str, key: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http,
        Client(streamable_http_client(f"{server.origin}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def make_key(server: LiveServer, **binding: object) -> str:
    answer = server.call("POST", "/v1/keys", {"name": "test", **binding}, key=server.owner)
    assert answer.status < 300, answer.content
    return answer.json["token"]


@pytest.mark.parametrize("mode", ["auto", "legacy"], indirect=True)
async def test_the_owner_remembers_and_the_audit_log_says_so(server: LiveServer, mode: str, monkeypatch):
    async with mounted(server, mode, server.owner) as client:
        await call(client, "remember", text="Anna likes tea.", scope="user=anna")
        found = await call(client, "recall", query="tea", scope="user=anna")
        assert found["memories"][0]["text"] == "Anna likes tea."
        assert "user=anna" in [resource.name for resource in (await client.list_resources()).resources]
    entry = server.call("GET", "/v1/audit", key=server.owner).json["items"][0]
    assert (entry["action"], entry["via"]) == ("remember", "mcp")


async def test_a_key_reaches_its_tenant_and_its_scopes_only(server: LiveServer, mode: str):
    acme = make_key(server, tenant="acme", scopes=["user=anna"])
    beta = make_key(server, tenant="beta")
    async with mounted(server, mode, acme) as client:
        (tool, *_) = (await client.list_tools()).tools
        assert tool.input_schema["properties"]["scope"]["description"] == "default user=anna"
        kept = await call(client, "remember", text="Anna's PIN is swordfish.")
        assert (await call(client, "recall", query="PIN"))["memories"]
        assert await refusal(client, "recall", query="PIN", scope="user=bob")
        assert await refusal(client, "recall", query="PIN", scope="tenant=beta/user=anna")
        (contents,) = (await client.read_resource("eunoe://streams/user%3Danna")).contents
        assert '"facts": 1' in contents.text
    async with mounted(server, mode, beta) as client:
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


@pytest.mark.parametrize("mode", ["auto", "legacy"], indirect=True)
async def test_a_client_that_sent_too_much_is_told_and_keeps_its_session(server: LiveServer, mode: str):
    async with mounted(server, mode, server.owner) as client:
        with pytest.raises(MCPError):
            await client.call_tool("remember", {"text": "x" * 30_000_000, "scope": "user=anna"})
        await call(client, "remember", text="Anna likes tea.", scope="user=anna")


async def test_a_key_without_a_scope_must_name_one(server: LiveServer, mode: str):
    for key in (server.owner, make_key(server), make_key(server, scopes=["user=anna", "user=ben"])):
        async with mounted(server, mode, key) as client:
            assert "scope is missing" in await refusal(client, "remember", text="Anna likes tea.")
    assert server.call("GET", "/v1/scopes", key=server.owner).json["scopes"] == []
