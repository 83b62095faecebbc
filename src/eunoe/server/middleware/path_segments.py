"""Slashes that belong to a name in a path. ASGI decodes them before anything is routed, and so loses the difference."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from eunoe.server.problems import problem


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
