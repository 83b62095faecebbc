"""Who calls. Every path asks for a key, but for a few that are named here: a route cannot forget it."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from eunoe.server.problems import problem
from eunoe.server.services import Services

_PUBLIC_PATHS: Final = frozenset({"/", "/healthz", "/readyz", "/v1/identity", "/session", "/favicon.ico"})
_PUBLIC_PREFIXES: Final = ("/static/",)


class AuthenticationMiddleware:
    """Puts the caller into the request's state, or refuses the request."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_public(scope["path"]):
            return await self._app(scope, receive, send)
        token = _find_token(Headers(scope=scope))
        caller = self._services.access.find_caller(token) if token else None
        if caller is None:
            detail = "the key is unknown, has ended or was revoked" if token else "the request carries no key"
            response = problem(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
            return await response(scope, receive, send)
        scope.setdefault("state", {})["caller"] = caller
        return await self._app(scope, receive, send)


def is_public(path: str) -> bool:
    return path in _PUBLIC_PATHS or path.startswith(_PUBLIC_PREFIXES)


def _find_token(headers: Headers) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else headers.get("x-api-key", "").strip()
