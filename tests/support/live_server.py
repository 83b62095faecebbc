"""A real server that listens, and how tests call it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from typing import Any

import uvicorn

from eunoe.server.access import Logins, RateLimit
from eunoe.server.config import ServerConfig
from eunoe.server.process import open_listener, uvicorn_settings
from eunoe.server.services import Services


@dataclass
class Answer:
    """What a server answered."""

    status: int
    headers: dict[str, str]
    content: bytes
    cookies: SimpleCookie = field(default_factory=SimpleCookie)

    @property
    def json(self) -> Any:
        return json.loads(self.content)


def call(
    port: int, method: str, path: str, body: Any = None, *, key: str = "", headers: dict[str, str] | None = None
) -> Answer:
    """One request to a port of this machine."""
    sent = {"Authorization": f"Bearer {key}"} if key else {}
    if body is not None and not isinstance(body, str | bytes):
        body, sent["Content-Type"] = json.dumps(body), "application/json"
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, sent | (headers or {}))
        reply = connection.getresponse()
        got = {name.lower(): value for name, value in reply.getheaders()}
        cookies = SimpleCookie()
        for each in reply.headers.get_all("set-cookie") or ():
            cookies.load(each)
        return Answer(reply.status, got, reply.read(), cookies)
    finally:
        connection.close()


class LiveServer:
    """A server that listens on a free port, in a thread of this process."""

    def __init__(self, config: ServerConfig) -> None:
        listener, self.config = open_listener(config)
        self.port = self.config.port
        self.services = Services(self.config)
        self._server = uvicorn.Server(uvicorn_settings(self.services))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]})
        self._listener = listener
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def owner(self) -> str:
        return self.services.owner_token

    def reset(self) -> None:
        """Forget all memories, keys, sessions, clients and failures, for a server that several tests share."""
        memory = self.services.memory.blocking
        for scope in memory.scopes():
            memory.forget(scope, everything=True, may_return=True, exact=True)
        with self.services.state.write() as db:
            for table in ("key", "session", "audit", "oauth_client", "job", "webhook", "idempotency"):
                db.execute(f"DELETE FROM {table}")
        self.services.logins = Logins(self.services.access, self.config.failures_per_minute)
        self.services.registrations = RateLimit(10, burst=10)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own; a body that is no text is sent as JSON."""
        return call(self.port, method, path, body, key=key, headers=headers)

    def log_in(self, key: str) -> dict[str, str]:
        """The headers that a page of this server sends once it has logged in."""
        answer = self.call("POST", "/session", {"token": key}, headers={"Origin": self.origin})
        assert answer.status == 201, answer.content
        (cookie,) = answer.cookies.values()
        return {"Cookie": f"{cookie.key}={cookie.value}", "Origin": self.origin, "Sec-Fetch-Site": "same-origin"}


StartServer = Callable[..., LiveServer]
