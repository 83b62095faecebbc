"""A server behind an address, spoken to with the standard library alone."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_RETRIED = (408, 429)
_SHOWN = 300
_MOST_OF_A_REFUSAL = 10_000

_sleep, _clock = time.sleep, time.monotonic


class Failed(Exception):
    """No good answer. `status` is 0 where there was none at all; `said` is the start of a refusal."""

    def __init__(self, message: str, status: int = 0, said: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.said = said


class _Passing(Failed):
    """Trouble that may be over soon."""

    def __init__(self, message: str, status: int = 0, said: str = "", wait: float = 0.0) -> None:
        super().__init__(message, status, said)
        self.wait = wait


class Endpoint:
    """Asks one server. Redirects are refused, passing trouble is tried again, and the key is never shown."""

    def __init__(
        self,
        base: str,
        headers: Mapping[str, str],
        *,
        key: str = "",
        timeout: float = 30.0,
        attempts: int = 5,
        reading: Callable[[str], str] = lambda said: said,
    ) -> None:
        self.base = base.rstrip("/")
        self._headers = {"Content-Type": "application/json", **headers}
        self._key = key
        self._timeout = timeout
        self._attempts = attempts
        self._reading = reading

    def ask(self, path: str, body: Any = None, attempts: int | None = None, patience: float | None = None) -> bytes:
        """The whole answer to a POST, or to a GET if there is no body; `patience` bounds the time of all attempts."""
        request = _Request(self.base + path, None if body is None else json.dumps(body).encode(), patience)
        wait = _FIRST_WAIT
        for _ in range((attempts or self._attempts) - 1):
            try:
                return self._once(request)
            except _Passing as trouble:
                pause = min(max(wait, trouble.wait), _LONGEST_WAIT)
                if pause >= request.left():
                    raise
                _sleep(pause)
                wait *= 2
        return self._once(request)

    def shown(self, answer: bytes) -> str:
        """The start of an answer, without the key, which some servers repeat."""
        return " ".join(self._hidden(answer.decode(errors="replace"))[:_SHOWN].split())

    def _hidden(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text

    def _once(self, request: _Request) -> bytes:
        try:
            return self._answer(request)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(request.url, error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise _Passing(f"{request.url} cannot be reached: {type(reason).__name__}: {reason}") from error

    def _answer(self, request: _Request) -> bytes:
        """The whole answer, within the time limit even when it comes drop by drop."""
        limit = min(self._timeout, max(request.left(), 0.001))
        deadline = _clock() + limit
        parts = []
        sent = urllib.request.Request(request.url, request.body, self._headers)
        with _opener.open(sent, timeout=limit) as response:
            while part := response.read1():
                parts.append(part)
                if _clock() > deadline:
                    raise TimeoutError(f"no whole answer within {limit} s")
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        return b"".join(parts)

    def _refusal(self, url: str, error: urllib.error.HTTPError) -> Failed:
        said = self._hidden(_body(error).decode(errors="replace"))
        message = f"{url} answered {error.code}: {' '.join(self._reading(said)[:_SHOWN].split())}"
        if error.code in _RETRIED or error.code >= 500:
            return _Passing(message, error.code, said, _seconds(error.headers.get("Retry-After")))
        return Failed(message, error.code, said)


class _Request:
    """What is asked, and until when."""

    def __init__(self, url: str, body: bytes | None, patience: float | None) -> None:
        self.url = url
        self.body = body
        self._end = None if patience is None else _clock() + patience

    def left(self) -> float:
        return float("inf") if self._end is None else self._end - _clock()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are refused: following one would hand the key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def is_plain_url(base: str) -> bool:
    """Whether this is an address of a server and nothing else: no user, no password, no query.

    >>> is_plain_url("http://localhost:8080/v1"), is_plain_url("http://anna:secret@localhost/v1")
    (True, False)
    """
    try:
        parts = urlsplit(base)
        host = (parts.hostname or "").encode("idna")
        plain = parts.port != 0 and not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and plain and is_visible_ascii(base)


def is_visible_ascii(text: str) -> bool:
    """Whether a text can stand in a header or an address as it is."""
    return text.isascii() and text.isprintable() and " " not in text


def _body(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_MOST_OF_A_REFUSAL)
    except (OSError, http.client.HTTPException):
        return b"(the answer broke off)"


def _seconds(header: str | None) -> float:
    """Retry-After in seconds; its date form and nonsense count as none."""
    return float(header) if header and header.isdecimal() and header.isascii() else 0.0
