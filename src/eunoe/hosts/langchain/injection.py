"""Where recalled text stands in a request to the model: only there, never in the agent's state."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

Mode = Literal["message", "system", "tools"]
MODES: Final = ("message", "system", "tools")


def with_memory(request: ModelRequest[Any], text: str, mode: Mode) -> ModelRequest[Any]:
    """Return the request with recalled text in it."""
    if not text:
        return request
    if mode == "system":
        blocks = request.system_message.content_blocks if request.system_message else []
        return request.override(system_message=SystemMessage(content_blocks=[*blocks, {"type": "text", "text": text}]))
    position = _position(request.messages)
    return request.override(messages=[*request.messages[:position], HumanMessage(text), *request.messages[position:]])


def _position(messages: Sequence[AnyMessage]) -> int:
    """Before what the human said last, and never after a call that waits for its result."""
    humans = [position for position, message in enumerate(messages) if isinstance(message, HumanMessage)]
    position = humans[-1] if humans else 0
    while position and _is_call(messages[position - 1]):
        position -= 1
    return position


def _is_call(message: AnyMessage) -> bool:
    return isinstance(message, AIMessage) and bool(message.tool_calls)
