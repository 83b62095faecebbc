"""Requests: repeated only where that is safe, and the key goes to the address given and nowhere else."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import eunoe
from eunoe.errors import ClosedError, InputError, RemoteError, StoreBusyError

KEY = "eun_key"
Reply = tuple[int, dict[str, str], bytes] | None
"""Status, headers and body; None closes the connection without an answer."""


class ScriptedServer:
    """A real HTTP server that answers as it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections: set[int] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.connections.add(self.client_address[1])
                outer.requests.append((self.command, self.path, dict(self.headers), body))
                reply = (
                    outer.replies.pop(0) if outer.replies else (200, {}, b'{"receipts": [], "hits": [], "notes": []}')
                )
                if reply is None:
                    self.close_connection = True
                    return
                status, headers, content = reply
                self.send_response(status)
                for name, value in (headers | {"Content-Length": str(len(content))}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setattr("eunoe.net.http._sleep", lambda seconds: None)
    server = ScriptedServer()
    yield server
    server.stop()


def problem(status: int, code: str) -> Reply:
    content = {"code": code, "detail": "what is wrong", "hint": "what to do"}
    return status, {"Content-Type": "application/problem+json"}, json.dumps(content).encode()


def test_connections_are_used_again(server: ScriptedServer) -> None:
    with eunoe.connect(server.url, KEY) as memory:
        for _ in range(5):
            memory.recall("user=anna", "tea")
    assert len(server.connections) == 1
    assert len(server.requests) == 5


def test_threads_share_a_memory(server: ScriptedServer) -> None:
    with eunoe.connect(server.url, KEY) as memory, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: memory.recall("user=anna", f"tea {number}"), range(64)))
    asked = [json.loads(body)["query"] for _, _, _, body in server.requests]
    assert sorted(asked) == sorted(f"tea {number}" for number in range(64))


@pytest.mark.parametrize(
    "fault", [None, problem(503, "store_busy"), problem(429, "rate_limited"), problem(502, "gateway")]
)
def test_what_reads_is_repeated(server: ScriptedServer, fault: Reply) -> None:
    server.replies = [fault, fault]
    with eunoe.connect(server.url, KEY) as memory:
        assert memory.recall("user=anna", "tea") == []
    assert len(server.requests) == 3


@pytest.mark.parametrize("verb", ["observe", "remember_many"])
def test_a_write_is_repeated_under_the_same_key(server: ScriptedServer, verb: str) -> None:
    server.replies = [None, problem(503, "store_busy")]
    with eunoe.connect(server.url, KEY) as memory:
        getattr(memory, verb)("user=anna", ["one"])
        getattr(memory, verb)("user=anna", ["one"])
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in server.requests]
    assert len(keys) == 4
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]


def test_what_may_not_happen_twice_is_sent_once(server: ScriptedServer) -> None:
    server.replies = [None]
    with eunoe.connect(server.url, KEY) as memory, pytest.raises(RemoteError, match="not known"):
        memory.forget("user=anna", "a")
    assert len(server.requests) == 1


def test_in_the_end_the_error_is_told(server: ScriptedServer) -> None:
    server.replies = [problem(503, "store_busy")] * 3
    with eunoe.connect(server.url, KEY) as memory, pytest.raises(StoreBusyError, match="what is wrong"):
        memory.status()


def test_a_connection_that_the_server_closed_while_idle_is_not_used(server: ScriptedServer) -> None:
    server.replies = [(200, {"Connection": "close"}, b'{"scopes": []}')]
    with eunoe.connect(server.url, KEY) as memory:
        assert memory.scopes() == []
        memory.recall("user=anna", "tea")
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    "reply",
    [(200, {}, b"<html>"), (500, {}, b"oops"), (404, {}, b"{}"), (418, {}, b"[]"), problem(404, "no_such_path")],
)
def test_what_is_no_eunoe_server_is_told_so(server: ScriptedServer, reply: Reply) -> None:
    server.replies = [reply]
    with eunoe.connect(server.url, KEY) as memory, pytest.raises(RemoteError, match=r"127\.0\.0\.1"):
        memory.status()


def test_no_error_shows_the_key(server: ScriptedServer) -> None:
    server.replies = [problem(401, "unauthorized")]
    memory = eunoe.connect(server.url, KEY)
    with pytest.raises(eunoe.errors.AccessError) as caught:
        memory.status()
    shown = f"{caught.value} {memory!r} {memory.admin!r} {memory._transport!r}"  # type: ignore[attr-defined]
    memory.close()
    assert KEY not in shown


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with eunoe.connect(f"http://127.0.0.1:{port}", KEY) as memory, pytest.raises(RemoteError, match="eunoe serve"):
        memory.forget("user=anna", "a")


def test_a_server_that_hangs_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with eunoe.connect(url, KEY, timeout=0.05) as memory, pytest.raises(RemoteError, match="in time"):
            memory.status()


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("http://example.org", KEY), {}, "unencrypted"),
        (("http://127.0.0.1.example.org", KEY), {}, "unencrypted"),
        (("ftp://127.0.0.1", KEY), {}, "cannot read"),
        (("127.0.0.1:8765", KEY), {}, "cannot read"),
        (("http://127.0.0.1:x", KEY), {}, "cannot read"),
        (("http://anna:secret@127.0.0.1", KEY), {}, "pass the key"),
        (("http://127.0.0.1?key=x", KEY), {}, "pass the key"),
        (("http://127.0.0.1/\r\nX: y", KEY), {}, "cannot read"),
        ((7, KEY), {}, "must be text"),
        (("http://127.0.0.1", "a\r\nX: y"), {}, "not one"),
        (("http://127.0.0.1", "ключ"), {}, "not one"),
        (("http://127.0.0.1", 7), {}, "not one"),
        (("http://127.0.0.1", KEY), {"timeout": 0}, "timeout"),
        (("http://127.0.0.1", KEY), {"timeout": "x"}, "timeout"),
        (("http://example.org", KEY), {"insecure": "no"}, "insecure"),
    ],
)
def test_what_cannot_be_connected_to_is_refused(
    arguments: tuple[str, str], options: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        eunoe.connect(*arguments, **options)  # type: ignore[arg-type]


def test_plain_http_to_another_machine_can_be_allowed() -> None:
    eunoe.connect("http://example.org", KEY, insecure=True).close()
    eunoe.connect("https://example.org/memory", KEY).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_talk_on_its_parents_pool(server: ScriptedServer) -> None:
    with eunoe.connect(server.url, KEY) as memory:
        memory.recall("user=anna", "parent")
        connections = memory._transport._client  # type: ignore[attr-defined]
        connections._process = -1  # as it is in a child
        memory.recall("user=anna", "child")
    assert len(server.connections) == 2


def test_a_closed_one_is_not_opened_again(server: ScriptedServer) -> None:
    memory = eunoe.connect(server.url, KEY)
    memory.close()
    with pytest.raises(ClosedError):
        memory.recall("user=anna", "tea")
    assert server.requests == []


def test_an_export_that_breaks_off_leaves_no_file(
    server: ScriptedServer, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chunked: Callable[[bytes], bytes] = lambda line: f"{len(line):x}\r\n".encode() + line + b"\r\n"  # noqa: E731
    content = chunked(b'{"eunoe": 1}\n') + b"ff\r\nhalf a line"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + content)

        thread = threading.Thread(target=serve)
        thread.start()
        target = os.path.join(tmp_path, "export.jsonl")
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with eunoe.connect(url, KEY) as memory, pytest.raises(RemoteError, match="broke off"):
            memory.admin.export("user=anna", target)
        thread.join()
    assert os.listdir(tmp_path) == []
