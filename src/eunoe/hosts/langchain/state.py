"""What a run of an agent knows of its memory."""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import OmitFromOutput, PrivateStateAttr
from langgraph.channels.untracked_value import UntrackedValue


class WaitingMessage(TypedDict):
    """A message that is still to be learned, and whose memory it belongs to."""

    scope: str
    id: str
    role: str
    speaker: str
    text: str


class RunLog(TypedDict):
    """How far the messages of a thread have been read, and which of them are still to be learned."""

    last: str
    waiting: list[WaitingMessage]


class RecalledText:
    """What was recalled for a turn. It does not show itself, since streams give out the whole state."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"RecalledText({len(self.text)} characters)"


class MemoryState(AgentState[Any]):
    """The state of an agent with memory. A run may name here whose memory it uses, or in its context."""

    # They stay out of the output, since two subagents that end at once may not both write one key of their parent.
    user_id: NotRequired[Annotated[str, OmitFromOutput]]
    agent_id: NotRequired[Annotated[str, OmitFromOutput]]
    session_id: NotRequired[Annotated[str, OmitFromOutput]]
    thread_id: NotRequired[Annotated[str, OmitFromOutput]]
    memory_scope: NotRequired[Annotated[Mapping[str, str] | str, OmitFromOutput]]

    eunoe_context: NotRequired[Annotated[RecalledText, UntrackedValue, PrivateStateAttr]]
    """No checkpoint keeps it."""
    eunoe_log: NotRequired[Annotated[RunLog, PrivateStateAttr]]
