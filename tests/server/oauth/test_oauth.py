"""OAuth: clients that register, what a person sees and agrees to, codes and tokens in the wrong hands."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from tests.server.oauth.conftest import REDIRECT, App, Person, answer_of, hidden_request
from tests.support.live_server import Answer, LiveServer, StartServer

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


def test_the_person_sees_who_asks_for_what_and_as_whom(server: LiveServer, app: App, person: Person) -> None:
    login = person.open(app.query)
    assert b"Assistant" in login.content
    assert b"assistant.example" in login.content
    page = person.show_key(login)
    for words in (
        "Anna&#x27;s &lt;key&gt;",
        "acme",
        "user=anna",
        f"{server.origin}/v1",
        'value="read"',
        'value="write"',
    ):
        assert words in page.content.decode()
    assert 'value="forget"' not in page.content.decode()
    assert person.key.encode() not in page.content


def test_the_answer_goes_back_with_its_state_and_issuer(server: LiveServer, app: App, person: Person) -> None:
    redirect = person.decide(person.show_key(person.open(app.query)))
    answer = answer_of(redirect)
    assert redirect.headers["location"].startswith(f"{REDIRECT}?")
    assert (answer["state"], answer["iss"], answer["code"].startswith("eunc_")) == ("s/1&2", server.origin, True)
    assert person.key not in redirect.headers["location"]


def test_the_person_can_give_less(server: LiveServer, app: App, person: Person) -> None:
    page = person.show_key(person.open(app.query))
    code = answer_of(person.decide(page, rights=("read",)))["code"]
    assert app.redeem(code).json["scope"] == "read"


def test_nothing_is_given_that_was_not_asked_for(app: App, person: Person) -> None:
    page = person.show_key(person.open(app.query | {"scope": "read"}))
    code = answer_of(person.decide(page, rights=("read", "write", "forget", "admin")))["code"]
    assert app.redeem(code).json["scope"] == "read"


@pytest.mark.parametrize(
    ("decision", "rights"), [("deny", ("read",)), ("", ("read",)), ("allow", ()), ("allow", ("x",))]
)
def test_a_refusal_is_told_to_the_client(app: App, person: Person, decision: str, rights: tuple[str, ...]) -> None:
    answer = answer_of(person.decide(person.show_key(person.open(app.query)), decision, (rights,)))
    assert (answer["error"], "code" in answer) == ("access_denied", False)


def test_a_wrong_key_goes_no_further(server: LiveServer, app: App, person: Person) -> None:
    page = person.show_key(person.open(app.query), "eun_wrong_key")
    assert (page.status, b"/oauth/login" in page.content, b"eun_wrong_key" in page.content) == (401, True, False)


def test_wrong_keys_have_their_limit_here_too(start_server: StartServer) -> None:
    server = start_server(public_url="https://memory.example.com", failures_per_minute=2)
    app, person = App(server).register(), Person(server, "")
    query = app.query | {"resource": "https://memory.example.com/mcp"}
    statuses = [person.show_key(person.open(query), f"eun_wrong_{number}").status for number in range(3)]
    assert statuses == [401, 401, 429]


def test_the_consent_cannot_be_reached_without_a_key(app: App, person: Person) -> None:
    answer = person.decide(person.open(app.query))
    assert (answer.status, b"key was not shown" in answer.content) == (400, True)


@pytest.mark.parametrize("origin", ["", "null", "https://evil.example", "https://assistant.example"])
def test_forms_of_other_pages_are_refused(server: LiveServer, app: App, person: Person, origin: str) -> None:
    login = person.open(app.query)
    page = person.show_key(login)
    for path, source in (("/oauth/login", login), ("/oauth/consent", page)):
        fields = [("request", hidden_request(source)), ("key", person.key), ("decision", "allow"), ("right", "read")]
        assert person.send(path, fields, origin).status in (400, 403)


def test_what_a_page_carries_cannot_be_changed(app: App, person: Person) -> None:
    sealed = hidden_request(person.show_key(person.open(app.query)))
    content, _, signature = sealed.partition(".")
    for forged in ("", ".", f"{content}.", f"{content[:-4]}.{signature}", f"{content}.{'0' * 64}", "é.é"):
        fields = [("request", forged), ("decision", "allow"), ("right", "read")]
        assert person.send("/oauth/consent", fields).status == 400


def test_a_page_is_good_for_a_while(app: App, person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eunoe.server.oauth._PATIENCE_SECONDS", -1)
    assert person.open(app.query).status == 400


def test_a_key_that_was_revoked_meanwhile_gives_nothing(server: LiveServer, app: App, person: Person) -> None:
    page = person.show_key(person.open(app.query))
    server.services.keys.revoke(server.services.keys.list()[0].id)
    assert person.decide(page).status == 400


def test_the_pages_run_no_script_and_stand_in_no_frame(server: LiveServer, person: Person) -> None:
    app = App(server).register("<script>alert(1)</script>\"'&")
    for page in (person.open(app.query), person.show_key(person.open(app.query)), person.open({"client_id": "<b>x"})):
        assert b"<script" not in page.content
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["cache-control"] == "no-store"
    assert "form-action 'self' https://assistant.example;" in person.open(app.query).headers["content-security-policy"]


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "https://evil.example/callback",
        f"{REDIRECT}/",
        f"{REDIRECT}/more",
        f"{REDIRECT}?more=1",
        f"{REDIRECT}#more",
        "https://assistant.example:8443/callback",
        "http://assistant.example/callback",
        "https://assistant.example.evil.example/callback",
        "https://assistant.example/Callback",
    ],
)
def test_nobody_is_sent_to_an_address_that_was_not_registered(app: App, person: Person, uri: str) -> None:
    answer = person.open(app.query | {"redirect_uri": uri})
    assert (answer.status, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"resource": "{origin}/mcp/more"}, "invalid_target"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"scope": "read everything"}, "invalid_scope"),
    ],
)
def test_a_request_that_is_wrong_is_told_to_the_client(
    app: App, person: Person, change: dict[str, str], error: str
) -> None:
    change = {name: value.format(origin=app.server.origin) for name, value in change.items()}
    answer = answer_of(person.open(app.query | change))
    assert (answer["error"], answer["state"]) == (error, "s/1&2")


def test_a_parameter_that_is_there_twice_is_refused(app: App, person: Person) -> None:
    query = f"{urlencode(app.query)}&redirect_uri=https://evil.example/"
    answer = person.server.call("GET", f"/oauth/authorize?{query}")
    assert (answer.status, "location" in answer.headers) == (400, False)


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
