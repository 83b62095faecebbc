"""So many requests a minute for each key, whatever the number of its sessions and tokens."""

from __future__ import annotations

import math

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.server.limits import Allowance, RateLimit
from eunoe.server.problems import ProblemResponse, problem


class RateLimitMiddleware:
    """Stands behind the authentication. Without a limit it lets everything pass."""

    def __init__(self, app: ASGIApp, per_minute: int) -> None:
        self._app = app
        self._limit = RateLimit(per_minute) if per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = scope.get("state", {}).get("caller")
        if caller is None or self._limit is None:
            return await self._app(scope, receive, send)
        allowance = self._limit.take(caller.key.id)
        if allowance.wait:
            return await too_many(allowance)(scope, receive, send)

        async def send_with_limit(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_headers(allowance))
            await send(message)

        return await self._app(scope, receive, send_with_limit)


def too_many(allowance: Allowance) -> ProblemResponse:
    seconds = math.ceil(allowance.wait)
    headers = {**_headers(allowance), "Retry-After": str(seconds)}
    return problem(429, "rate_limit", "too many requests", hint=f"Try again in {seconds} s.", headers=headers)


def _headers(allowance: Allowance) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(allowance.limit),
        "RateLimit-Remaining": str(allowance.remaining),
        "RateLimit-Reset": str(math.ceil(allowance.wait)),
    }
