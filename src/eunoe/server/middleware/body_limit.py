"""How large a body may be and how slow it may come, decided before anything of it is read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.server.problems import problem

GRACE_SECONDS: Final = 30.0
"""Every body may take so long,"""
MIN_BYTES_PER_SECOND: Final = 16 * 1024
"""and longer only if it comes faster than this."""
_CLOSE: Final = {"Connection": "close"}
"""The rest of a body that is refused is not read."""


class BodyLimitMiddleware:
    """Refuses a body that is too long, whether it says so beforehand or not, and one that does not come."""

    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int,
        max_bytes_by_path: Mapping[str, int] | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_bytes_by_path = max_bytes_by_path or {}
        self._grace_seconds = grace_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        most = self._max_bytes_by_path.get(scope["path"], self._max_bytes)
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length[:20]) > most:
            response = problem(413, "body_too_large", _detail(most), headers=_CLOSE)
            return await response(scope, receive, send)
        body = _Body(receive, most, self._grace_seconds)
        return await self._app(scope, body.receive, send)


class _Body:
    """The body of one request, counted as it comes."""

    def __init__(self, receive: Receive, most: int, grace_seconds: float) -> None:
        self._receive = receive
        self._most = most
        self._end = asyncio.get_running_loop().time() + grace_seconds
        self._count = 0
        self._is_complete = False

    async def receive(self) -> Message:
        if self._is_complete:  # what follows is only the news that the client has gone
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._end + self._count / MIN_BYTES_PER_SECOND):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "the body did not come in time", _CLOSE) from None
        self._count += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._count > self._most:
            raise HTTPException(413, _detail(self._most), _CLOSE)
        return message


def _detail(most: int) -> str:
    return f"the body is longer than {most:,} bytes: send it in parts"
