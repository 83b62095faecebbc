"""Connections that ask for nothing do not keep others out."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress

import pytest
from tests.support.live_server import LiveServer, StartServer

from eunoe.server import process

_HALF = "GET /healthz HTTP/1.1\r\nHost: {}\r\nX-"
_WITHOUT_KEY = "POST /v1/memories HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\n\r\n{{"
_LOGIN = "POST /session HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\n{{"


@pytest.mark.parametrize("sent", ["", "\r\n\r\n", _HALF, _WITHOUT_KEY])
def test_a_request_that_never_ends_is_given_up(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    monkeypatch.setattr(process, "REQUEST_SECONDS", 0.1)
    server = start_server()
    with _connect(server, sent) as connection:
        assert _is_closed(connection)


@pytest.mark.parametrize("sent", ["", _HALF, _LOGIN])
def test_many_that_wait_keep_nobody_out(start_server: StartServer, monkeypatch: pytest.MonkeyPatch, sent: str) -> None:
    monkeypatch.setattr(process, "max_waiting", lambda: 10)
    server = start_server()
    with ExitStack() as stack:
        waiting = [stack.enter_context(_connect(server, sent)) for _ in range(30)]
        assert server.call("GET", "/healthz").status == 200
        assert all(map(_is_closed, waiting[:20]))


def _connect(server: LiveServer, sent: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    connection.sendall(sent.format(server.host).encode())
    return connection


def _is_closed(connection: socket.socket) -> bool:
    """Wait until the server closes it, whatever it answers before. A timeout is raised."""
    with suppress(ConnectionError):
        while connection.recv(10_000):
            pass
    return True
