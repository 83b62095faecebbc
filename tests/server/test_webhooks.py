"""What memory is learning now, by server-sent events and by webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.support.live_server import LiveServer, StartServer
from tests.support.waiting import wait_until

import eunoe
from eunoe.errors import InputError
from eunoe.server import administration, webhooks
from eunoe.server.webhooks import DeliveryError, Feed, check_url, find_address


@pytest.fixture
def server(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> LiveServer:
    """One that looks for news often."""
    for module in (administration, webhooks):
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.05)
    return start_server(worker=True)


def remember(server: LiveServer, text: str, scope: str = "user=anna", key: str = "") -> str:
    answer = server.call("POST", "/v1/memories", {"scope": scope, "items": [text]}, key=key or server.owner)
    assert answer.status == 200, answer.content
    return str(answer.json["receipts"][0]["id"])


class Stream:
    """Server-sent events as they come."""

    def __init__(self, server: LiveServer, key: str, last: str = "") -> None:
        self._connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
        headers = {"Authorization": f"Bearer {key}"} | ({"Last-Event-ID": last} if last else {})
        self._connection.request("GET", "/v1/events", headers=headers)
        self.reply: HTTPResponse = self._connection.getresponse()
        assert self.reply.status == 200, self.reply.read()
        assert self._lines() == {"retry": "1000"}  # from here on nothing is missed

    def read(self) -> dict[str, str]:
        while not (event := self._lines()):
            pass
        return event

    def _lines(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        while line := self.reply.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        return fields

    def close(self) -> None:
        self._connection.close()


def test_what_is_learned_is_told(server: LiveServer) -> None:
    stream = Stream(server, server.owner)
    id = remember(server, "Anna likes tea.")
    event = stream.read()
    assert event["event"] == "learned"
    item = json.loads(event["data"])
    assert (item["id"], item["text"], item["scope"]) == (id, "Anna likes tea.", "user=anna")
    stream.close()


def test_what_another_process_writes_is_told_too(server: LiveServer) -> None:
    stream = Stream(server, server.owner)
    with eunoe.open(server.config.target, embedder="none", llm="none") as memory:
        memory.remember("user=bert", "Bert likes coffee.")
    assert json.loads(stream.read()["data"])["text"] == "Bert likes coffee."
    stream.close()


def test_a_stream_goes_on_where_it_was(server: LiveServer) -> None:
    stream = Stream(server, server.owner)
    remember(server, "One.")
    first = stream.read()
    stream.close()
    remember(server, "Two.")
    stream = Stream(server, server.owner, first["id"])
    assert json.loads(stream.read()["data"])["text"] == "Two."
    stream.close()


def test_a_key_is_told_of_its_own_tenant_only(server: LiveServer) -> None:
    _, acme = server.services.keys.create("acme", tenant="acme")
    stream = Stream(server, acme)
    remember(server, "A secret of somebody else.")
    remember(server, "Ours.", key=acme)
    assert json.loads(stream.read()["data"])["text"] == "Ours."
    stream.close()


def test_a_stream_ends_with_its_key(server: LiveServer) -> None:
    key, acme = server.services.keys.create("acme", tenant="acme")
    stream = Stream(server, acme)
    server.services.keys.revoke(key.id)
    remember(server, "Learned after the key had ended.", "tenant=acme/user=anna")
    assert stream.reply.read() == b""
    stream.close()


def test_a_feed_begins_when_it_is_asked_for() -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        memory.remember("user=anna", "Before.")
        feed = Feed.from_cursor(memory, "")
        told = []
        for text in ("One.", "Two."):
            memory.remember("user=anna", text)
            told += [event.item.text for event in feed.read()]
    assert told == ["One.", "Two."]


def test_a_place_that_is_none_is_refused(server: LiveServer) -> None:
    answer = server.call("GET", "/v1/events", key=server.owner, headers={"Last-Event-ID": "yesterday?"})
    assert answer.status == 422


def test_a_feed_tells_each_thing_once_and_in_order() -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        feed = Feed.from_cursor(memory, "")
        told = []
        for number in range(30):
            memory.remember_many("user=anna", [f"Fact {number}a.", f"Fact {number}b."])
            told += [event.item.text for event in feed.read()]
        assert feed.read() == []
        assert sorted(told) == sorted(f"Fact {number}{letter}." for number in range(30) for letter in "ab")
        assert [text for text in told if "a" in text[5:]] == [f"Fact {number}a." for number in range(30)]


class Receiver:
    """A real server that takes webhooks."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.status)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?x=1"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def make_webhook(server: LiveServer, url: str, **options: Any) -> dict[str, Any]:
    answer = server.call("POST", "/v1/webhooks", {"url": url, **options}, key=server.owner)
    assert answer.status == 201, answer.content
    webhook: dict[str, Any] = answer.json
    return webhook


def test_a_webhook_is_told_with_a_signature(server: LiveServer, receiver: Receiver) -> None:
    webhook = make_webhook(server, receiver.url, with_text=True)
    id = remember(server, "Anna likes tea.")
    wait_until(lambda: receiver.requests)
    headers, body = receiver.requests[0]
    assert json.loads(body)["items"][0]["id"] == id
    assert json.loads(body)["items"][0]["text"] == "Anna likes tea."
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(webhook["secret"].removeprefix("whsec_").encode(), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_the_words_are_not_sent_unless_asked_for(server: LiveServer, receiver: Receiver) -> None:
    make_webhook(server, receiver.url)
    remember(server, "Anna likes tea.")
    wait_until(lambda: receiver.requests)
    assert b"tea" not in receiver.requests[0][1]


def test_deliveries_are_logged_and_a_failed_one_is_tried_again(server: LiveServer, receiver: Receiver) -> None:
    receiver.status = 503
    webhook = make_webhook(server, receiver.url)
    remember(server, "Anna likes tea.")
    path = f"/v1/webhooks/{webhook['id']}/deliveries"
    wait_until(lambda: server.call("GET", path, key=server.owner).json["items"])
    failed = server.call("GET", path, key=server.owner).json["items"][0]
    assert (failed["status"], failed["items"], failed["error"]) == (503, 1, "the webhook answered 503")
    receiver.status = 200
    jobs = server.call("GET", "/v1/jobs", key=server.owner).json["items"]
    job = next(job for job in jobs if job["kind"] == "webhook")
    server.call("POST", f"/v1/jobs/{job['id']}/retry", key=server.owner)
    wait_until(lambda: server.call("GET", path, key=server.owner).json["items"][0]["status"] == 200)


def test_a_redirect_is_not_followed(server: LiveServer, receiver: Receiver) -> None:
    receiver.status = 302
    webhook = make_webhook(server, receiver.url)
    remember(server, "Anna likes tea.")
    path = f"/v1/webhooks/{webhook['id']}/deliveries"
    wait_until(lambda: server.call("GET", path, key=server.owner).json["items"])
    assert server.call("GET", path, key=server.owner).json["items"][0]["error"] == "the webhook answered 302"


def test_a_tenants_webhook_is_told_of_its_own(server: LiveServer, receiver: Receiver) -> None:
    key, acme = server.services.keys.create("acme", tenant="acme")
    server.services.webhooks.create(key.id, "", receiver.url, True)  # no tenant: it may name an address in here
    remember(server, "A secret of somebody else.")
    remember(server, "Ours.", key=acme)
    wait_until(lambda: receiver.requests)
    texts = [item["text"] for _, body in receiver.requests for item in json.loads(body)["items"]]
    assert texts == ["Ours."]


def test_the_webhook_of_a_revoked_key_stops(server: LiveServer, receiver: Receiver) -> None:
    key, _ = server.services.keys.create("acme", tenant="acme")
    webhook, _ = server.services.webhooks.create(key.id, "acme", receiver.url, True)
    server.services.keys.revoke(key.id)
    wait_until(lambda: server.services.webhooks.get(webhook.id).problem)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/x",
        "https://user:pass@example.org/",
        "https://example.org/#x",
        "https://",
        "http://example.org/x",
        "https://exa mple.org/",
        "https://[::1",
    ],
)
def test_a_url_that_can_be_none_is_refused(url: str) -> None:
    with pytest.raises(InputError):
        check_url(url, allow_private=False)


def test_webhooks_are_for_admins(server: LiveServer) -> None:
    _, reader = server.services.keys.create("reader", tenant="acme", rights=["read"])
    assert server.call("GET", "/v1/webhooks", key=reader).status == 403


INSIDE = [
    *("127.0.0.1", "localhost", "LOCALHOST.", "a.localhost", "[::1]", "10.0.0.1", "169.254.169.254", "0.0.0.0"),
    *("[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1."),
    *("[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[fec0::1]", "[::7f00:1]", "[::ffff:8.8.8.8]", "[2002:7f00:1::]"),
    *("224.0.0.1", "239.1.1.1", "[ff0e::1]", "[fd00::1]", "[fe80::1]", "[2001:db8::1]", "100.64.0.1", "240.0.0.1"),
]


@pytest.mark.parametrize("host", INSIDE)
def test_an_address_inside_this_network_is_refused_at_once(host: str) -> None:
    with pytest.raises(InputError, match="inside this network"):
        check_url(f"https://{host}/", allow_private=False)


@pytest.mark.parametrize("host", [host for host in INSIDE if host not in ("LOCALHOST.", "a.localhost", "127.0.0.1.")])
def test_an_address_inside_this_network_is_refused_when_something_is_sent(host: str) -> None:
    with pytest.raises(DeliveryError, match="inside this network"):
        find_address(check_url(f"https://{host}/", allow_private=True), allow_private=False)


@pytest.mark.parametrize("host", ["example.org", "8.8.8.8", "[2606:4700:4700::1111]", "localhost.example.org"])
def test_other_addresses_are_taken(host: str) -> None:
    assert check_url(f"https://{host}/", allow_private=False).hostname
