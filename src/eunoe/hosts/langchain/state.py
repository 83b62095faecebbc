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


class MemoryState(AgentState[Any]):
    """The state of an agent with memory. A run may name here whose memory it uses, or in its context."""

    # No checkpoint keeps them, since the next run of the thread may be another user's. They stay out of the output,
    # since two subagents that end at once may not both write one key of their parent.
    user_id: NotRequired[Annotated[str, UntrackedValue, OmitFromOutput]]
    agent_id: NotRequired[Annotated[str, UntrackedValue, OmitFromOutput]]
    session_id: NotRequired[Annotated[str, UntrackedValue, OmitFromOutput]]
    thread_id: NotRequired[Annotated[str, UntrackedValue, OmitFromOutput]]
    memory_scope: NotRequired[Annotated[Mapping[str, str] | str, UntrackedValue, OmitFromOutput]]

    eunoe_names: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """What the run named of these, for when it is interrupted and goes on. Each run begins it anew."""
    eunoe_recall: NotRequired[Annotated[str, UntrackedValue, PrivateStateAttr]]
    """The key of what was recalled for a turn. The text is not here, since streams give out the whole state."""
    eunoe_log: NotRequired[Annotated[RunLog, PrivateStateAttr]]
