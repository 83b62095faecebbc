"""The official client of MCP, from the first 401 to a call with a token, against a started server."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl
from tests.server.oauth.conftest import Person, answer_of
from tests.support.live_server import Answer, LiveServer


class _Storage:
    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def _provider(server: LiveServer, person: Person, storage: _Storage, path: str) -> OAuthClientProvider:
    answers: list[Answer] = []

    async def go(url: str) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        page = await asyncio.to_thread(lambda: person.show_key(person.open(query)))
        answers.append(await asyncio.to_thread(person.decide, page))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**answer_of(answers.pop()))

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1:3030/callback")], client_name="SDK")
    return OAuthClientProvider(f"{server.origin}{path}", metadata, storage, go, come_back)


def test_it_finds_its_way_in_and_refreshes_its_tokens(server: LiveServer, person: Person) -> None:
    storage = _Storage()
    body = {"scope": "user=anna", "items": ["Anna likes tea."]}
    removal = {"scope": "user=anna", "everything": True}

    async def call() -> list[int]:
        provider = _provider(server, person, storage, "/v1/status")
        async with httpx2.AsyncClient(auth=provider) as client:
            statuses = [(await client.get(f"{server.origin}/v1/status")).status_code]
            statuses.append((await client.post(f"{server.origin}/v1/memories", json=body)).status_code)
            statuses.append((await client.post(f"{server.origin}/v1/forget", json=removal)).status_code)
            first, provider.context.token_expiry_time = storage.tokens, 1
            statuses.append((await client.get(f"{server.origin}/v1/status")).status_code)
            assert first is not None
            assert storage.tokens is not None
            assert storage.tokens.access_token != first.access_token
        return statuses

    statuses = asyncio.run(call())
    assert statuses == [200, 200, 403, 200]
    assert storage.tokens is not None
    assert storage.tokens.scope == "read write"
    entries = server.call("GET", "/v1/audit", key=server.owner).json["items"]
    assert ("remember", "oauth") in [(entry["action"], entry["via"]) for entry in entries]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_it_calls_tools_of_mcp_as_the_key_that_the_person_showed(server: LiveServer, person: Person, mode: str) -> None:
    storage = _Storage()

    async def call() -> list[str]:
        async with (
            httpx2.AsyncClient(auth=_provider(server, person, storage, "/mcp")) as http,
            Client(streamable_http_client(f"{server.origin}/mcp", http_client=http), mode=mode) as client,
        ):
            kept = await client.call_tool("remember", {"text": "Anna likes tea."})
            assert not kept.is_error
            return [tool.name for tool in (await client.list_tools()).tools]

    names = asyncio.run(call())
    assert {"recall", "remember"} <= set(names)
    assert "forget" not in names
    assert storage.tokens is not None
    assert server.call("GET", "/v1/status", key=storage.tokens.access_token).status == 401
    entries = server.call("GET", "/v1/audit", key=server.owner).json["items"]
    noted = [(entry["action"], entry["via"], entry["scopes"]) for entry in entries]
    assert ("remember", "oauth", ["tenant=acme/user=anna"]) in noted
