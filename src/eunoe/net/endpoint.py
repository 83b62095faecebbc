"""A server behind an address, reached with the standard library alone."""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any, Final
from urllib.parse import urlsplit

from eunoe.errors import EunoeError

_FIRST_PAUSE_SECONDS: Final = 0.5
_MAX_PAUSE_SECONDS: Final = 30.0
_RETRIED_STATUSES: Final = (408, 429)
_MAX_EXCERPT_CHARACTERS: Final = 300
_MAX_REFUSAL_BYTES: Final = 10_000

_sleep, _clock = time.sleep, time.monotonic


class EndpointError(Exception):
    """No good answer. `status` is 0 where there was none at all; `refusal` is the start of what the server said."""

    def __init__(self, message: str, status: int = 0, refusal: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.refusal = refusal
        self.retry_after = retry_after
        """After how many seconds it may be tried again; None if that would be of no use."""


class Endpoint:
    """Asks one server: it refuses redirects, tries again, never shows the key; `find_reason` may cut a refusal."""

    def __init__(
        self,
        base: str,
        headers: Mapping[str, str],
        *,
        key: str = "",
        timeout: float = 30.0,
        attempts: int = 5,
        max_answer_bytes: int,
        find_reason: Callable[[str], str] = str,
    ) -> None:
        self.base = base
        self._headers = {"Content-Type": "application/json", **headers}
        self._key = key
        self._timeout = timeout
        self._attempts = attempts
        self._max_answer_bytes = max_answer_bytes
        self._find_reason = find_reason

    def request(self, path: str, body: Any = None, attempts: int = 0, max_seconds: float | None = None) -> bytes:
        """Return the whole answer to a POST, or to a GET without a body, in `max_seconds` with all its attempts."""
        url, data = self.base + path, None if body is None else json.dumps(body).encode()
        end = inf if max_seconds is None else _clock() + max_seconds
        left, pause = attempts or self._attempts, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._send(url, data, end)
            except EndpointError as error:
                left -= 1
                asked = inf if error.retry_after is None else error.retry_after
                wait = max(min(pause, _MAX_PAUSE_SECONDS), asked)
                # Who asks for a longer pause than an answer may take is asked again by the next call.
                if not left or asked > min(self._timeout, _MAX_PAUSE_SECONDS) or wait >= end - _clock():
                    raise
            _sleep(wait)
            pause *= 2

    def open(self, path: str, body: Any) -> http.client.HTTPResponse:
        """Return the answer to a POST as it comes, unread, at the first attempt."""
        url = self.base + path
        request = urllib.request.Request(url, json.dumps(body).encode(), self._headers)
        with self._failures(url, _clock() + self._timeout):
            response: http.client.HTTPResponse = _opener.open(request, timeout=self._timeout)
        return response

    def excerpt(self, answer: bytes) -> str:
        """Return the start of an answer, without the key, which some servers repeat."""
        return _start(self._without_key(answer))

    def _send(self, url: str, data: bytes | None, end: float) -> bytes:
        """Return the whole answer, within the time limit even when it comes drop by drop."""
        limit = min(self._timeout, max(end - _clock(), 0.001))
        deadline = _clock() + limit
        request = urllib.request.Request(url, data, self._headers)
        with self._failures(url, deadline), _opener.open(request, timeout=limit) as response:
            answer = _read(response, self._max_answer_bytes, deadline)
            if len(answer) > self._max_answer_bytes:
                raise EndpointError(f"{url} answered more than {self._max_answer_bytes:,} bytes")
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        return answer

    @contextmanager
    def _failures(self, url: str, deadline: float) -> Iterator[None]:
        """Turn what goes wrong into an EndpointError."""
        try:
            yield
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(url, error, deadline) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            message = f"{url} cannot be reached: {type(reason).__name__}: {reason}"
            raise EndpointError(message, retry_after=0.0) from error

    def _refusal(self, url: str, error: urllib.error.HTTPError, deadline: float) -> EndpointError:
        try:
            refusal = self._without_key(_read(error, _MAX_REFUSAL_BYTES, deadline)[:_MAX_REFUSAL_BYTES])
        except (OSError, http.client.HTTPException):
            refusal = "(the answer broke off)"
        wish = error.headers.get("Retry-After") or ""  # in seconds; its date form and nonsense count as none
        pause = float(wish) if wish.isascii() and wish.isdecimal() else 0.0
        is_temporary = error.code in _RETRIED_STATUSES or error.code >= 500
        message = f"{url} answered {error.code}: {_start(self._find_reason(refusal))}"
        return EndpointError(message, error.code, refusal, pause if is_temporary else None)

    def _without_key(self, answer: bytes) -> str:
        text = answer.decode(errors="replace")
        return text.replace(self._key, "[key]") if self._key else text


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: following one would hand the key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def _read(response: Any, most: int, deadline: float) -> bytes:
    """Read an answer to its end, or until it is longer than asked for."""
    answer = bytearray()
    while len(answer) <= most and (part := response.read1()):
        answer += part
        if _clock() > deadline:
            raise TimeoutError("no whole answer in time")
    return bytes(answer)


def check_base_url(url: str, error: type[EunoeError]) -> str:
    """Return the address of a server, without a slash at its end; refuse everything else."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        has_more = parts.port == 0 or parts.username or parts.password or parts.query or parts.fragment
        is_address = parts.scheme in ("http", "https") and host and not has_more and _is_visible_ascii(url)
    except ValueError:
        is_address = False
    if not is_address:
        raise error("base_url must look like http://host:port/v1, with no user, password or query")
    return url.rstrip("/")


def find_key(api_key: str | None, variable: str, error: type[EunoeError]) -> str:
    """Return the key that was given, or that an environment variable holds; empty if there is none."""
    key = (api_key or os.environ.get(variable) or "").strip()
    if not _is_visible_ascii(key):
        raise error(f"The API key has characters that no key has; check {variable} or api_key")
    return key


def _is_visible_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _start(text: str) -> str:
    return " ".join(text[:_MAX_EXCERPT_CHARACTERS].split())
