"""One client over standard input and output. The process ends with its client, however that ends."""

from __future__ import annotations

import json
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


def refuse(error: ValidationError) -> JSONRPCError | None:
    """The answer to a line that could not be read as a message; none where nobody waits for one."""
    errors = error.errors(include_url=False, include_context=False)
    is_json = errors[0]["type"] != "json_invalid"
    # What lacks a field is given as a whole, and so is what is no object.
    sent = next((each["input"] for each in errors if each["type"] in ("missing", "model_type")), None)
    sent = sent if is_json else _read(errors[0]["input"])
    if not _waits(sent):
        return None
    code = _code(sent) if is_json else PARSE_ERROR
    return JSONRPCError(jsonrpc="2.0", id=_id(sent), error=ErrorData(code=code, message=_MESSAGES[code]))


def _read(line: str) -> Any:
    """What a line means to a more patient reader; as it is where it means nothing."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line


def _waits(sent: Any) -> bool:
    """Blank lines, notifications and answers expect nothing."""
    if isinstance(sent, dict):
        return not sent.keys() & ({"result", "error"} if "id" in sent else {"method"})
    return not isinstance(sent, str) or bool(sent.strip())


def _code(sent: Any) -> int:
    is_request = isinstance(sent, dict) and sent.get("jsonrpc") == "2.0" and isinstance(sent.get("method"), str)
    return INVALID_PARAMS if is_request and _id(sent) is not None else INVALID_REQUEST


def _id(sent: Any) -> int | str | None:
    """The id of a request, if it can be sent back."""
    id = sent.get("id") if isinstance(sent, dict) else None
    if isinstance(id, str):
        return id if id == id.encode(errors="ignore").decode() else None
    return id if isinstance(id, int) and not isinstance(id, bool) else None


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
