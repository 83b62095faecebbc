"""A server with OAuth, and a client and a person that go through it step by step."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from tests.support.live_server import Answer, LiveServer

from eunoe.server.config import ServerConfig
from eunoe.server.process import open_listener

REDIRECT = "https://assistant.example/callback"


def free_port() -> int:
    listener, config = open_listener(ServerConfig(port=0))
    listener.close()
    return config.port


@pytest.fixture(scope="session")
def started_oauth_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    target, port = str(tmp_path_factory.mktemp("oauth") / "memory.db"), free_port()
    url = f"http://127.0.0.1:{port}"
    config = ServerConfig(target=target, embedder="none", llm="none", port=port, public_url=url, worker=False)
    server = LiveServer(config)
    yield server
    server.stop()


@pytest.fixture
def server(started_oauth_server: LiveServer) -> LiveServer:
    started_oauth_server.reset()
    return started_oauth_server


@dataclass
class Person:
    """Somebody with a browser and a key."""

    server: LiveServer
    key: str

    def open(self, query: dict[str, str]) -> Answer:
        answer = self.server.call("GET", f"/oauth/authorize?{urlencode(query)}")
        place = answer.headers.get("location", "")
        return self.server.call("GET", place) if place.startswith("/") else answer

    def send(self, path: str, fields: list[tuple[str, str]], origin: str | None = None) -> Answer:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        sent = self.server.origin if origin is None else origin
        return self.server.call("POST", path, urlencode(fields), headers=headers | ({"Origin": sent} if sent else {}))

    def show_key(self, page: Answer, key: str = "") -> Answer:
        return self.send("/oauth/login", [("request", hidden_request(page)), ("key", key or self.key)])

    def decide(self, page: Answer, decision: str = "allow", rights: tuple[str, ...] = ("read", "write")) -> Answer:
        chosen = [("right", right) for right in rights]
        return self.send("/oauth/consent", [("request", hidden_request(page)), ("decision", decision), *chosen])


def hidden_request(page: Answer) -> str:
    found = re.search(r'name="request" value="([^"]+)"', page.content.decode())
    assert found, page.content
    return unescape(found[1])


def answer_of(redirect: Answer) -> dict[str, str]:
    """What a redirect carries back to the client."""
    assert redirect.status in (302, 303), redirect.content
    return {name: values[0] for name, values in parse_qs(urlsplit(redirect.headers["location"]).query).items()}


@dataclass
class App:
    """A client that behaves, unless it is told otherwise."""

    server: LiveServer
    redirect: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    id: str = ""

    def register(self, name: str = "Assistant") -> App:
        body = {"client_name": name, "redirect_uris": [self.redirect]}
        answer = self.server.call("POST", "/oauth/register", body)
        assert answer.status == 201, answer.content
        self.id = answer.json["client_id"]
        return self

    @property
    def query(self) -> dict[str, str]:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": self.redirect,
            "state": "s/1&2",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "resource": f"{self.server.origin}/v1",
            "scope": "read write",
        }

    def get_code(self, person: Person, **change: str) -> str:
        page = person.show_key(person.open(self.query | change))
        return answer_of(person.decide(page))["code"]

    def redeem(self, code: str, /, **change: str) -> Answer:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.id,
            "redirect_uri": self.redirect,
            "code_verifier": self.verifier,
            "resource": f"{self.server.origin}/v1",
        }
        return self.post("/oauth/token", form | change)

    def refresh(self, token: str, /, **change: str) -> Answer:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.id}
        return self.post("/oauth/token", form | change)

    def post(self, path: str, form: dict[str, str]) -> Answer:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        fields = {name: value for name, value in form.items() if value}
        return self.server.call("POST", path, urlencode(fields), headers=headers)


@pytest.fixture
def person(server: LiveServer) -> Person:
    _, text = server.services.keys.create("Anna's <key>", tenant="acme", scopes="user=anna")
    return Person(server, text)


@pytest.fixture
def app(server: LiveServer) -> App:
    return App(server).register()
