"""Clients that register themselves: what they may say of themselves, and how many there may be."""

from __future__ import annotations

import pytest
from tests.server.oauth.conftest import App, Person
from tests.support.live_server import LiveServer

from eunoe.server import oauth


def _register(server: LiveServer, **body: object) -> tuple[int, dict]:
    answer = server.call("POST", "/oauth/register", {"client_name": "x"} | body)
    return answer.status, answer.json


@pytest.mark.parametrize(
    "uri",
    [
        "https://claude.ai/api/mcp/auth_callback",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        "http://127.0.0.1:33418/callback",
        "http://localhost:3030/callback",
        "http://[::1]:3030/callback",
        "cursor://anysphere.cursor-retrieval/oauth/callback",
        "com.example.app://callback/done",
    ],
)
def test_addresses_of_assistants_are_taken(server: LiveServer, uri: str) -> None:
    status, client = _register(server, redirect_uris=[uri], token_endpoint_auth_method="client_secret_post")
    assert (status, client["redirect_uris"], client["token_endpoint_auth_method"]) == (201, [uri], "none")
    assert "client_secret" not in client


@pytest.mark.parametrize(
    "uris",
    [
        ["http://evil.example/callback"],
        ["http://127.0.0.1.evil.example/callback"],
        ["javascript:alert(1)"],
        ["javascript://a.example/%0aalert(1)"],
        ["data:text/html,x"],
        ["file:///etc/passwd"],
        ["https://user:password@a.example/"],
        ["https://a.example/#fragment"],
        ["https://a.example/;x"],
        ["https://a.example;script-src/"],
        ["https://a.example/" + "x" * 1000],
        ["https://a.example/"] * 11,
    ],
)
def test_addresses_that_are_not_safe_are_refused(server: LiveServer, uris: object) -> None:
    status, body = _register(server, redirect_uris=uris)
    assert (status, body["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize("uris", [None, [], "https://a.example/", [1], ["/callback"], ["https://a.example:port/"]])
def test_what_is_no_list_of_addresses_is_refused(server: LiveServer, uris: object) -> None:
    assert _register(server, redirect_uris=uris)[0] == 400


@pytest.mark.parametrize("name", ["x" * 101, "two\nlines", "\u202eevil"])
def test_names_that_deceive_are_refused(server: LiveServer, name: str) -> None:
    status, body = _register(server, client_name=name, redirect_uris=["https://a.example/"])
    assert (status, body["error"]) == (400, "invalid_client_metadata")


@pytest.mark.parametrize("body", ["", "[]", "{", '"x"', "\ud800".encode("utf-8", "surrogatepass")])
def test_a_body_that_is_no_object_is_refused(server: LiveServer, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    assert server.call("POST", "/oauth/register", body, headers=headers).status == 400


def test_an_address_registers_only_so_many(server: LiveServer) -> None:
    statuses = [_register(server, redirect_uris=["https://a.example/"])[0] for _ in range(11)]
    assert statuses == [201] * 10 + [429]


def test_the_number_of_clients_is_bounded_and_those_in_use_stay(
    server: LiveServer, app: App, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth, "_MAX_CLIENTS", 3)
    app.redeem(app.get_code(person))
    others = [App(server).register() for _ in range(5)]
    known = [person.open(other.query).status == 200 for other in others]
    assert (known, person.open(app.query).status) == ([False, False, False, True, True], 200)


def test_when_all_are_in_use_there_is_no_room(
    server: LiveServer, app: App, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.redeem(app.get_code(person))
    monkeypatch.setattr(oauth, "_MAX_CLIENTS", 1)
    status, body = _register(server, redirect_uris=["https://a.example/"])
    assert (status, body["error"]) == (400, "invalid_client_metadata")


def test_one_that_nobody_let_in_goes_after_a_day(server: LiveServer, app: App, person: Person) -> None:
    with server.services.state.write() as db:
        db.execute("UPDATE oauth_client SET created = 1")
    App(server).register()
    assert person.open(app.query).status == 400
