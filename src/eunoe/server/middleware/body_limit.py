"""How large a body may be, of how many parts, and how slow it may come, decided while it is read."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.server.problems import problem

GRACE_SECONDS: Final = 30.0
"""Every body may take so long,"""
MIN_BYTES_PER_SECOND: Final = 16 * 1024
"""and longer only if it comes faster than this."""
MAX_PARTS: Final = 50_000
"""Texts, lists and objects in one body, keys included: read, each takes a hundred times its bytes."""
MAX_VALUES: Final = 1_000_000
"""With the numbers, of which a vector has many."""
_QUESTION_BYTES: Final = 1024 * 1024
_TEXT_PATHS: Final = (
    *("/v1/messages", "/v1/memories", "/v1/revisions", "/v1/corrections", "/v1/review", "/v1/extract"),
    *("/v1/graph/", "/v1/chat/", "/v1/projects/", "/mcp", "/compat/", "/api/"),
)
"""Here texts come in. What comes elsewhere is a question, ids or settings, and short."""
_IMPORT_PATH: Final = "/v1/import"


class BodyLimitMiddleware:
    """Refuses a body that is too long or has too many parts, whether it says so beforehand or not, or does not come.

    The rest of a refused body is read and dropped, so that the client reads the reply and can ask on.
    """

    def __init__(
        self, app: ASGIApp, max_bytes: int, max_import_bytes: int = 0, grace_seconds: float = GRACE_SECONDS
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_import_bytes = max_import_bytes
        self._grace_seconds = grace_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        most = self._most(scope["path"])
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length[:20]) > most:
            return await problem(413, "body_too_large", _detail(most))(scope, receive, send)
        parts = None if scope["path"] == _IMPORT_PATH else JsonParts()
        body = _Body(receive, most, parts, self._grace_seconds)
        return await self._app(scope, body.receive, send)

    def _most(self, path: str) -> int:
        if path == _IMPORT_PATH:
            return self._max_import_bytes
        return self._max_bytes if path.startswith(_TEXT_PATHS) else min(_QUESTION_BYTES, self._max_bytes)


class _Body:
    """The body of one request, counted as it comes."""

    def __init__(self, receive: Receive, most: int, parts: JsonParts | None, grace_seconds: float) -> None:
        self._receive = receive
        self._most = most
        self._parts = parts
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
            raise HTTPException(408, "the body did not come in time", {"Connection": "close"}) from None
        body = message.get("body", b"")
        self._count += len(body)
        self._is_complete = not message.get("more_body", False)
        if self._count > self._most:
            raise HTTPException(413, _detail(self._most))
        if self._parts and self._parts.are_too_many(body):
            raise HTTPException(413, f"the body has more than {MAX_PARTS:,} texts, lists and objects: send it in parts")
        return message


class JsonParts:
    """Counts the parts of JSON while it comes. Where it is no JSON, reading it will end where the count went wrong."""

    def __init__(self) -> None:
        self._parts = self._values = 0
        self._in_text = False
        self._rest = b""

    def are_too_many(self, chunk: bytes) -> bool:
        """Count a piece, wherever it was cut off."""
        plain = (self._rest + chunk).replace(b"\\\\", b"")
        self._rest = plain[-1:] if plain.endswith(b"\\") else b""
        texts = plain.replace(b'\\"', b"").split(b'"')
        between = b"".join(texts[self._in_text :: 2])
        self._parts += (len(texts) - self._in_text) // 2 + between.count(b"[") + between.count(b"{")
        self._values += between.count(b",")
        self._in_text ^= len(texts) % 2 == 0
        return self._parts > MAX_PARTS or self._values > MAX_VALUES


def _detail(most: int) -> str:
    return f"the body is longer than {most:,} bytes: send it in parts"
