"""What is told of each request: a line in the log, metrics, and a trace where that is turned on."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.server.logs import FIELDS, REQUEST_LOGGER
from eunoe.server.metrics import Metrics
from eunoe.server.tracing import RequestSpan, Tracing

_UNMATCHED = "unmatched"
"""The operation of requests to no route: their paths are anybody's words."""
_log = logging.getLogger(REQUEST_LOGGER)


class ObservationMiddleware:
    """Stands outside all that may answer, so that it sees every reply."""

    def __init__(self, app: ASGIApp, metrics: Metrics, tracing: Tracing | None = None) -> None:
        self._app = app
        self._metrics = metrics
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        status = 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began = perf_counter()
        self._metrics.in_flight.inc()
        with self._span(scope) as span:
            try:
                await self._app(scope, receive, send_noted)
            finally:
                self._metrics.in_flight.dec()
                self._note(scope, status, perf_counter() - began)
                if span:
                    span.end(_operation(scope), status)

    def _span(self, scope: Scope) -> AbstractContextManager[RequestSpan | None]:
        return self._tracing.request(scope) if self._tracing else nullcontext()

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        operation, method = _operation(scope), scope["method"]
        self._metrics.note_request(operation, status, seconds)
        if _log.isEnabledFor(logging.INFO):
            caller: Any = scope["state"].get("caller")
            fields = {
                "method": method if method.isalpha() else "other",
                "operation": operation,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "key": caller.key.id if caller else "",
                "request_id": scope["state"].get("request_id", ""),
            }
            _log.info("request", extra={FIELDS: fields})


def _operation(scope: Scope) -> str:
    """The name of what was asked for. The path itself may hold ids."""
    return getattr(scope.get("route"), "name", None) or _UNMATCHED
