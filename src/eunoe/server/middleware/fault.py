"""Our own failures: logged with where they happened, and told without it."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.server.problems import problem

_log = logging.getLogger("eunoe.server")


class FaultMiddleware:
    """Answers with 500 where the application raised an error that nobody expected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        is_started = False

        async def watched_send(message: Message) -> None:
            nonlocal is_started
            is_started = is_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except Exception as error:
            _log.error("%s %s failed: %s", scope["method"], scope["path"], type(error).__name__, exc_info=error)
            if is_started:
                raise  # the reply breaks off: the client must not take it for whole
            await problem(500, "fault", "the server failed; its log says where")(scope, receive, send)
