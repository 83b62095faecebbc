"""A local server of models, for tests: it gives the answers that it is told to, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HttpReply = tuple[int, bytes, dict[str, str]]
Answer = Callable[["ModelServer", dict[str, Any]], HttpReply]


class ModelServer(ThreadingHTTPServer):
    """Gives the answers queued in `script` first, good ones after."""

    daemon_threads = True

    def __init__(self, good: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.good = good
        self.script: list[Answer] = []
        self.models = says(200, {"data": [{"id": "first"}, {"id": "second"}]})
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.release = threading.Event()
        self.root = f"http://127.0.0.1:{self.server_address[1]}"
        self.url = self.root + "/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, **body})
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        answer = self.server.script.pop(0) if self.server.script else self.server.good
        self._send(*answer(self.server, body))

    def do_GET(self) -> None:
        self.server.requests.append({"path": self.path})
        self._send(*self.server.models(self.server, {}))

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        if "X-Held" in headers:
            self.server.release.wait(30)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve(good: Answer) -> Iterator[ModelServer]:
    with ModelServer(good) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.release.set()
        server.shutdown()


def says(status: int, body: Any = "trouble", **headers: str) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda server, request: (status, content, {k.replace("_", "-"): v for k, v in headers.items()})


def begins(body: bytes) -> Answer:
    """Sends this, and no more until the server is released."""

    def answer(server: ModelServer, request: dict[str, Any]) -> HttpReply:
        return 200, body, {"Content-Length": str(len(body) + 1), "X-Held": "yes"}

    return answer


def hangs(server: ModelServer, request: dict[str, Any]) -> HttpReply:
    server.release.wait(30)
    return server.good(server, request)
