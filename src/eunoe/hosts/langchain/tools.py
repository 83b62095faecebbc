"""The tools that an agent with memory has: one to search and one to store. The run says whose memory they use."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from langchain.tools import BaseTool, ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool

from eunoe.errors import InputError, ScopeError
from eunoe.hosts import memory_tool
from eunoe.hosts.langchain.deadline import Deadline
from eunoe.hosts.langchain.runs import lasting_scope
from eunoe.memory import Memory
from eunoe.model.scope import Scope
from eunoe.recall.rendering import DESCRIPTION
from eunoe.text.normalize import escape_xml, replace_surrogates

STORE_TOOL: Final = "store_memory"
_STORE_DESCRIPTION: Final = (
    "Store something in your long-term memory, such as a fact about the user, a preference or a decision, so that "
    "later conversations know of it. Write it so that it can be understood on its own. Give your answer as usual; it "
    "need not say that you stored something."
)
_STORE_SCHEMA: Final = {
    "type": "object",
    "properties": {"content": {"type": "string", "description": "What to remember, in full sentences."}},
    "required": ["content"],
}
_VERBS: Final = {memory_tool.Tool.name: "searched", STORE_TOOL: "written"}
"""What each tool does to the memory, as the model is told."""
_log = logging.getLogger("eunoe")

ScopeOf = Callable[[Mapping[str, Any], Any], Scope]


def memory_tools(
    memory: Callable[[], Memory], scope_of: ScopeOf, reading: Deadline, writing: Deadline
) -> list[BaseTool]:
    """Make both tools.

    Args:
        memory: gives the memory when it is needed.
        scope_of: reads the scope from the state and the runtime of a run.
    """

    def search(arguments: Mapping[str, Any], runtime: ToolRuntime) -> ToolMessage:
        scope = scope_of(runtime.state, runtime)
        text = memory_tool.tool(memory(), scope).search(arguments)
        if text != memory_tool.NOTHING_TEXT:  # data, that the model cannot take for anything else
            text = f'<RetrievedMemories description="{DESCRIPTION}">\n{escape_xml(text)}\n</RetrievedMemories>'
        return _answer(runtime, memory_tool.Tool.name, text)

    def store(arguments: Mapping[str, Any], runtime: ToolRuntime) -> ToolMessage:
        scope = lasting_scope(scope_of(runtime.state, runtime))
        content = arguments.get("content")
        if not isinstance(content, str) or not content.strip():
            raise InputError("content must be a text that is not empty")
        receipt = memory().remember(scope, replace_surrogates(content))
        if receipt.outcome == "forgotten":
            return _answer(runtime, STORE_TOOL, "Not stored: this was forgotten on purpose.", is_error=True)
        return _answer(runtime, STORE_TOOL, f"Stored (ID: {receipt.id}).")

    return [
        _tool(memory_tool.Tool.name, memory_tool.Tool.description, memory_tool.Tool.schema, search, reading),
        _tool(STORE_TOOL, _STORE_DESCRIPTION, _STORE_SCHEMA, store, writing),
    ]


def _tool(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    work: Callable[[Mapping[str, Any], ToolRuntime], ToolMessage],
    deadline: Deadline,
) -> BaseTool:
    def call(runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
        try:
            return deadline.run(partial(work, arguments, runtime))
        except Exception as error:
            return _error(runtime, name, error)

    async def acall(runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
        try:
            return await deadline.arun(partial(work, arguments, runtime))
        except Exception as error:
            return _error(runtime, name, error)

    return StructuredTool(name=name, description=description, args_schema=dict(schema), func=call, coroutine=acall)


def _answer(runtime: ToolRuntime, name: str, text: str, *, is_error: bool = False) -> ToolMessage:
    status = "error" if is_error else "success"
    return ToolMessage(text, name=name, tool_call_id=runtime.tool_call_id or "", status=status)


def _error(runtime: ToolRuntime, name: str, error: Exception) -> ToolMessage:
    """What the model reads of an error: what to change, or to go on without memory; never what memory holds."""
    _log.warning("memory: %s failed: %s", name, type(error).__name__)
    done = _VERBS[name]
    if isinstance(error, TimeoutError):
        late = " It may still be written." if name == STORE_TOOL else ""
        text = f"The memory was not {done} in time.{late} Go on without it."
    elif isinstance(error, ScopeError):
        text = f"The memory cannot be {done}: this run does not say whose it is. Go on without it."
    elif isinstance(error, InputError):
        text = f"The memory was not {done}: {error}"
    else:
        text = f"The memory cannot be {done} at the moment. Go on without it."
    return _answer(runtime, name, text, is_error=True)
