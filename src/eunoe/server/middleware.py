"""What every request passes on its way in, from the outermost to the innermost."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from contextlib import nullcontext
from time import perf_counter
from typing import Final
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.errors import AccessError, EunoeError, InputError
from eunoe.memory.verb import VERBS
from eunoe.server.access import Allowance, Attempt, Caller, LoginError, RateLimit, find_session_id
from eunoe.server.audit import AuditOutcome
from eunoe.server.config import Addresses
from eunoe.server.observation import FIELDS, REQUEST_LOGGER, Metrics, Tracing, end_span
from eunoe.server.problems import ProblemResponse, problem, problem_of
from eunoe.server.services import Services

CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What browsers are told: run no foreign script, guess no type, keep nothing. A route may set its own value of one."""
_HSTS: Final = "max-age=31536000"
_UNMATCHED: Final = "unmatched"
"""The operation of requests to no route: their paths are anybody's words."""
_request_log = logging.getLogger(REQUEST_LOGGER)
_log = logging.getLogger("eunoe.server")


class EnvelopeMiddleware:
    """Gives each request an id, each reply its headers, answers for faults of ours, and tells of all that happens.

    An id that a caller sends is not taken over.
    """

    def __init__(self, app: ASGIApp, addresses: Addresses, metrics: Metrics, tracing: Tracing | None = None) -> None:
        self._app = app
        self._addresses = addresses
        self._metrics = metrics
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        sent, id, status = Headers(scope=scope), secrets.token_hex(8), 0
        scope.setdefault("state", {})["request_id"] = id
        is_secure = self._addresses.is_secure(sent.get("host", ""))
        is_shared = self._addresses.is_named_origin(sent.get("origin", ""))

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = id
                headers["Cross-Origin-Resource-Policy"] = "cross-origin" if is_shared else "same-origin"
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if is_secure:
                    headers.setdefault("Strict-Transport-Security", _HSTS)
            await send(message)

        began = perf_counter()
        self._metrics.in_flight.inc()
        with self._tracing.request(scope) if self._tracing else nullcontext() as span:
            try:
                await self._app(scope, receive, send_on)
            except Exception as error:
                _log.error("%s %s failed: %s", scope["method"], scope["path"], type(error).__name__, exc_info=error)
                if status:
                    raise  # the reply breaks off: the client must not take it for whole
                await problem(500, "fault", "the server failed; its log says where")(scope, receive, send_on)
            finally:
                self._metrics.in_flight.dec()
                # The path itself may hold ids.
                operation = getattr(scope.get("route"), "name", None) or _UNMATCHED
                self._note(scope, operation, status or 500, perf_counter() - began)
                if span:
                    end_span(span, operation, status or 500)

    def _note(self, scope: Scope, operation: str, status: int, seconds: float) -> None:
        self._metrics.note_request(operation, status, seconds)
        if _request_log.isEnabledFor(logging.INFO):
            caller, method = scope["state"].get("caller"), scope["method"]
            fields = {
                "method": method if method.isalpha() else "other",
                "operation": operation,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "key": caller.key.id if caller else "",
                "request_id": scope["state"]["request_id"],
            }
            _request_log.info("request", extra={FIELDS: fields})


_SINGLE_HEADERS: Final = (b"host", b"origin", b"authorization", b"x-api-key", b"cookie", b"sec-fetch-site")
"""Two of them would leave it open which one counts."""


class AddressMiddleware:
    """Refuses what was not sent to this server by name, and pages that were not named as allowed."""

    def __init__(self, app: ASGIApp, addresses: Addresses) -> None:
        self._app = app
        self._addresses = addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        return await (refusal or self._app)(scope, receive, send)

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


class PathSegmentsMiddleware:
    """Leaves `%2F` and `%25` in the path as they are, so that `/memories/a%2Fb` has the id `a/b` and nothing else.

    A route reads such a name with `unescape_segment`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw_path: bytes = scope.get("raw_path") or b""
        query: bytes = scope.get("query_string") or b""
        try:
            unquote_to_bytes(query).decode()
            if b"%" in raw_path:
                scope = {**scope, "path": "/".join(map(_decode_segment, raw_path.split(b"/")))}
        except UnicodeDecodeError:
            response = problem(400, "input", "the path or the query is not UTF-8 text, percent-encoded")
            return await response(scope, receive, send)
        return await self._app(scope, receive, send)


def _decode_segment(segment: bytes) -> str:
    return unquote_to_bytes(segment).decode().replace("%", "%25").replace("/", "%2F")


def unescape_segment(text: str) -> str:
    """
    >>> unescape_segment("a%2Fb%252F")
    'a/b%2F'
    """
    return text.replace("%2F", "/").replace("%25", "%")


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
        path = scope["path"]
        most = self._max_bytes if path.startswith(_TEXT_PATHS) else min(_QUESTION_BYTES, self._max_bytes)
        most = self._max_import_bytes if path == _IMPORT_PATH else most
        too_long = f"the body is longer than {most:,} bytes: send it in parts"
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length[:20]) > most:
            return await problem(413, "body_too_large", too_long)(scope, receive, send)
        parts = None if path == _IMPORT_PATH else JsonParts()
        end, count, is_complete = asyncio.get_running_loop().time() + self._grace_seconds, 0, False

        async def receive_counted() -> Message:
            nonlocal count, is_complete
            if is_complete:  # what follows is only the news that the client has gone
                return await receive()
            try:
                async with asyncio.timeout_at(end + count / MIN_BYTES_PER_SECOND):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the body did not come in time", {"Connection": "close"}) from None
            body = message.get("body", b"")
            count += len(body)
            is_complete = not message.get("more_body", False)
            if count > most:
                raise HTTPException(413, too_long)
            if parts and parts.are_too_many(body):
                what = f"more than {MAX_PARTS:,} texts, lists and objects"
                raise HTTPException(413, f"the body has {what}: send it in parts")
            return message

        return await self._app(scope, receive_counted, send)


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


_PUBLIC_PATHS: Final = frozenset({"/", "/healthz", "/readyz", "/v1/identity", "/favicon.ico"})
_PUBLIC_PREFIXES: Final = ("/static/", "/oauth/", "/.well-known/")
_SCHEMES: Final = ("bearer", "token")
"""The second is what clients of mem0 send."""
_READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class AuthenticationMiddleware:
    """Puts the caller into the request's state, or refuses the request. A key may ask only so often."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        per_minute = services.config.requests_per_minute
        self._limit = RateLimit(per_minute) if per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_public(scope["path"], scope["method"]):
            return await self._app(scope, receive, send)
        try:
            caller = self._authenticate(Request(scope))
        except EunoeError as error:
            return await refusal(error, self._services.addresses, scope["path"])(scope, receive, send)
        scope.setdefault("state", {}).update(caller=caller, is_valid=lambda: self._is_valid(scope))
        if self._limit is None:
            return await self._app(scope, receive, send)
        allowance = self._limit.take(caller.key.id)
        if allowance.wait:
            return await too_many(allowance)(scope, receive, send)

        async def send_with_limit(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_limit_headers(allowance))
            await send(message)

        return await self._app(scope, receive, send_with_limit)

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


def too_many(allowance: Allowance) -> ProblemResponse:
    seconds = math.ceil(allowance.wait)
    headers = {**_limit_headers(allowance), "Retry-After": str(seconds)}
    return problem(429, "rate_limit", "too many requests", hint=f"Try again in {seconds} s.", headers=headers)


def _limit_headers(allowance: Allowance) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(allowance.limit),
        "RateLimit-Remaining": str(allowance.remaining),
        "RateLimit-Reset": str(math.ceil(allowance.wait)),
    }


_READ_OPERATIONS: Final = frozenset(verb.step for verb in VERBS.values() if not verb.changes)
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


def add_middleware(app: FastAPI, services: Services) -> None:
    """From the innermost to the outermost, which sees a request first."""
    config, addresses = services.config, services.addresses
    app.add_middleware(AuditMiddleware)
    app.add_middleware(AuthenticationMiddleware, services=services)
    app.add_middleware(
        BodyLimitMiddleware,
        max_bytes=config.max_body_bytes,
        max_import_bytes=config.max_import_bytes,
    )
    app.add_middleware(PathSegmentsMiddleware)
    if config.origins:  # without cookies: a page of another origin shows a key of its own
        app.add_middleware(
            CORSMiddleware,
            allow_origins=addresses.named_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                *("Authorization", "X-API-Key", "Idempotency-Key", "Last-Event-ID"),
                *("MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name"),
            ],
            allow_private_network=True,
            expose_headers=[
                *("X-Request-ID", "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"),
                *("WWW-Authenticate", "Mcp-Session-Id"),
            ],
        )
    app.add_middleware(AddressMiddleware, addresses=addresses)
    app.add_middleware(EnvelopeMiddleware, addresses=addresses, metrics=services.metrics, tracing=services.tracing)
