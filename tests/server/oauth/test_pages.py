"""What a person sees and agrees to, and what cannot be made of it by others."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from tests.server.oauth.conftest import REDIRECT, App, Person, answer_of, hidden_request
from tests.support.live_server import LiveServer, StartServer


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


def test_an_unknown_client_is_sent_nowhere(app: App, person: Person) -> None:
    assert person.open(app.query | {"client_id": "somebody"}).status == 400
