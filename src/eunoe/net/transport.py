"""Requests to one server: JSON there and back, repeated where that is safe.

It never follows a redirect, so the key goes to the address that was given and nowhere else.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from http.client import HTTPException, HTTPResponse
from itertools import chain
from math import inf
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from eunoe import errors
from eunoe.errors import AccessError, EunoeError, InputError, RemoteError
from eunoe.model.arguments import as_list, check_metadata
from eunoe.model.message import Message
from eunoe.model.scope import Scope
from eunoe.net.http import Address, HttpClient, HttpError, Retry


def error_of(status: int, content: str, address: Address) -> EunoeError:
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


def _read(content: str) -> dict[str, Any]:
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


def _check_metadata(body: Any) -> None:
    """Refuse metadata that JSON would change without a word: keys that are no texts, tuples."""
    if isinstance(body, Mapping):
        lists = (as_list(body.get(name), name, str | Mapping | Message) for name in ("messages", "items"))
        for value in chain([body], *lists):
            if isinstance(value, Mapping) and isinstance(value.get("metadata"), Mapping):
                check_metadata(value["metadata"])


_RETRY: Final = Retry(3, first_pause=0.1, longest_pause=5.0, statuses=(429, 502, 503, 504), after_timeout=False)
"""For requests that may be sent again."""


class Transport:
    """Sends requests of a memory and reads answers. Threads may share it."""

    def __init__(self, address: Address, key: str, timeout: float) -> None:
        self.address = address
        self._client = HttpClient(
            address.url, headers={"Authorization": f"Bearer {key}"}, secret=key, timeout=timeout, retry=_RETRY
        )

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
        _check_metadata(body)
        data = None if body is None else json.dumps(body, default=plain_value).encode()
        with self._failures():
            content = self._client.request(
                method,
                _target(path, query),
                data,
                headers=headers,
                timeout=inf if is_slow else None,
                attempts=None if is_repeatable or is_keyed else 1,
            )
        return self._parse(content)

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
        with self._failures():
            answer = self._client.open(
                method, _target(path, query), body, headers=headers, timeout=inf if body else None
            )
        with answer:
            yield answer

    def read_json(self, answer: HTTPResponse) -> Any:
        """The JSON of an answer."""
        try:
            return self._parse(answer.read())
        except (OSError, HTTPException) as error:
            raise RemoteError(f"the answer of {self.address.url} broke off") from error

    def close(self) -> None:
        """Close all connections. A call after this raises ClosedError."""
        self._client.close()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except HttpError as error:
            url, cause = self.address.url, error.__cause__
            if error.status:
                raise error_of(error.status, error.refusal, self.address) from None
            if not error.is_connected:
                said = getattr(cause, "strerror", None) or cause
                raise RemoteError(
                    f"no server answers at {url} ({said}): start one with `eunoe serve`, or check the address"
                ) from cause
            fault = (
                f"{url} did not answer in time" if isinstance(cause, TimeoutError) else f"the connection to {url} broke"
            )
            raise RemoteError(f"{fault}: whether it did what was asked is not known") from cause

    def _parse(self, content: bytes) -> Any:
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise RemoteError(
                f"{self.address.url} does not answer as a Eunoe server does: check the address"
            ) from error


def _target(path: str, query: Mapping[str, Any] | None) -> str:
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in (query or {}).items()}
    return f"{path}?{urlencode(texts, doseq=True)}" if texts else path
