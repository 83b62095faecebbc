"""Changes of other things than memories, such as keys and webhooks: what no memory tells of is noted here."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.server.access import Caller
from eunoe.server.audit import AuditOutcome

_READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_READ_OPERATIONS: Final = frozenset(
    {
        *("recall", "get_context", "look_up", "get_memories", "list_by_files", "get_access_counts"),
        *("extract", "flush", "check", "test_model"),
    }
)
"""Questions whose body is too long for a path. All other requests that are no GET are taken for changes."""
_READ_PATHS: Final = ("/mcp", "/compat/", "/api/projects/")
"""Here every change is one of a memory, which tells of it itself."""


class AuditMiddleware:
    """Stands behind the authentication and notes each request that was no question and that no memory told of."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller | None = scope.get("state", {}).get("caller")
        if caller is None or scope["method"] in _READ_METHODS or scope["path"].startswith(_READ_PATHS):
            return await self._app(scope, receive, send)
        is_noted = False

        async def note(status: int, is_replay: bool) -> None:
            nonlocal is_noted
            is_noted = True
            operation = getattr(scope.get("route"), "name", "")
            outcome = None if is_replay else _outcome(status)
            if caller.trail.is_empty and outcome and operation and operation not in _READ_OPERATIONS:
                await asyncio.to_thread(caller.trail.note, operation, (), 1 if outcome == "done" else 0, outcome)

        async def noting_send(message: Message) -> None:
            if message["type"] == "http.response.start":  # before the reply: what was acknowledged is in the log
                await note(message["status"], "idempotency-replayed" in Headers(raw=message["headers"]))
            await send(message)

        try:
            await self._app(scope, receive, noting_send)
        finally:
            if not is_noted:
                await note(500, is_replay=False)


def _outcome(status: int) -> AuditOutcome | None:
    """None for a request that could not be understood: nothing came of it."""
    if status < 400:
        return "done"
    if status == 403:
        return "refused"
    return "failed" if status >= 500 else None
