"""The documents by which clients find their way."""

from __future__ import annotations

import pytest
from tests.support.live_server import LiveServer, StartServer


def test_the_authorization_server_describes_itself(start_server: StartServer) -> None:
    server = start_server(public_url="https://memory.example.com/")
    document = server.call("GET", "/.well-known/oauth-authorization-server").json
    assert document["issuer"] == "https://memory.example.com"
    assert document["token_endpoint"] == "https://memory.example.com/oauth/token"
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["token_endpoint_auth_methods_supported"] == ["none"]
    assert "admin" not in document["scopes_supported"]


@pytest.mark.parametrize("path", ["/mcp", "/v1", ""])
def test_each_resource_names_its_authorization_server(server: LiveServer, path: str) -> None:
    document = server.call("GET", f"/.well-known/oauth-protected-resource{path}").json
    assert (document["resource"], document["authorization_servers"]) == (f"{server.origin}{path}", [server.origin])


def test_there_are_no_other_resources(server: LiveServer) -> None:
    assert server.call("GET", "/.well-known/oauth-protected-resource/other").status == 404


@pytest.mark.parametrize(("path", "resource"), [("/v1/status", "/v1"), ("/metrics", "/mcp")])
def test_who_has_no_key_is_told_where_to_get_in(server: LiveServer, path: str, resource: str) -> None:
    challenge = server.call("GET", path).headers["www-authenticate"]
    place = f"{server.origin}/.well-known/oauth-protected-resource{resource}"
    assert challenge == f'Bearer resource_metadata="{place}"'


def test_without_a_public_address_there_is_none_of_it(start_server: StartServer) -> None:
    server = start_server()
    assert server.call("GET", "/v1/status").headers["www-authenticate"] == "Bearer"
    for method, path in (
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/oauth/authorize"),
        ("POST", "/oauth/token"),
        ("POST", "/oauth/register"),
    ):
        assert server.call(method, path).status == 404
