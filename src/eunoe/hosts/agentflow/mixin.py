"""An agent that recalls before it answers."""

import logging
from typing import Any

from eunoe.hosts.agentflow.formatting import format_memories, with_memories
from eunoe.hosts.agentflow.framework import AgentState, MemorySearchResult, Message
from eunoe.hosts.agentflow.manager import MemoryManager, last_user_message

_log = logging.getLogger("eunoe")


class MemoryAwareMixin:
    """Gives an agent a memory: put it before the class of the agent.

    ```python
    class Assistant(MemoryAwareMixin, Agent): ...

    agent = Assistant(model="gpt-4o", memory_manager=manager)
    ```

    The model reads the memories after the summary of the conversation. They are not part of the state that is kept.
    """

    memory_manager: MemoryManager | None = None

    def __init__(self, *args: Any, memory_manager: MemoryManager | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if memory_manager is not None:
            self.memory_manager = memory_manager
        if self.memory_manager is None:
            _log.warning("%s has no memory_manager: it recalls nothing and stores nothing", type(self).__name__)

    async def execute(self, state: AgentState, config: dict[str, Any]) -> Any:
        """Run the agent on a copy of the state that holds the memories."""
        manager = self.memory_manager
        if manager is not None and manager.auto_retrieve:
            # The summary becomes a message of its own, which is not formatted: braces stay as they are.
            state = _with(state, await manager.retrieve_for_turn(state, config), double_braces=False)
        return await super().execute(state, config)  # type: ignore[misc]

    async def with_memory_context(
        self, state: AgentState, config: dict[str, Any]
    ) -> tuple[AgentState, list[MemorySearchResult]]:
        """A copy of the state with the memories that fit what the user said last, and these memories."""
        message = last_user_message(state)
        if self.memory_manager is None or message is None:
            return state, []
        memories = await self.memory_manager.retrieve_context(config, message.text())
        return _with(state, memories, double_braces=True), memories

    async def store_interaction_memory(
        self, state: AgentState, config: dict[str, Any], user_msg: Message, assistant_msg: Message
    ) -> str:
        """Store what was said and answered. Gives the id of the memory, or "" without a store."""
        if self.memory_manager is None:
            return ""
        return await self.memory_manager.store_interaction(config, user_msg, assistant_msg)


def _with(state: AgentState, memories: list[MemorySearchResult], *, double_braces: bool) -> AgentState:
    if not memories:
        return state
    text = format_memories(memories, double_braces=double_braces)
    return state.model_copy(update={"context_summary": with_memories(state.context_summary, text)})
