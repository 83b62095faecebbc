"""Codes and tokens in the wrong hands, at the wrong time, at the wrong place, and twice."""

from __future__ import annotations

import pytest
from tests.server.oauth.conftest import App, Person
from tests.support.live_server import Answer, LiveServer, StartServer


def _error(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["error"]


def _status(server: LiveServer, token: str, path: str = "/v1/status") -> int:
    return server.call("GET", path, key=token).status


def _end(server: LiveServer, table: str) -> None:
    """Let the time of all rows of a table come."""
    with server.services.state.write() as db:
        db.execute(f"UPDATE {table} SET expires = 1")


def test_a_code_becomes_tokens_that_act_as_the_key_and_no_more(server: LiveServer, app: App, person: Person) -> None:
    tokens = app.redeem(app.get_code(person)).json
    assert (tokens["token_type"], tokens["scope"], tokens["expires_in"]) == ("Bearer", "read write", 3600)
    access = tokens["access_token"]
    assert _status(server, access) == 200
    body = {"scope": "user=anna", "items": ["Anna likes tea."]}
    assert server.call("POST", "/v1/memories", body, key=access).status == 200
    assert server.call("POST", "/v1/memories", body | {"scope": "user=bob"}, key=access).status == 403
    assert server.call("POST", "/v1/forget", {"scope": "user=anna", "everything": True}, key=access).status == 403
    assert server.call("GET", "/v1/keys", key=access).status == 403


def test_a_code_is_good_once_and_used_twice_it_ends_what_came_of_it(
    server: LiveServer, app: App, person: Person
) -> None:
    code = app.get_code(person)
    tokens = app.redeem(code).json
    assert _error(app.redeem(code)) == (400, "invalid_grant")
    assert _status(server, tokens["access_token"]) == 401
    assert _error(app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"code_verifier": ""}, "invalid_request"),
        ({"code_verifier": "x" * 64}, "invalid_grant"),
        ({"redirect_uri": ""}, "invalid_request"),
        ({"redirect_uri": "https://evil.example/callback"}, "invalid_request"),
        ({"redirect_uri": "https://assistant.example/callback/"}, "invalid_request"),
        ({"client_id": ""}, "invalid_client"),
        ({"client_id": "somebody"}, "invalid_client"),
        ({"grant_type": "password"}, "invalid_request"),
        ({"grant_type": "client_credentials"}, "invalid_request"),
        ({"code": ""}, "invalid_request"),
        ({"code": "eunc_guess"}, "invalid_grant"),
    ],
)
def test_a_code_is_refused(app: App, person: Person, change: dict[str, str], error: str) -> None:
    code = app.get_code(person)
    change = {name: value.format(origin=app.server.origin) for name, value in change.items()}
    answer = app.redeem(code, **change)
    assert (answer.status in (400, 401), answer.json["error"]) == (True, error)
    assert "access_token" not in answer.json


def test_a_wrong_verifier_uses_the_code_up(app: App, person: Person) -> None:
    code = app.get_code(person)
    assert app.redeem(code, code_verifier="x" * 64).status == 400
    assert app.redeem(code).status == 400


def test_a_code_of_another_client_is_refused(server: LiveServer, app: App, person: Person) -> None:
    other = App(server, verifier=app.verifier).register("Other")
    code = app.get_code(person)
    assert _error(other.redeem(code)) == (400, "invalid_grant")
    assert app.redeem(code).status == 200


def test_a_code_that_is_too_old_is_refused(server: LiveServer, app: App, person: Person) -> None:
    code = app.get_code(person)
    _end(server, "oauth_code")
    assert _error(app.redeem(code)) == (400, "invalid_grant")


def test_a_token_is_good_for_its_resource_alone(server: LiveServer, app: App, person: Person) -> None:
    target = f"{server.origin}/mcp"
    access = app.redeem(app.get_code(person, resource=target), resource=target).json["access_token"]
    assert _status(server, access) == 401
    login = server.call("POST", "/session", {"token": access}, headers={"Origin": server.origin})
    assert login.status == 401
    for path in ("/metrics", "/v1x/status", "/mcpx"):
        assert _status(server, access, path) == 401


def test_a_token_of_another_server_is_refused(
    server: LiveServer, app: App, person: Person, start_server: StartServer, tmp_path
) -> None:
    access = app.redeem(app.get_code(person)).json["access_token"]
    other = start_server(target=str(tmp_path / "other.db"), public_url="https://other.example")
    assert _status(other, access) == 401


def test_an_access_token_ends(server: LiveServer, app: App, person: Person) -> None:
    tokens = app.redeem(app.get_code(person)).json
    _end(server, "oauth_token")
    assert _status(server, tokens["access_token"]) == 401
    assert _error(app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


def test_a_refresh_token_is_good_once_and_used_twice_it_ends_the_family(
    server: LiveServer, app: App, person: Person
) -> None:
    first = app.redeem(app.get_code(person)).json
    second = app.refresh(first["refresh_token"]).json
    assert _status(server, second["access_token"]) == 200
    assert _error(app.refresh(first["refresh_token"])) == (400, "invalid_grant")
    assert _status(server, second["access_token"]) == 401
    assert _error(app.refresh(second["refresh_token"])) == (400, "invalid_grant")


def test_a_refresh_token_is_its_clients_alone(server: LiveServer, app: App, person: Person) -> None:
    token = app.redeem(app.get_code(person)).json["refresh_token"]
    other = App(server).register("Other")
    assert _error(other.refresh(token)) == (400, "invalid_grant")
    assert app.refresh(token).status == 200


def test_a_refresh_narrows_and_never_widens(server: LiveServer, app: App, person: Person) -> None:
    token = app.redeem(app.get_code(person)).json["refresh_token"]
    assert _error(app.refresh(token, scope="read forget")) == (400, "invalid_scope")
    assert _error(app.refresh(token, scope="admin")) == (400, "invalid_scope")
    narrow = app.refresh(token, scope="read").json
    assert narrow["scope"] == "read"
    body = {"scope": "user=anna", "items": ["Anna likes tea."]}
    assert server.call("POST", "/v1/memories", body, key=narrow["access_token"]).status == 403
    assert app.refresh(narrow["refresh_token"]).json["scope"] == "read write"


def test_one_kind_of_secret_is_not_good_as_another(server: LiveServer, app: App, person: Person) -> None:
    code = app.get_code(person)
    assert _status(server, code) == 401
    tokens = app.redeem(code).json
    assert _status(server, tokens["refresh_token"]) == 401
    assert _error(app.refresh(tokens["access_token"])) == (400, "invalid_grant")
    assert _error(app.redeem(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_revoked_token_ends_with_its_family(server: LiveServer, app: App, person: Person, kind: str) -> None:
    tokens = app.redeem(app.get_code(person)).json
    other = App(server).register("Other")
    assert other.post("/oauth/revoke", {"token": tokens[kind], "client_id": other.id}).status == 200
    assert _status(server, tokens["access_token"]) == 200
    assert app.post("/oauth/revoke", {"token": tokens[kind], "client_id": app.id}).status == 200
    assert _status(server, tokens["access_token"]) == 401
    assert _error(app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert app.post("/oauth/revoke", {"token": "unknown", "client_id": app.id}).status == 200


@pytest.mark.parametrize("end", ["revoke", "rotate"])
def test_tokens_end_with_the_key(server: LiveServer, app: App, person: Person, end: str) -> None:
    tokens = app.redeem(app.get_code(person)).json
    getattr(server.services.keys, end)(server.services.keys.list()[0].id)
    assert _status(server, tokens["access_token"]) == 401
    assert app.refresh(tokens["refresh_token"]).status == 400


def test_no_secret_is_kept(server: LiveServer, app: App, person: Person) -> None:
    code = app.get_code(person)
    tokens = app.redeem(code).json
    files = b"".join(path.read_bytes() for path in server.services.files.state.parent.glob("memory.server.db*"))
    for secret in (code, tokens["access_token"], tokens["refresh_token"], app.verifier):
        assert secret.encode() not in files


def test_tokens_of_the_owner_lack_the_right_admin(server: LiveServer, app: App) -> None:
    access = app.redeem(app.get_code(Person(server, server.owner))).json["access_token"]
    assert _status(server, access) == 200
    assert server.call("POST", "/v1/keys", {"name": "x"}, key=access).status == 403
    assert server.call("GET", "/v1/audit", key=access).status == 403
