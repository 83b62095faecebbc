"""Bodies that are too long or too slow, or have too many parts."""

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

from eunoe.server import middleware
from eunoe.server.middleware import BodyLimitMiddleware, JsonParts


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
