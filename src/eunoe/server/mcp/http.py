"""Streamable HTTP without sessions: any process behind a proxy can answer any request of a conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from eunoe.server.config import MAX_BODY_BYTES
from eunoe.server.mcp.caller import Caller, ScopeRule
from eunoe.server.mcp.profiles import PROFILES
from eunoe.server.mcp.server import create_mcp_server
from eunoe.server.problems import problem

_PATH: Final = "/mcp"
_DEFAULT_PROFILE: Final = "default"


class McpApp:
    """An ASGI application for the paths `/mcp` and `/mcp/PROFILE`. Whoever mounts it enters `lifespan` with its own.

    The request's state holds the caller: their memory, their rights and their key.
    """

    def __init__(self, secret: bytes, max_body_bytes: int) -> None:
        self._managers = {name: _manager(name, secret, max_body_bytes) for name in PROFILES}

    @property
    def routes(self) -> list[Route]:
        return [Route(_PATH, self, name="mcp"), Route(f"{_PATH}/{{profile}}", self, name="mcp_profile")]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for manager in self._managers.values():
                await stack.enter_async_context(manager.run())
            yield

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        manager = self._managers.get(_profile_of(scope["path"]))
        if manager is None:
            response = problem(404, "no_such_path", "there is no such profile", hint=f"Choose {', '.join(PROFILES)}.")
            return await response(scope, receive, send)
        return await manager.handle_request(scope, receive, send)


def _manager(profile: str, secret: bytes, max_body_bytes: int) -> StreamableHTTPSessionManager:
    server = create_mcp_server(_find_caller, profile=profile, secret=secret)
    return StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=max_body_bytes)


def _find_caller(request: Any) -> Caller:
    found = request.scope["state"]["caller"]
    key = found.key
    default = key.scopes[0] if len(key.scopes) == 1 else None
    return Caller(lambda: found.memory, rights=found.rights, scopes=ScopeRule(default), id=key.id, tenant=key.tenant)


def create_mcp_app(*, secret: bytes, max_body_bytes: int = MAX_BODY_BYTES) -> McpApp:
    """The application.

    Args:
        secret: signs the tokens of previews; the same for all processes behind one proxy.
        max_body_bytes: whoever mounts it refuses longer bodies before, in the words of its other routes.
    """
    return McpApp(secret, max_body_bytes)


def _profile_of(path: str) -> str:
    """The profile that a path ends with."""
    return path.removeprefix(_PATH).strip("/") or _DEFAULT_PROFILE
