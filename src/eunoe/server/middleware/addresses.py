"""Where a request was sent to and which page sent it. Foreign names and foreign pages go no further."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.server.addresses import Addresses
from eunoe.server.problems import ProblemResponse, problem

_SINGLE_HEADERS: Final = (b"host", b"origin", b"authorization", b"x-api-key", b"cookie", b"sec-fetch-site")
"""Two of them would leave it open which one counts."""
_CORS_METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
_CORS_REQUEST_HEADERS: Final = (
    "Authorization, X-API-Key, Content-Type, Idempotency-Key, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, "
    "Mcp-Method, Mcp-Name"
)
_CORS_REPLY_HEADERS: Final = (
    "X-Request-ID, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, WWW-Authenticate, Mcp-Session-Id"
)
_PREFLIGHT_SECONDS: Final = 600


class AddressMiddleware:
    """Refuses what was not sent to this server by name, and pages that were not named as allowed."""

    def __init__(self, app: ASGIApp, addresses: Addresses) -> None:
        self._app = app
        self._addresses = addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        if refusal:
            return await refusal(scope, receive, send)
        origin = headers.get("origin", "")
        if not self._addresses.is_named_origin(origin):
            return await self._app(scope, receive, send)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return await _preflight(origin)(scope, receive, send)
        return await self._app(scope, receive, _with_cors(send, origin))

    def _refusal(self, headers: Headers) -> ProblemResponse | None:
        names = [name for name, _ in headers.raw]
        if doubled := [name.decode() for name in _SINGLE_HEADERS if names.count(name) > 1]:
            return problem(400, "input", f"the header {doubled[0]} is there twice")
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._addresses.is_own_host(host):
            hint = "Call it by the address it prints, or name the host with --allowed-host."
            return problem(421, "foreign_host", "this server does not go by the name in the Host header", hint=hint)
        if origin is None or self._addresses.is_named_origin(origin) or self._addresses.is_own_origin(origin, host):
            return None
        hint = "Name the page's origin with --origin if it may call."
        return problem(403, "foreign_origin", "pages of this origin may not call", hint=hint)


def _preflight(origin: str) -> Response:
    headers = {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": _CORS_METHODS,
        "Access-Control-Allow-Headers": _CORS_REQUEST_HEADERS,
        "Access-Control-Allow-Private-Network": "true",
        "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
        "Vary": "Origin",
    }
    return Response(status_code=204, headers=headers)


def _with_cors(send: Send, origin: str) -> Send:
    """Cookies are not allowed along: a page of another origin shows a key of its own."""

    async def send_with_cors(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = _CORS_REPLY_HEADERS
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
            headers.add_vary_header("Origin")
        await send(message)

    return send_with_cors
