"""A process that serves MCP over HTTP on a free port, which it prints. Callers are told apart by their header."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import uvicorn
from starlette.applications import Starlette

import eunoe
from eunoe.model.arguments import RIGHTS
from eunoe.model.scope import Scope
from eunoe.server.mcp.server import McpApp

RIGHTS_OF = {"reader": ("read",), "writer": ("write",)}


class Callers:
    """Puts a caller into the request's state, as the middleware of the server does."""

    def __init__(self, app: Any, memory: Any) -> None:
        self._app = app
        self._memory = memory

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            name = dict(scope["headers"]).get(b"x-caller", b"anna").decode()
            key = SimpleNamespace(id=name, tenant="acme", scopes=(Scope(user="anna"),) if name != "nobody" else ())
            rights = frozenset(RIGHTS_OF.get(name, RIGHTS))
            scope.setdefault("state", {})["caller"] = SimpleNamespace(memory=self._memory, rights=rights, key=key)
        await self._app(scope, receive, send)


def main(store: str) -> None:
    memory = eunoe.open(store, embedder="none", llm="none")
    mcp = McpApp(secret=b"shared by both", max_body_bytes=1_000_000)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.lifespan():
            yield
        memory.close()

    app = Starlette(routes=mcp.routes, lifespan=lifespan)
    server = uvicorn.Server(uvicorn.Config(Callers(app, memory), port=0, log_level="error"))
    listener = server.config.bind_socket()
    listener.listen()  # whoever calls before the server runs waits, and is not refused
    print(listener.getsockname()[1], flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
