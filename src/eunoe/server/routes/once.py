"""The header Idempotency-Key: a request that carries one is done once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final

from fastapi import Depends, Header, Request
from pydantic_core import to_json
from starlette.responses import Response

from eunoe.memory import repeatable
from eunoe.model.json import json_value
from eunoe.server.idempotency import Attempt, Idempotency, InProgressError
from eunoe.server.routes.common import CallerParam, ServicesParam, reply

_POLL_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 5.0
"""Beyond a lease: long enough to take over from a request that died."""


class Once:
    """Does the work of one request, unless it was done before."""

    def __init__(self, idempotency: Idempotency, caller: str, key: bytes, request: bytes) -> None:
        self._idempotency = idempotency
        self._caller = caller
        self._key = key
        self._request = request

    async def __call__(self, work: Callable[[], Awaitable[Any]]) -> Response:
        if not self._key:
            return reply(await work())
        attempt = await self._begin()
        if attempt.reply is not None:
            return _replay(attempt.reply)
        async with self._in_hand(attempt):
            with repeatable(self._caller.encode() + self._key, attempt.created):
                result = to_json(json_value(await work())).decode()
            await asyncio.to_thread(self._idempotency.finish, attempt, result)
        return Response(result, media_type="application/json")

    async def _begin(self) -> Attempt:
        """Wait for a twin, but not for ever."""
        end = asyncio.get_running_loop().time() + self._idempotency.lease_seconds + _PATIENCE_SECONDS
        while True:
            try:
                return await asyncio.to_thread(self._idempotency.begin, self._caller, self._key, self._request)
            except InProgressError:
                if asyncio.get_running_loop().time() > end:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    @asynccontextmanager
    async def _in_hand(self, attempt: Attempt) -> AsyncIterator[None]:
        renewal = asyncio.create_task(self._renew(attempt))
        try:
            yield
        except Exception:  # not if it is cancelled: nobody knows then what it did, and its lease ends soon
            await asyncio.to_thread(self._idempotency.give_up, attempt)
            raise
        finally:
            renewal.cancel()

    async def _renew(self, attempt: Attempt) -> None:
        while True:
            await asyncio.sleep(self._idempotency.lease_seconds / 3)
            await asyncio.to_thread(self._idempotency.renew, attempt)


def _replay(text: str) -> Response:
    return Response(text, headers={"Idempotency-Replayed": "true"}, media_type="application/json")


async def _find_once(
    request: Request,
    caller: CallerParam,
    services: ServicesParam,
    key: Annotated[
        str,
        Header(
            alias="Idempotency-Key",
            max_length=255,
            description="A text of your own. The same request with the same key has the same reply for a day.",
            examples=["5f0c6b1e-2a52-4d39-a2f2-6f3e1f6f4f5e"],
        ),
    ] = "",
) -> Once:
    secret = services.owner_token.encode()
    line = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    fingerprint = hmac.digest(secret, line + await request.body(), hashlib.sha256) if key else b""
    name = hmac.digest(secret, key.encode(errors="replace"), hashlib.sha256) if key else b""
    return Once(services.idempotency, caller.key.id, name, fingerprint)


OnceParam = Annotated[Once, Depends(_find_once)]
