"""Replies short enough for a page: long texts and long lists are cut, and say how long they are."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER: Final = "eunoe-text-limit"
"""A request with this header wants no text longer than so many characters."""
MAX_REPLY_BYTES: Final = 200_000
_MAX_ITEMS: Final = 500
"""A list has at most so many."""
_FEWEST: Final = 8
"""Below so many characters or items a reply is not cut any further."""


class AbridgementMiddleware:
    """Cuts JSON replies to requests that ask for it. All others pass untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = Headers(scope=scope).get(HEADER, "") if scope["type"] == "http" else ""
        if not (limit.isascii() and limit.isdecimal() and len(limit) <= 9):
            return await self._app(scope, receive, send)
        return await self._app(scope, receive, _Abridged(send, int(limit)))


class _Abridged:
    """Holds a JSON reply back until it is complete, then sends what is left of it."""

    def __init__(self, send: Send, limit: int) -> None:
        self._send = send
        self._limit = limit
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self._start)

    async def _finish(self, start: Message) -> None:
        body = abridge(bytes(self._body), self._limit)
        MutableHeaders(raw=start["headers"])["content-length"] = str(len(body))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _is_json(message: Message) -> bool:
    return Headers(raw=message["headers"]).get("content-type", "").startswith("application/json")


def abridge(body: bytes, characters: int) -> bytes:
    """A JSON document with its texts and lists cut until it is small enough.

    >>> abridge(b'{"text": "abcdefghijkl", "ids": [1, 2]}', 10)
    b'{"text": {"cut": "abcdefghij", "length": 12}, "ids": [1, 2]}'
    """
    value, items = json.loads(body), _MAX_ITEMS
    while True:
        shorter = json.dumps(_cut(value, characters, items), ensure_ascii=False).encode(errors="replace")
        if len(shorter) <= MAX_REPLY_BYTES or (characters <= _FEWEST and items <= _FEWEST):
            return shorter
        characters, items = max(characters // 2, _FEWEST), max(items // 2, _FEWEST)


def _cut(value: Any, characters: int, items: int) -> Any:
    if isinstance(value, str) and len(value) > characters:
        return {"cut": value[:characters], "length": len(value)}
    if isinstance(value, list):
        shown = [_cut(each, characters, items) for each in value[:items]]
        return {"cut": shown, "length": len(value)} if len(value) > items else shown
    if isinstance(value, dict):
        return {key[:characters]: _cut(each, characters, items) for key, each in list(value.items())[:items]}
    return value
