"""Bodies that are too long or too slow."""

from __future__ import annotations

import asyncio
import socket
from http.client import HTTPConnection
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from tests.support.live_server import LiveServer, StartServer

from eunoe.server.middleware.body_limit import BodyLimitMiddleware


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
