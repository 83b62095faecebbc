"""Who calls. Every path asks for a key, but for a few that are named here: a route cannot forget it."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from eunoe.errors import AccessError, EunoeError, InputError
from eunoe.server.access import Attempt, Caller
from eunoe.server.addresses import Addresses
from eunoe.server.cookies import find_session_id
from eunoe.server.logins import LoginError
from eunoe.server.middleware.rate_limit import too_many
from eunoe.server.problems import ProblemResponse, problem, problem_of
from eunoe.server.services import Services

_PUBLIC_PATHS: Final = frozenset({"/", "/healthz", "/readyz", "/v1/identity", "/favicon.ico"})
_PUBLIC_PREFIXES: Final = ("/static/", "/oauth/", "/.well-known/")
_SCHEMES: Final = ("bearer", "token")
"""The second is what clients of mem0 send."""
_READ_METHODS: Final = frozenset({"GET", "HEAD"})


class AuthenticationMiddleware:
    """Puts the caller into the request's state, or refuses the request."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_public(scope["path"], scope["method"]):
            return await self._app(scope, receive, send)
        try:
            caller = self._authenticate(Request(scope))
        except EunoeError as error:
            return await refusal(error, self._services.addresses, scope["path"])(scope, receive, send)
        scope.setdefault("state", {}).update(caller=caller, is_valid=lambda: self._is_valid(scope))
        return await self._app(scope, receive, send)

    def _is_valid(self, scope: Scope) -> bool:
        """Whether the request would be let in now: a long reply asks this again and again."""
        try:
            self._authenticate(Request(scope))
        except EunoeError:
            return False
        return True

    def _authenticate(self, request: Request) -> Caller:
        attempt = attempt_of(request)
        token = _find_token(request.headers)
        if token:
            return self._services.logins.by_token(token, attempt)
        session = find_session_id(request, self._services.addresses)
        if not session:
            raise LoginError("the request carries no key")
        caller = self._services.logins.by_session(session, attempt)
        if not self._is_from_own_page(request):
            raise AccessError("a session can be used only by pages of this server")
        return caller

    def _is_from_own_page(self, request: Request) -> bool:
        """A browser sends a cookie along from pages of other ports too; what it says about the page it cannot forge."""
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        if site not in (None, "same-origin", "none"):
            return False
        if origin is None:
            return request.method in _READ_METHODS
        return self._services.addresses.is_own_origin(origin, request.headers.get("host", ""))


def attempt_of(request: Request) -> Attempt:
    """What a request says of itself that can be believed."""
    address = request.client.host if request.client else ""
    server = request.scope.get("server") or ("", 0)
    request_id = request.scope.get("state", {}).get("request_id", "")
    addresses: Addresses = request.app.state.services.addresses
    is_forwarded = addresses.is_for_others(request.headers.get("host", ""))
    return Attempt(address, request.scope["path"], request_id, server[0], is_forwarded)


def refusal(error: EunoeError, addresses: Addresses, path: str) -> ProblemResponse:
    """What is answered to whoever is not let in."""
    if not isinstance(error, LoginError):
        return problem_of(error)
    if error.allowance:
        return too_many(error.allowance)
    return problem(401, "unauthorized", str(error), headers={"WWW-Authenticate": addresses.challenge(path)})


def is_public(path: str, method: str = "GET") -> bool:
    is_login = path == "/session" and method == "POST"
    return is_login or path in _PUBLIC_PATHS or path.startswith(_PUBLIC_PREFIXES)


def _find_token(headers: Headers) -> str:
    kind, _, value = headers.get("authorization", "").partition(" ")
    token, other = value.strip() if kind.lower() in _SCHEMES else "", headers.get("x-api-key", "").strip()
    if token and other and token != other:
        raise InputError("Authorization and X-API-Key carry different keys: send one")
    return token or other
