"""Requests to one server: JSON there and back, repeated where that is safe.

It never follows a redirect, so the key goes to the address that was given and nowhere else.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Final
from urllib.parse import urlencode

from eunoe.client.address import Address
from eunoe.client.arguments import plain_value
from eunoe.client.connection_pool import ConnectionPool
from eunoe.client.problems import error_of
from eunoe.errors import RemoteError

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
