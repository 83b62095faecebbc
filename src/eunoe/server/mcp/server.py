"""The MCP server over any transport: it lists what a caller may call, and runs each call in a thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from traceback import extract_tb
from typing import Any, Final, TypeVar

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from eunoe import __version__
from eunoe.errors import ClosedError, EunoeError, RemoteError
from eunoe.model.scope import Scope
from eunoe.server.mcp.arguments import check_arguments
from eunoe.server.mcp.caller import Caller
from eunoe.server.mcp.confirmation import Confirmation
from eunoe.server.mcp.profiles import Profile, find_profile
from eunoe.server.mcp.prompts import PROMPTS, check_prompt_arguments
from eunoe.server.mcp.reference_tools import GRAPH_URI
from eunoe.server.mcp.resources import GRAPH_RESOURCE, TEMPLATES, list_resources, read_resource
from eunoe.server.mcp.tool import Answer, Tool, ToolCall
from eunoe.server.mcp.updates import Updates

Request = Any
"""A starlette request over HTTP, None over stdio."""
FindCaller = Callable[[Request], Caller]
R = TypeVar("R")

_THREADS: Final = 8
"""Calls under way at a time. They wait for the disk and for models, not for the processor."""
_FAULT: Final = "The memory failed on this call; the log of the server says where."
_log = logging.getLogger("eunoe.server")


class McpHandlers:
    """What a client may ask for. A method is named as what it answers in the protocol."""

    def __init__(self, find_caller: FindCaller, profile: Profile, secret: bytes) -> None:
        self._find_caller = find_caller
        self._profile = profile
        self._tools = {tool.name: tool for tool in profile.tools}
        self._confirmation = Confirmation(secret)
        self._threads: anyio.CapacityLimiter | None = None
        self.updates = Updates()

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        caller = self._find_caller(ctx.request)
        return types.ListToolsResult(tools=[_definition(tool, caller) for tool in self._allowed(caller).values()])

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = self._find_caller(ctx.request)
        tool = self._allowed(caller).get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        answer = await self._in_thread(partial(self._run, tool, caller, params.arguments or {}))
        if tool.changes_graph and not answer.is_error:
            await self.updates.publish(GRAPH_URI)
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=answer.text)]
        data = None if answer.is_error else dict(answer.data)
        return types.CallToolResult(content=content, structured_content=data, is_error=answer.is_error)

    async def list_resources(self, ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        caller = self._reader(ctx)
        if self._profile.has_graph:
            return types.ListResourcesResult(resources=[GRAPH_RESOURCE])
        cursor = (params and params.cursor) or ""
        page, after = await self._read(caller, lambda: list_resources(caller.find_memory(), caller, cursor))
        return types.ListResourcesResult(resources=page, next_cursor=after)

    async def list_resource_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        self._reader(ctx)
        return types.ListResourceTemplatesResult(resource_templates=[] if self._profile.has_graph else [*TEMPLATES])

    async def read_resource(self, ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        caller = self._reader(ctx)
        contents = await self._read(caller, lambda: read_resource(caller.find_memory(), caller, str(params.uri)))
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        allowed = self._allowed(self._find_caller(ctx.request))
        return types.ListPromptsResult(prompts=[each.definition() for each in PROMPTS.values() if each.tool in allowed])

    async def get_prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        caller = self._find_caller(ctx.request)
        prompt = PROMPTS.get(params.name)
        if prompt is None or prompt.tool not in self._allowed(caller):
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        arguments = params.arguments or {}
        return await self._read(
            caller, lambda: prompt.messages(self._call(caller, check_prompt_arguments(prompt, arguments)))
        )

    def _allowed(self, caller: Caller) -> dict[str, Tool]:
        """The tools that a caller may call. The others are not there for them."""
        return {name: tool for name, tool in self._tools.items() if tool.right in caller.rights}

    def _reader(self, ctx: Any) -> Caller:
        caller = self._find_caller(ctx.request)
        if "read" not in caller.rights:
            raise MCPError(types.INVALID_PARAMS, "This key may not read.")
        return caller

    def _call(self, caller: Caller, arguments: dict[str, Any]) -> ToolCall:
        return ToolCall(caller.find_memory(), caller, self._confirmation, arguments)

    async def _read(self, caller: Caller, work: Callable[[], R]) -> R:
        """Read in a thread; what goes wrong is an error of the protocol."""
        try:
            return await self._in_thread(partial(_follow_memory, caller, work))
        except EunoeError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None

    async def _in_thread(self, work: Callable[[], R]) -> R:
        self._threads = self._threads or anyio.CapacityLimiter(_THREADS)
        return await anyio.to_thread.run_sync(work, limiter=self._threads, abandon_on_cancel=True)

    def _run(self, tool: Tool, caller: Caller, arguments: dict[str, Any]) -> Answer:
        """Whatever happens, the answer is one that a model can act on."""
        try:
            checked = check_arguments(tool.input_schema(caller.scopes.default), arguments)
            return _follow_memory(caller, lambda: tool.run(self._call(caller, checked)), tool.can_repeat)
        except EunoeError as error:
            return Answer(str(error), {}, is_error=True)
        except Exception as error:
            _log.error("tool %s failed: %s %s", tool.name, type(error).__name__, _place(error))
            return Answer(_FAULT, {}, is_error=True)


def create_mcp_server(
    find_caller: FindCaller,
    *,
    profile: str = "default",
    secret: bytes,
    default_scope: Scope | None = None,
    can_notify: bool = False,
) -> Server[Any]:
    """A server for any transport.

    Args:
        find_caller: who calls; asked at every request. It opens no memory: the first call that needs it does.
        profile: which tools there are: `read`, `default`, `reference`, `chatgpt` or `discussion`.
        secret: signs the tokens of previews; the same for all processes that serve the same clients.
        default_scope: the scope to tell clients of, if it is the same for all.
        can_notify: whether clients can be told of changes: over stdio, where one process has all of a conversation.
    """
    chosen = find_profile(profile)
    handlers = McpHandlers(find_caller, chosen, secret)
    updates = handlers.updates
    can_subscribe = can_notify and chosen.has_graph
    return Server(
        "eunoe",
        version=__version__,
        title="Eunoe",
        description="A memory for AI agents that lasts.",
        instructions=chosen.instructions_for(default_scope),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=updates.subscribe if can_subscribe else None,
        on_unsubscribe_resource=updates.unsubscribe if can_subscribe else None,
        on_subscriptions_listen=updates.listen if can_subscribe else None,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


def _follow_memory(caller: Caller, work: Callable[[], R], can_repeat: bool = True) -> R:
    """Do the work, and once more if the memory moved meanwhile between a server and the store itself."""
    try:
        return work()
    except ClosedError:  # before the work began
        return work()
    except RemoteError as error:
        caller.look_again()
        if not can_repeat and not isinstance(error.__cause__, ConnectionRefusedError):
            raise
        return work()


def _place(error: Exception) -> str:
    """Where it was raised. Its words may repeat what was to be remembered, and stay out of the log."""
    frame = extract_tb(error.__traceback__)[-1]
    return f"in {frame.name}, {frame.filename}:{frame.lineno}"


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
