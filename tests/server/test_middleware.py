"""What every request passes: by which name and from which page it comes, how much it brings, what browsers are told."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from tests.support.live_server import LiveServer, StartServer

from eunoe.errors import InputError
from eunoe.server import middleware
from eunoe.server.config import Addresses, ServerConfig
from eunoe.server.middleware import BodyLimitMiddleware, JsonParts

PATHS = ["/", "/v1/status", "/nowhere"]


def _raw(server: LiveServer, text: str) -> tuple[int, str]:
    """The status and the whole reply to bytes that no well-behaved client sends."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(text.replace("\n", "\r\n").encode())
        connection.shutdown(socket.SHUT_WR)
        reply = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    return int(reply.split()[1]) if reply else 0, reply


@pytest.mark.parametrize("path", PATHS)
def test_a_rebound_name_reaches_no_route(server: LiveServer, path: str) -> None:
    headers = {"Host": f"evil.example:{server.port}"}
    answer = server.call("GET", path, key=server.owner, headers=headers)
    assert (answer.status, answer.json["code"]) == (421, "foreign_host")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",  # another server's port
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "127.0.0.1:{port}@evil.example",
        "evil.example@127.0.0.1:{port}",
        "127.0.0.1:{port}/",
        "127.0.0.1:{port} ",
        "127.0.0.1:0{port}",
        "localhost.:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "0.0.0.0:{port}",
        "",
    ],
)
def test_only_the_exact_name_and_port_count(server: LiveServer, host: str) -> None:
    name = host.format(port=server.port)
    status, _ = _raw(server, f"GET /v1/status HTTP/1.1\nHost:{name}\nX-API-Key: {server.owner}\nConnection: close\n\n")
    assert status in (400, 421)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_loopback_names_are_its_own(server: LiveServer, host: str) -> None:
    headers = {"Host": host.format(port=server.port)}
    assert server.call("GET", "/v1/status", key=server.owner, headers=headers).status == 200


def test_a_request_without_a_host_is_refused(server: LiveServer) -> None:
    assert _raw(server, f"GET /v1/status HTTP/1.0\nX-API-Key: {server.owner}\n\n")[0] in (400, 421)


@pytest.mark.parametrize("name", ["Host", "Authorization", "X-API-Key", "Origin", "Cookie"])
def test_a_header_that_is_there_twice_is_refused(server: LiveServer, name: str) -> None:
    values = {"Host": server.host, "Authorization": f"Bearer {server.owner}", "Origin": server.origin}
    lines = [f"{each}: {value}" for each, value in values.items()]
    lines += [f"{name}: {values.get(name, 'x')}", f"{name.lower()}: evil"]
    status, reply = _raw(server, "\n".join(["GET /v1/status HTTP/1.1", *lines, "Connection: close", "", ""]))
    assert status == 400
    assert "embedder" not in reply


def test_two_different_keys_are_refused(server: LiveServer) -> None:
    assert server.call("GET", "/v1/status", key=server.owner, headers={"X-API-Key": "eun_other"}).status == 422


def test_an_absolute_target_does_not_replace_the_host(server: LiveServer) -> None:
    line = f"GET http://127.0.0.1:{server.port}/v1/status HTTP/1.1"
    assert _raw(server, f"{line}\nHost: evil.example\nX-API-Key: {server.owner}\nConnection: close\n\n")[0] == 421
    assert _raw(server, f"{line}\nHost: {server.host}\nConnection: close\n\n")[0] == 401


@pytest.mark.parametrize(
    "smuggled",
    [
        "Content-Length: 4\nTransfer-Encoding: chunked\n\n0\n\nGET /v1/status HTTP/1.1\nHost: {host}\n\n",
        "Content-Length: 0\nContent-Length: 44\n\nGET /v1/status HTTP/1.1\nHost: {host}\n\n",
        "Transfer-Encoding: chunked, identity\n\n0\n\n",
        "Transfer-Encoding : chunked\n\n0\n\n",
        " X-API-Key: folded\n\n",
    ],
)
def test_a_hidden_request_gets_no_reply_of_its_own(server: LiveServer, smuggled: str) -> None:
    head = f"POST /healthz HTTP/1.1\nHost: {server.host}\nX-API-Key: {server.owner}\n"
    _, reply = _raw(server, head + smuggled.format(host=server.host))
    assert "HTTP/1.1 200" not in reply


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "https://localhost"]
)
def test_a_foreign_page_reaches_no_route(server: LiveServer, path: str, origin: str) -> None:
    answer = server.call("GET", path, key=server.owner, headers={"Origin": origin})
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_an_origin_that_is_named_may_call_with_a_key_and_without_cookies(start_server: StartServer) -> None:
    server = start_server(origins=("https://app.example",))
    headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    preflight = server.call("OPTIONS", "/v1/recall", headers=headers)
    assert preflight.status == 200
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    answer = server.call("GET", "/v1/status", key=server.owner, headers={"Origin": "https://app.example"})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "https://app.example")
    assert "access-control-allow-credentials" not in {**preflight.headers, **answer.headers}
    assert "Origin" in answer.headers["vary"]
    cookie = server.log_in(server.owner) | {"Origin": "https://app.example"}
    assert server.call("GET", "/v1/status", headers=cookie).status == 403
    assert server.call("GET", "/v1/status", key=server.owner, headers={"Origin": "https://evil.example"}).status == 403


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-For: 10.0.0.1",
        "X-Forwarded-Proto: https",
        "Forwarded: host=evil.example;proto=https",
        "X-Original-URL: /healthz",
        "X-Rewrite-URL: /healthz",
        "X-HTTP-Method-Override: DELETE",
        "X-Tenant: acme",
        "X-Scope: tenant=acme",
        "Cookie: tenant=acme; scope=user%3Danna",
    ],
)
def test_no_header_changes_who_is_asked_about_what(server: LiveServer, header: str) -> None:
    _, text = server.services.keys.create("reader", tenant="zeta", rights=["read"])
    server.services.memory.blocking.remember("tenant=acme/user=anna", "Anna likes tea.")
    name, _, value = header.partition(": ")
    answer = server.call("GET", "/v1/status", key=text, headers={name: value})
    assert (answer.status, answer.json["facts"]) == (200, 0)
    assert server.call("GET", "/v1/status", headers={name: value}).status == 401


def test_names_that_are_allowed_count(start_server: StartServer) -> None:
    server = start_server(allowed_hosts=("memory.lan", "proxy.lan:8443"), public_url="https://memory.example.com")
    good = ["memory.lan", f"memory.lan:{server.port}", "proxy.lan:8443", "memory.example.com", server.host]
    bad = ["proxy.lan", "memory.lan:1", "memory.example.com:1", "other.lan", "memory.example.com.evil.example"]
    _, key = server.services.keys.create("laptop")
    for host in good + bad:
        answer = server.call("GET", "/v1/status", key=key, headers={"Host": host})
        assert (host, answer.status) == (host, 200 if host in good else 421)


def test_on_all_addresses_an_ip_counts_and_a_name_does_not(start_server: StartServer) -> None:
    server = start_server(host="0.0.0.0")
    for host, status in {"192.168.1.5": 200, "10.0.0.9": 200, "evil.example": 421, "127.0.0.1.nip.io": 421}.items():
        headers = {"Host": f"{host}:{server.port}"}
        assert server.call("GET", "/v1/status", key=server.owner, headers=headers).status == status


def test_a_long_body_is_refused_before_it_is_sent(start_server: StartServer) -> None:
    server = start_server(max_body_bytes=1000)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = f"POST /v1/memories HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 1001\r\n\r\n"
        connection.sendall(head.encode())
        assert b"413" in connection.recv(1000).split(b"\r\n")[0]


def test_a_body_in_chunks_is_counted(start_server: StartServer) -> None:
    server = start_server(max_body_bytes=1000)
    assert _send_chunks(server, "/v1/memories", [b"x" * 100] * 11) == 413
    assert _send_chunks(server, "/v1/memories", [b"x" * 100] * 5) == 400
    lines = [b'{"eunoe": 1}\n', *[b"\n" * 100] * 20]
    assert _send_chunks(server, "/v1/import", lines) != 413


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/recall", "/mcp", "/compat/mem0/memories", "/session"])
def test_who_sent_too_much_reads_why_and_asks_on(server: LiveServer, path: str) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {"Authorization": f"Bearer {server.owner}", "Content-Type": "application/json"}
    with closing(connection):
        connection.connect()
        opened = connection.sock
        for body in (b"x" * 30_000_000, iter([b"x" * 1_000_000] * 30)):
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            assert answer.status == 413
            assert json.load(answer)["code"] == "body_too_large"
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        assert connection.sock is opened


@pytest.mark.parametrize(
    ("path", "start", "part", "end"),
    [
        ("/v1/recall", '{"scope": "user=anna", "query": "x", ', '"k%d": 1', "}"),
        ("/v1/messages", '{"scope": "user=anna", "messages": [', '{"content": "m%d"}', "]}"),
        ("/v1/memories", '{"scope": "user=anna", "items": [', "[%d]", "]}"),
        ("/mcp", '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {', '"k%d": 1', "}}"),
    ],
)
def test_a_body_of_too_many_parts_is_refused(server: LiveServer, path: str, start: str, part: str, end: str) -> None:
    body = start + ",".join(part % number for number in range(51_000)) + end
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    answer = server.call("POST", path, body, key=server.owner, headers=headers)
    assert (answer.status, answer.json["code"]) == (413, "body_too_large")
    assert "50,000" in answer.json["detail"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_parts_are_counted_wherever_a_body_is_cut(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    body = json.dumps({"a": ['[{"\\', "{,[\\\\", 'x"', {"": [1, 2]}], "\\": "\\"}).encode()
    parts = 11  # four keys, four texts, three lists and objects
    for most in (parts, parts - 1):
        monkeypatch.setattr(middleware, "MAX_PARTS", most)
        counted = JsonParts()
        counts = [counted.are_too_many(body[start : start + size]) for start in range(0, len(body), size)]
        assert counts[-1] is (most < parts)


def test_the_numbers_of_vectors_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "MAX_VALUES", 1000)
    assert not JsonParts().are_too_many(json.dumps([0.5] * 1001).encode())
    assert JsonParts().are_too_many(json.dumps([0.5] * 1002).encode())


def test_a_body_that_does_not_come_is_given_up() -> None:
    async def never() -> Any:
        await asyncio.Event().wait()

    async def read(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()

    app = BodyLimitMiddleware(read, max_bytes=10, grace_seconds=0.01)
    scope = {"type": "http", "path": "/", "headers": []}
    with pytest.raises(HTTPException) as error:
        asyncio.run(app(scope, never, never))
    assert error.value.status_code == 408


def _send_chunks(server: LiveServer, path: str, chunks: list[bytes]) -> int:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {"Authorization": f"Bearer {server.owner}", "Content-Type": "application/json"}
    try:
        connection.request("POST", path, iter(chunks), headers, encode_chunked=True)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/healthz", "/v1/status", "/nowhere", "/v1/recall"])
@pytest.mark.parametrize("host", ["", "evil.example"])
def test_every_reply_has_them_also_a_refusal(server: LiveServer, path: str, host: str) -> None:
    answer = server.call("GET", path, headers={"Host": host} if host else {})
    policy = answer.headers["content-security-policy"]
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers
    assert "strict-transport-security" not in answer.headers


def test_behind_https_browsers_are_told_to_stay_there(start_server: StartServer) -> None:
    server = start_server(public_url="https://memory.example.com")
    answer = server.call("GET", "/healthz", headers={"Host": "memory.example.com"})
    assert answer.headers["strict-transport-security"].startswith("max-age=")
    assert "strict-transport-security" not in server.call("GET", "/healthz").headers


def test_a_fault_of_ours_tells_nothing_and_has_them_too(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("Anna likes tea.")

    monkeypatch.setattr(server.services.keys, "list", fail)
    answer = server.call("GET", "/v1/keys", key=server.owner)
    assert (answer.status, answer.json["code"]) == (500, "fault")
    assert b"Anna" not in answer.content
    assert "content-security-policy" in answer.headers
    assert "GET /v1/keys failed: RuntimeError" in caplog.text


def test_every_request_has_an_id_of_ours(server: LiveServer) -> None:
    sent = {"X-Request-ID": "evil"}
    ids = {server.call("GET", "/healthz", headers=sent).headers["x-request-id"] for _ in range(3)}
    assert (len(ids), "evil" in ids) == (3, False)


@pytest.mark.parametrize(
    "origin", ["*", "null", "app.example", "https://", "https://a.example/path", "ftp://a.example"]
)
def test_an_origin_is_named_one_by_one(origin: str) -> None:
    with pytest.raises(InputError, match="--origin"):
        Addresses(ServerConfig(origins=(origin,)))


@pytest.mark.parametrize(
    "url",
    [
        "memory.example.com",
        "http://memory.example.com",
        "https://memory.example.com/path",
        "https://memory.example.com?x=1",
        "https://user:password@memory.example.com",
        "ftp://memory.example.com",
        "https://",
    ],
)
def test_a_public_address_is_an_origin_by_https(url: str) -> None:
    with pytest.raises(InputError, match="--public-url"):
        Addresses(ServerConfig(public_url=url))


@pytest.mark.parametrize(
    "url", ["https://Memory.example.com/", "http://127.0.0.1:8765", "http://localhost:1", "http://[::1]:1"]
)
def test_without_https_it_is_on_this_machine(url: str) -> None:
    assert Addresses(ServerConfig(public_url=url)).public_url == url.rstrip("/").lower()


def test_the_page_has_to_come_from_where_the_request_goes() -> None:
    addresses = Addresses(ServerConfig(port=8765, allowed_hosts=("memory.lan",)))
    assert addresses.is_own_origin("http://127.0.0.1:8765", "127.0.0.1:8765")
    assert addresses.is_own_origin("https://memory.lan", "memory.lan")
    assert not addresses.is_own_origin("http://localhost:8765", "127.0.0.1:8765")
    assert not addresses.is_own_origin("http://127.0.0.1:8765", "memory.lan")
    assert not addresses.is_own_origin("", "")
