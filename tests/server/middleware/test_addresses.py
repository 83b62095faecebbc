"""Requests by a foreign name and from foreign pages, as a browser or an attacker's socket sends them."""

from __future__ import annotations

import socket

import pytest
from tests.support.live_server import LiveServer, StartServer

PATHS = ["/", "/healthz", "/v1/status", "/v1/identity?nonce=" + "0" * 32, "/v1/openapi.json", "/session", "/nowhere"]


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


def test_a_foreign_page_gets_no_preflight(server: LiveServer) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = server.call("OPTIONS", "/v1/recall", headers=headers)
    assert (answer.status, "access-control-allow-origin" in answer.headers) == (403, False)


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


def test_a_reply_to_no_page_has_no_cors(start_server: StartServer) -> None:
    server = start_server(origins=("https://app.example",))
    answer = server.call("GET", "/v1/status", key=server.owner)
    assert not [name for name in answer.headers if name.startswith("access-control")]


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
