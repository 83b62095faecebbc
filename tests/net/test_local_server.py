"""The local server is found only if it proves that it is the one of the store; whatever else answers gets no token."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.support.live_server import LiveServer

import eunoe
from eunoe.errors import InputError, RemoteError
from eunoe.net.local_server import LocalFiles, find_local_server
from eunoe.server.config import ServerConfig

TOKEN = "the-token-of-the-owner"


@pytest.fixture
def files(path: Path) -> LocalFiles:
    files = LocalFiles.beside(path)
    files.token.write_text(TOKEN)
    return files


@contextmanager
def impostor(answer: Callable[[bytes, socket.socket], None]) -> Iterator[tuple[str, list[bytes]]]:
    """Something on a port that answers each connection in its own way; gives its address and what it was sent."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(65536))
                    with suppress(OSError):
                        answer(heard[-1], connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def say(content: bytes, status: str = "200 OK") -> Callable[[bytes, socket.socket], None]:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    return lambda request, connection: connection.sendall(head + content)


def prove(request: bytes, connection: socket.socket) -> None:
    nonce = parse_qs(urlsplit(request.split()[1].decode()).query)["nonce"][0]
    proof = hmac.new(TOKEN.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    say(json.dumps({"proof": proof}).encode())(request, connection)


def test_a_server_that_runs_is_found_and_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUNOE_STORE", str(path))
    server = LiveServer(ServerConfig(target=str(path), port=0, embedder="none", llm="none"))
    try:
        server.services.write_address(server.origin)
        assert find_local_server(path) == find_local_server() == (server.origin, server.owner)
        assert server.owner not in repr(find_local_server())
        with eunoe.connect() as memory, eunoe.connect(server.origin) as same:
            memory.remember("user=anna", "Anna likes tea.")
            assert same.scopes() == [eunoe.Scope(user="anna")]
    finally:
        server.stop()
    assert find_local_server(path) is None
    with pytest.raises(RemoteError, match="eunoe serve"):
        eunoe.connect()
    with pytest.raises(InputError, match="EUNOE_KEY"):
        eunoe.connect(server.origin)


def test_whoever_proves_itself_is_found(path: Path, files: LocalFiles) -> None:
    with impostor(prove) as (url, heard):
        files.address.write_text(json.dumps({"url": url}))
        assert find_local_server(path) == (url, TOKEN)
    assert all(TOKEN.encode() not in each for each in heard)


def hang(request: bytes, connection: socket.socket) -> None:
    connection.recv(1)  # until the other side gives up


def drip(request: bytes, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b" ")
        threading.Event().wait(0.01)


def flood(request: bytes, connection: socket.socket) -> None:
    while True:
        connection.sendall(b"x" * 65536)


def repeat_nonce(request: bytes, connection: socket.socket) -> None:
    nonce = parse_qs(urlsplit(request.split()[1].decode()).query)["nonce"][0]
    say(json.dumps({"proof": nonce}).encode())(request, connection)


IMPOSTORS = {
    "answers anything": say(b'{"proof": "0000"}'),
    "answers no text": say(b'{"proof": 7}'),
    "answers beyond ASCII": say('{"proof": "ä"}'.encode()),
    "answers a list": say(b"[1]"),
    "answers no JSON": say(b"<html>"),
    "answers nonsense": lambda request, connection: connection.sendall(b"\x00\xff\r\n\r\n\xff"),
    "redirects": say(b"", "302 Found\r\nLocation: http://127.0.0.1:1/"),
    "refuses": say(b'{"proof": ""}', "401 Unauthorized"),
    "repeats the nonce": repeat_nonce,
    "closes": lambda request, connection: None,
    "hangs": hang,
    "drips": drip,
    "floods": flood,
}


@pytest.mark.parametrize("answer", IMPOSTORS.values(), ids=IMPOSTORS)
def test_an_impostor_gets_no_token(
    path: Path, files: LocalFiles, answer: Callable[[bytes, socket.socket], None]
) -> None:
    with impostor(answer) as (url, heard):
        files.address.write_text(json.dumps({"url": url, "pid": os.getpid()}))
        assert find_local_server(path) is None
    assert len(heard) == 1
    assert TOKEN.encode() not in heard[0]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"url": 7}',
        '{"url": "http://example.org:80"}',
        '{"url": "http://127.0.0.1.example.org"}',
        '{"url": "https://127.0.0.1:1"}',
        '{"url": "file:///etc/passwd"}',
        '{"url": "http://127.0.0.1:99999"}',
        '{"url": "http://127.0.0.1:1\\r\\nX: y"}',
        '{"url": "' + "x" * 100_000 + '"}',
        "\x00\x00",
    ],
)
def test_a_file_that_says_nothing_useful_is_no_server(path: Path, files: LocalFiles, content: str) -> None:
    files.address.write_text(content)
    assert find_local_server(path) is None


def test_an_address_that_nobody_listens_at_is_no_server(path: Path, files: LocalFiles) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    files.address.write_text(json.dumps({"url": f"http://127.0.0.1:{port}"}))
    assert find_local_server(path) is None


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda token: token.write_text(" \n"), lambda token: (token.unlink(), token.mkdir())]
)
def test_without_a_token_there_is_no_server(path: Path, files: LocalFiles, damage: Callable[[Path], object]) -> None:
    damage(files.token)
    with impostor(prove) as (url, heard):
        files.address.write_text(json.dumps({"url": url}))
        assert find_local_server(path) is None
    assert heard == []


@pytest.mark.parametrize("target", [":memory:", "sqlite://host/x", "postgres://x", "", "\0"])
def test_what_names_no_file_has_no_server(target: str) -> None:
    assert find_local_server(target) is None
