"""One client over standard input and output. The process ends with its client, however that ends."""

from __future__ import annotations

import os
import secrets
import threading
import time
from typing import Any, Final, NoReturn

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from eunoe.model.arguments import RIGHTS
from eunoe.model.scope import Scope
from eunoe.server.mcp.backend import Backend
from eunoe.server.mcp.caller import Caller, ScopeRule
from eunoe.server.mcp.refusal import refuse
from eunoe.server.mcp.server import create_mcp_server

_WATCH_SECONDS: Final = 0.25
_SECRET_BYTES: Final = 32
_CLOSE_SECONDS: Final = 1.0
"""What closing may take once the client is gone. What was acknowledged is stored already; the rest is made later."""


def serve_stdio(backend: Backend, default: Scope, within: Scope | None, profile: str, parent: int) -> NoReturn:
    """Serve until the client is gone, then leave the process. `parent` is the one it was started by."""
    scopes = ScopeRule(default, within)
    caller = Caller(backend.find_memory, backend.look_again, frozenset(RIGHTS), scopes, id="stdio")
    server = create_mcp_server(
        lambda request: caller,
        profile=profile,
        secret=secrets.token_bytes(_SECRET_BYTES),
        default_scope=default,
        can_notify=True,
    )
    _watch_parent(parent, backend)
    anyio.run(_serve, server)
    _end_process(backend)


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing), anyio.create_task_group() as group:
        sender, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
        group.start_soon(_relay, reading, sender, writing)
        await server.run(messages, writing, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _relay(
    reading: ReadStream[SessionMessage | Exception],
    sender: MemoryObjectSendStream[SessionMessage | Exception],
    writing: WriteStream[SessionMessage],
) -> None:
    """Hand on the messages, and answer what is none: the SDK would leave it without a word."""
    async with sender:
        async for item in reading:
            if not isinstance(item, ValidationError):
                await sender.send(item)
            elif answer := refuse(item):
                await writing.send(SessionMessage(answer))


def _watch_parent(parent: int, backend: Backend) -> None:
    """End the process when its parent is gone: a grandchild may hold the input open for good."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        _end_process(backend)

    threading.Thread(target=watch, name="eunoe-parent", daemon=True).start()


def _end_process(backend: Backend) -> NoReturn:
    """Close and leave, without waiting for threads that still read the input."""
    closing = threading.Thread(target=backend.close, daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
    os._exit(0)
