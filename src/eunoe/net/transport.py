"""Requests to one server: JSON there and back, repeated where that is safe.

It never follows a redirect, so the key goes to the address that was given and nowhere else.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import ssl
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from threading import Lock
from typing import Any, Final
from urllib.parse import SplitResult, urlencode, urlsplit
from uuid import UUID

from eunoe import errors
from eunoe.errors import AccessError, ClosedError, EunoeError, InputError, RemoteError
from eunoe.model.arguments import show
from eunoe.model.message import Message
from eunoe.model.scope import Scope

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is."""

    host: str
    port: int
    is_secure: bool
    """Whether what is sent is encrypted on its way."""
    prefix: str = ""
    """The path under which it lies there."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """
        >>> Address.parse("http://127.0.0.1:8765/").url
        'http://127.0.0.1:8765'
        """
        parts = _split(url)
        host = parts.hostname or ""
        return cls(host, parts.port or _PORTS[parts.scheme], parts.scheme == "https", parts.path.rstrip("/"))

    @property
    def is_loopback(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def host_header(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.host_header}{self.prefix}"


def _split(url: str) -> SplitResult:
    if not isinstance(url, str):
        raise InputError(f"url must be text, not {type(url).__name__}")
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        raise InputError(f"cannot read {show(url)} as an address: write http://127.0.0.1:8765") from None
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in _PORTS or not parts.hostname or not has_port or not is_plain:
        raise InputError(f"cannot read {show(url)} as an address: write http://127.0.0.1:8765 or https://example.org")
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError("an address has no name, key, ? or # in it: pass the key as `key`")
    return parts


_MAX_IDLE: Final = 8
"""More are closed after use: who has more threads than this at once has them all the time."""


class ConnectionPool:
    """The connections to one server. Each is used by one thread at a time."""

    def __init__(self, address: Address, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._idle: list[HTTPConnection] = []
        self._lock = Lock()
        self._is_closed = False
        self._process = os.getpid()
        self._tls = ssl.create_default_context() if address.is_secure else None

    @contextmanager
    def one(self, timeout: float | None) -> Iterator[HTTPConnection]:
        """A connection for one request. It is kept, unless an error is raised or whoever uses it closes it."""
        connection = self._take() or self._connect()
        try:
            connection.sock.settimeout(timeout)
            yield connection
        except BaseException:
            connection.close()
            raise
        self._keep(connection)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> HTTPConnection | None:
        """One that is idle and that the server has not closed meanwhile."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise ClosedError("the memory was closed: connect again")
                self._leave_to_parent()
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not _has_something_to_read(connection.sock):
                return connection
            connection.close()

    def _leave_to_parent(self) -> None:
        """After a fork: the connections are the parent's."""
        if self._process != os.getpid():
            self._process = os.getpid()
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def _connect(self) -> HTTPConnection:
        address = self._address
        connection = (
            HTTPSConnection(address.host, address.port, timeout=self._timeout, context=self._tls)
            if address.is_secure
            else HTTPConnection(address.host, address.port, timeout=self._timeout)
        )
        try:
            connection.connect()
        except OSError as error:
            raise RemoteError(
                f"no server answers at {address.url} ({error.strerror or error}): start one with `eunoe serve`, "
                "or check the address"
            ) from error
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection

    def _keep(self, connection: HTTPConnection) -> None:
        with self._lock:
            is_kept = connection.sock is not None and not self._is_closed and len(self._idle) < _MAX_IDLE
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()


def _has_something_to_read(sock: socket.socket) -> bool:
    """Between requests a server has nothing to say, but that it has closed."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def error_of(status: int, content: bytes, address: Address) -> EunoeError:
    """The error that an answer tells of: the same that the memory raised there."""
    problem = _read(content)
    detail, hint = str(problem.get("detail", "")), str(problem.get("hint", ""))
    if kind := _error_class(str(problem.get("code", ""))):
        return kind(detail)
    said = " ".join(filter(None, (f"{detail}." if detail else "", hint)))
    if status == 401:
        return AccessError(f"{address.url} refuses the key: {said}")
    if 300 <= status < 400:
        return RemoteError(f"{address.url} sends elsewhere, and a key is not sent on: give the address itself")
    return RemoteError(f"{address.url} answers {status}: {said or 'check that it is a Eunoe server'}")


def _read(content: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _error_class(code: str) -> type[EunoeError] | None:
    """
    >>> _error_class("not_found")
    <class 'eunoe.errors.NotFoundError'>
    """
    name = code.removeprefix("no_").title().replace("_", "")  # to have no model is an error of that model too
    found = getattr(errors, f"{name}Error", None)
    return found if isinstance(found, type) and issubclass(found, EunoeError) else None


_KEPT_BY_THE_STORE: Final = frozenset({"scope", "position", "recorded", "retired"})
"""Fields of a message that whoever writes it does not set."""


def plain_value(value: Any) -> Any:
    """What JSON itself has no form for, in one that it has."""
    if isinstance(value, Scope | UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Message):
        return {each.name: getattr(value, each.name) for each in fields(value) if each.name not in _KEPT_BY_THE_STORE}
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # an array
        return value.tolist()
    raise InputError(f"a {type(value).__name__} cannot be sent to a server: give texts, numbers, lists or mappings")


_PAUSES_SECONDS: Final = (0.1, 0.4)
"""Before each repetition."""
_LONGEST_PAUSE_SECONDS: Final = 5.0
_PASSING_STATUSES: Final = frozenset({429, 502, 503, 504})
"""Answers after which the same request may do better."""


class Transport:
    """Sends requests and reads answers. Threads may share it."""

    def __init__(self, address: Address, key: str, timeout: float) -> None:
        self.address = address
        self._headers = {"Authorization": f"Bearer {key}"}
        self._timeout = timeout
        self._pool = ConnectionPool(address, timeout)

    def __repr__(self) -> str:
        return f"Transport({self.address.url!r})"

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        is_repeatable: bool = False,
        is_keyed: bool = False,
        is_slow: bool = False,
    ) -> Any:
        """Send a request and return the JSON that it is answered with.

        Args:
            is_repeatable: whether it may be sent again after a fault, as what only reads may be.
            is_keyed: send a key by which the server recognises a repetition; so it may be repeated too.
            is_slow: wait as long as the server works on it.
        """
        headers = {"Content-Type": "application/json"}
        if is_keyed:
            headers["Idempotency-Key"] = uuid.uuid4().hex
        data = None if body is None else json.dumps(body, default=plain_value).encode()
        pauses = _PAUSES_SECONDS if is_repeatable or is_keyed else ()
        timeout = None if is_slow else self._timeout
        return self._repeat(pauses, method, _target(path, query), data, headers, timeout)

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Iterator[bytes] | None = None,
        content_type: str = "",
    ) -> Iterator[HTTPResponse]:
        """Send a request once; body and answer go line by line, whatever their length."""
        headers = {"Content-Type": content_type} if content_type else {}
        with self._pool.one(None if body else self._timeout) as connection:
            answer = self._send(connection, method, _target(path, query), body, headers)
            if answer.status >= 300:
                raise error_of(answer.status, answer.read(), self.address)
            yield answer
            if not answer.isclosed():  # not read to its end
                connection.close()

    def read_json(self, answer: HTTPResponse) -> Any:
        """The JSON of an answer."""
        try:
            return _parse(answer.read(), self.address)
        except (OSError, HTTPException) as error:
            raise RemoteError(f"the answer of {self.address.url} broke off") from error

    def close(self) -> None:
        """Close all connections. A call after this raises ClosedError."""
        self._pool.close()

    def _repeat(self, pauses: tuple[float, ...], *request: Any) -> Any:
        for pause in (*pauses, None):
            try:
                status, retry_after, content = self._exchange(*request)
            except RemoteError as error:
                if pause is None or isinstance(error.__cause__, TimeoutError):
                    raise
            else:
                if status < 300:
                    return _parse(content, self.address)
                if pause is None or status not in _PASSING_STATUSES:
                    raise error_of(status, content, self.address)
                pause = _pause(pause, retry_after)
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str], timeout: float | None
    ) -> tuple[int, str, bytes]:
        with self._pool.one(timeout) as connection:
            answer = self._send(connection, method, target, data, headers)
            try:
                return answer.status, answer.headers.get("Retry-After", ""), answer.read()
            except (OSError, HTTPException) as error:
                raise RemoteError(f"the answer of {self.address.url} broke off") from error

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        target: str,
        body: bytes | Iterator[bytes] | None,
        headers: dict[str, str],
    ) -> HTTPResponse:
        try:
            connection.request(method, self.address.prefix + target, body, self._headers | headers)
            return connection.getresponse()
        except TimeoutError as error:
            raise RemoteError(
                f"{self.address.url} did not answer in time: whether it did what was asked is not known"
            ) from error
        except (OSError, HTTPException) as error:
            raise RemoteError(
                f"the connection to {self.address.url} broke: whether it did what was asked is not known"
            ) from error


def _target(path: str, query: Mapping[str, Any] | None) -> str:
    return f"{path}?{urlencode(_texts(query), doseq=True)}" if query else path


def _texts(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}


def _parse(content: bytes, address: Address) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError as error:
        raise RemoteError(f"{address.url} does not answer as a Eunoe server does: check the address") from error


def _pause(least: float, retry_after: str) -> float:
    """As long as the server asks for, within reason."""
    asked = float(retry_after) if retry_after.isascii() and retry_after.isdecimal() else 0.0
    return min(max(least, asked), _LONGEST_PAUSE_SECONDS)
