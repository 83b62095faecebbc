"""The MCP server over any transport: it lists what a caller may call, and runs each call in a thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from eunoe import __version__
from eunoe.errors import ClosedError, EunoeError
from eunoe.server.mcp.arguments import check_arguments
from eunoe.server.mcp.caller import Caller
from eunoe.server.mcp.confirmation import Confirmation
from eunoe.server.mcp.profiles import find_profile
from eunoe.server.mcp.tool import Answer, Tool, ToolCall

Context = Any
FindCaller = Callable[[Any], Caller]
"""From the HTTP request, or None over stdio, to who calls."""

_THREADS: Final = 8
"""Calls under way at a time. They wait for the disk and for models, not for the processor."""
_log = logging.getLogger("eunoe.server")


class McpHandlers:
    """What a client may ask for."""

    def __init__(self, find_caller: FindCaller, profile: str, secret: bytes) -> None:
        self._find_caller = find_caller
        self._tools = {tool.name: tool for tool in find_profile(profile).tools}
        self._confirmation = Confirmation(secret)
        self._threads: anyio.CapacityLimiter | None = None

    async def list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        caller = self._find_caller(ctx.request)
        allowed = [tool for tool in self._tools.values() if tool.right in caller.rights]
        return types.ListToolsResult(tools=[_definition(tool, caller) for tool in allowed])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = self._find_caller(ctx.request)
        tool = self._tools.get(params.name)
        if tool is None or tool.right not in caller.rights:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        answer = await self._in_thread(partial(self._run, tool, caller, params.arguments or {}))
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=answer.text)]
        data = None if answer.is_error else dict(answer.data)
        return types.CallToolResult(content=content, structured_content=data, is_error=answer.is_error)

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        self._threads = self._threads or anyio.CapacityLimiter(_THREADS)
        return await anyio.to_thread.run_sync(work, limiter=self._threads, abandon_on_cancel=True)

    def _run(self, tool: Tool, caller: Caller, arguments: dict[str, Any]) -> Answer:
        """Whatever happens, the answer is one that a model can act on."""
        try:
            checked = check_arguments(tool.input_schema(caller.scopes.default), arguments)
            return self._run_checked(tool, caller, checked)
        except EunoeError as error:
            return Answer(str(error), {}, is_error=True)
        except Exception as error:
            _log.error("tool %s failed: %s", tool.name, type(error).__name__, exc_info=error)
            return Answer("The memory failed on this call; the log of the server says where.", {}, is_error=True)

    def _run_checked(self, tool: Tool, caller: Caller, arguments: dict[str, Any]) -> Answer:
        try:
            return tool.run(ToolCall(caller.find_memory(), caller, self._confirmation, arguments))
        except (ClosedError, ConnectionError):  # it moved between a server and the store itself: find it anew
            return tool.run(ToolCall(caller.find_memory(), caller, self._confirmation, arguments))


def create_mcp_server(
    find_caller: FindCaller, *, profile: str = "default", secret: bytes, instructions: str = ""
) -> Server[Any]:
    """A server for any transport.

    Args:
        find_caller: who calls; asked at every request. It must not open a memory: the first tool call does that.
        profile: which tools there are: `read`, `default`, `reference` or `chatgpt`.
        secret: signs the tokens of previews; the same for all processes that serve the same clients.
    """
    handlers = McpHandlers(find_caller, profile, secret)
    return Server(
        "eunoe",
        version=__version__,
        title="Eunoe",
        description="A memory for AI agents that lasts.",
        instructions=instructions or find_profile(profile).instructions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )


def _definition(tool: Tool, caller: Caller) -> types.Tool:
    annotations = types.ToolAnnotations(
        read_only_hint=tool.is_read_only,
        destructive_hint=tool.is_destructive,
        idempotent_hint=tool.is_idempotent,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(caller.scopes.default),
        output_schema=dict(tool.result),
        annotations=annotations,
    )
