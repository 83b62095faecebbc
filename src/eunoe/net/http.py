"""Requests to one server, with the standard library alone.

Connections are kept, a request is repeated where that is of use, no redirect is followed, so that a key goes to the
address that was given and nowhere else, and no error shows it.
"""

from __future__ import annotations

import base64
import os
import selectors
import socket
import ssl
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from ipaddress import ip_address
from math import inf
from threading import Lock
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from eunoe.errors import ClosedError, EunoeError, InputError
from eunoe.model.arguments import show

_PORTS: Final = {"http": 80, "https": 443}
_MAX_IDLE: Final = 8
"""More connections are closed after use: who has more threads than this at once has them all the time."""
_MAX_EXCERPT_CHARACTERS: Final = 300
_MAX_REFUSAL_BYTES: Final = 65_536

_sleep, _clock = time.sleep, time.monotonic

Resolver = Callable[[str, int], str]
"""From a host and a port to the IP address that is called, whatever the name leads to later."""


class HttpError(Exception):
    """No good answer."""

    def __init__(self, message: str, status: int = 0, refusal: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        """What the server answered; 0 where it did not, or not to the end."""
        self.refusal = refusal
        """The start of what it said, without the secret."""
        self.retry_after = retry_after
        """After how many seconds it may be tried again; None if that would be of no use."""
        self.is_connected = True
        """Whether the server was there: else nothing was sent."""


@dataclass(frozen=True, slots=True)
class Retry:
    """When a request is repeated. A server that asks for a longer pause than the longest is not asked again."""

    attempts: int = 1
    first_pause: float = 0.5
    """Seconds before the second attempt; each later pause is twice as long."""
    longest_pause: float = 30.0
    statuses: Collection[int] = (408, 429, *range(500, 600))
    after_timeout: bool = True


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
        if not isinstance(url, str):
            raise InputError(f"url must be text, not {type(url).__name__}")
        try:
            parts = urlsplit(url)
            has_port = parts.port is None or parts.port > 0
        except ValueError:
            raise InputError(f"cannot read {show(url)} as an address: write http://127.0.0.1:8765") from None
        if parts.username is not None or parts.query or parts.fragment:
            raise InputError("an address has no name, key, ? or # in it: pass the key as `key`")
        if parts.scheme not in _PORTS or not parts.hostname or not has_port or not is_visible_ascii(url):
            raise InputError(
                f"cannot read {show(url)} as an address: write http://127.0.0.1:8765 or https://example.org"
            )
        port = parts.port or _PORTS[parts.scheme]
        return cls(parts.hostname, port, parts.scheme == "https", parts.path.rstrip("/"))

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


class HttpClient:
    """Asks one server. Threads may share it, and a fork gets connections of its own.

    Args:
        base: its address, under which all paths lie.
        secret: what no error shows, even where the server repeats it.
        timeout: seconds for a whole answer, even one that comes drop by drop.
        max_answer_bytes: a longer answer is refused.
        find_reason: what to show of a refusal.
        resolve: gives the IP address of a host; no proxy is used then.
    """

    def __init__(
        self,
        base: str,
        *,
        headers: Mapping[str, str] = {},
        secret: str = "",
        timeout: float = 30.0,
        retry: Retry = Retry(),  # noqa: B008
        max_answer_bytes: float = inf,
        find_reason: Callable[[str], str] = str,
        resolve: Resolver | None = None,
    ) -> None:
        self.base = base
        self._address = Address.parse(base)
        self._headers = {"User-Agent": "eunoe", **headers}
        self._secret = secret
        self._timeout = timeout
        self._retry = retry
        self._max_answer_bytes = max_answer_bytes
        self._find_reason = find_reason
        self._resolve = resolve
        self._idle: list[HTTPConnection] = []
        self._lock = Lock()
        self._is_closed = False
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._idle)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] = {},
        timeout: float | None = None,
        attempts: int | None = None,
        within: float = inf,
    ) -> bytes:
        """Return the whole answer, in `within` seconds with all attempts and pauses. Raise HttpError."""
        limit = self._timeout if timeout is None else timeout
        end, pause, left = _clock() + within, self._retry.first_pause, attempts or self._retry.attempts
        while True:
            try:
                return self._exchange(method, path, body, headers, min(limit, max(end - _clock(), 0.001)))
            except HttpError as error:
                left -= 1
                asked = inf if error.retry_after is None else error.retry_after
                wait = max(min(pause, self._retry.longest_pause), asked)
                if not left or asked > min(limit, self._retry.longest_pause) or wait >= end - _clock():
                    raise
            _sleep(wait)
            pause *= 2

    def open(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        *,
        headers: Mapping[str, str] = {},
        timeout: float | None = None,
    ) -> HTTPResponse:
        """Return an answer as it comes, unread, at the first attempt; whoever closes it closes its connection."""
        limit = self._timeout if timeout is None else timeout
        url = self.base + path
        with self._failures(url):
            connection = self._connect(limit)
        try:
            with self._failures(url):
                answer = self._send(connection, method, path, body, headers)
                if answer.status >= 300:
                    with answer:
                        raise self._refusal(url, answer, _clock() + limit)
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:
            connection.sock.close()  # the answer holds it until it is closed itself
        return answer

    def excerpt(self, answer: bytes) -> str:
        """Return the start of an answer, without the secret, which some servers repeat."""
        return _start(self._without_secret(answer))

    def close(self) -> None:
        """Close all connections. A call after this raises ClosedError."""
        with self._lock:
            self._is_closed = True
            _close_all(self._idle)

    def _exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], limit: float) -> bytes:
        url, deadline = self.base + path, _clock() + limit
        with (
            self._connection(limit) as connection,
            self._failures(url),
            self._send(connection, method, path, body, headers) as answer,
        ):
            if answer.status >= 300:
                raise self._refusal(url, answer, deadline)
            content = _read(answer, self._max_answer_bytes, deadline)
            if len(content) > self._max_answer_bytes:
                raise HttpError(f"{url} answered more than {self._max_answer_bytes:,} bytes")
            if answer.length:
                raise IncompleteRead(b"", answer.length)
        return content

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str],
    ) -> HTTPResponse:
        target = self._address.prefix + path
        if self._proxy and not self._address.is_secure:
            target = f"http://{self._address.host_header}{target}"
        connection.request(method, target, body, self._headers | dict(headers))
        return connection.getresponse()

    @contextmanager
    def _connection(self, timeout: float) -> Iterator[HTTPConnection]:
        """A connection for one request. It is kept, unless an error is raised or the server has closed it."""
        connection = self._take() or self._connect(timeout)
        try:
            connection.sock.settimeout(None if timeout == inf else timeout)
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            is_kept = connection.sock is not None and not self._is_closed and len(self._idle) < _MAX_IDLE
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()

    def _take(self) -> HTTPConnection | None:
        """One that is idle and that the server has not closed meanwhile."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise ClosedError("the memory was closed: connect again")
                if self._process != os.getpid():  # after a fork: the connections are the parent's
                    self._process = os.getpid()
                    _close_all(self._idle)
                if not self._idle:
                    return None
                connection = self._idle.pop()
            with selectors.DefaultSelector() as selector:
                selector.register(connection.sock, selectors.EVENT_READ)
                if not selector.select(0):  # between requests a server has nothing to say, but that it has closed
                    return connection
            connection.close()

    def _connect(self, timeout: float) -> HTTPConnection:
        address, seconds = self._address, None if timeout == inf else timeout
        try:
            to = self._proxy or (address.host, address.port, {})
            connection = (
                HTTPSConnection(to[0], to[1], timeout=seconds, context=self._tls)
                if address.is_secure
                else HTTPConnection(to[0], to[1], timeout=seconds)
            )
            if self._resolve:  # asking for the name again could give another address
                ip = self._resolve(address.host, address.port)
                plain = socket.create_connection((ip, address.port), seconds)
                secure = self._tls.wrap_socket(plain, server_hostname=address.host) if address.is_secure else None
                connection.sock = secure or plain
            elif self._proxy and address.is_secure:
                connection.set_tunnel(address.host, address.port, to[2])
            if connection.sock is None:
                connection.connect()
        except (OSError, HTTPException, UnicodeError) as error:
            failure = self._failure(self.base, error)
            failure.is_connected = False
            raise failure from error
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    @cached_property
    def _proxy(self) -> tuple[str, int, dict[str, str]] | None:
        """Host, port and headers of the proxy that the environment names for this server, if it names one."""
        if (
            self._resolve
            or self._address.is_loopback
            or not any(name.lower().endswith("_proxy") for name in os.environ)
        ):
            return None
        from urllib.request import getproxies, proxy_bypass

        url = getproxies().get("https" if self._address.is_secure else "http")
        if not url or proxy_bypass(self._address.host):
            return None
        parts = urlsplit(url if "://" in url else f"http://{url}")
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        headers = {"Proxy-Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if parts.username else {}
        if headers and not self._address.is_secure:
            self._headers |= headers
        return parts.hostname or "", parts.port or 80, headers

    @contextmanager
    def _failures(self, url: str) -> Iterator[None]:
        """Turn what goes wrong into an HttpError."""
        try:
            yield
        except (OSError, HTTPException) as error:
            raise self._failure(url, error) from error

    def _failure(self, url: str, error: Exception) -> HttpError:
        is_repeatable = self._retry.after_timeout or not isinstance(error, TimeoutError)
        reason = f"{url} cannot be reached: {type(error).__name__}: {error}"
        return HttpError(reason, retry_after=0.0 if is_repeatable else None)

    def _refusal(self, url: str, answer: HTTPResponse, deadline: float) -> HttpError:
        try:
            refusal = self._without_secret(_read(answer, _MAX_REFUSAL_BYTES, deadline)[:_MAX_REFUSAL_BYTES])
        except (OSError, HTTPException):
            refusal = "(the answer broke off)"
        wish = answer.headers.get("Retry-After") or ""  # in seconds; its date form and nonsense count as none
        pause = float(wish) if wish.isascii() and wish.isdecimal() else 0.0
        message = f"{url} answered {answer.status}: {_start(self._find_reason(refusal))}"
        return HttpError(message, answer.status, refusal, pause if answer.status in self._retry.statuses else None)

    def _without_secret(self, answer: bytes) -> str:
        text = answer.decode(errors="replace")
        return text.replace(self._secret, "[key]") if self._secret else text


def _read(response: HTTPResponse, most: float, deadline: float) -> bytes:
    """Read an answer to its end, or until it is longer than asked for."""
    answer = bytearray()
    while len(answer) <= most and (part := response.read1()):
        answer += part
        if _clock() > deadline:
            raise TimeoutError("no whole answer in time")
    return bytes(answer)


def _close_all(connections: list[Any]) -> None:
    while connections:
        connections.pop().close()


def check_base_url(url: str, error: type[EunoeError]) -> str:
    """Return the address of a server, without a slash at its end; refuse everything else."""
    try:
        Address.parse(url).host.encode("idna")
    except (InputError, UnicodeError):
        raise error("base_url must look like http://host:port/v1, with no user, password or query") from None
    return url.rstrip("/")


def find_key(api_key: str | None, variable: str, error: type[EunoeError]) -> str:
    """Return the key that was given, or that an environment variable holds; empty if there is none."""
    key = (api_key or os.environ.get(variable) or "").strip()
    if not is_visible_ascii(key):
        raise error(f"The API key has characters that no key has; check {variable} or api_key")
    return key


def is_visible_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _start(text: str) -> str:
    return " ".join(text[:_MAX_EXCERPT_CHARACTERS].split())
