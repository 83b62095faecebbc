"""One client over standard input and output. The process ends with its client, however that ends."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from contextlib import suppress
from typing import Any, Final, NoReturn

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from eunoe.model.arguments import RIGHTS
from eunoe.model.scope import Scope
from eunoe.server.mcp.backend import Backend
from eunoe.server.mcp.server import create_mcp_server
from eunoe.server.mcp.tool import Caller, ScopeRule

_MESSAGES: Final = {
    PARSE_ERROR: "this line is no JSON: send one message in a line, and no half of a surrogate pair",
    INVALID_REQUEST: "this is no request: it has jsonrpc, id and method",
    INVALID_PARAMS: "params must be an object",
}
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
            elif answer := _refusal(item):
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


def _refusal(error: ValidationError) -> JSONRPCError | None:
    """The answer to a line that is no message, without which a client would wait for ever; none where nobody waits."""
    errors = error.errors(include_url=False, include_context=False)
    if errors[0]["type"] == "json_invalid":
        code, sent = PARSE_ERROR, errors[0]["input"]
        with suppress(ValueError, RecursionError):  # what it means to a more patient reader
            sent = json.loads(sent)
    else:
        # What lacks a field is given as a whole, and so is what is no object.
        code = INVALID_REQUEST
        sent = next((each["input"] for each in errors if each["type"] in ("missing", "model_type")), None)
    if isinstance(sent, str) and not sent.strip():
        return None
    id = None
    if isinstance(sent, dict):
        if sent.keys() & ({"result", "error"} if "id" in sent else {"method"}):  # an answer or a notification
            return None
        id = sent.get("id")
        if isinstance(id, str):
            id = id if id == id.encode(errors="ignore").decode() else None
        elif isinstance(id, bool) or not isinstance(id, int):
            id = None
        is_request = sent.get("jsonrpc") == "2.0" and isinstance(sent.get("method"), str) and id is not None
        code = INVALID_PARAMS if is_request and code != PARSE_ERROR else code
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=_MESSAGES[code]))
