"""Memory without a line of code in the nodes: callbacks that recall before a node runs, and store what it answered."""

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from eunoe.hosts.agentflow.formatting import with_memories, without_memories
from eunoe.hosts.agentflow.framework import (
    END,
    START,
    AfterInvokeCallback,
    AgentState,
    BeforeInvokeCallback,
    CallbackContext,
    CallbackManager,
    Command,
    GraphLifecycleContext,
    GraphLifecycleHook,
    InvocationType,
    Message,
    ModelResponseConverter,
)
from eunoe.hosts.agentflow.manager import MemoryManager
from eunoe.hosts.agentflow.turn_cache import TurnCache

_log = logging.getLogger("eunoe")


class _View(NamedTuple):
    """The state that a node is shown, the one that it is a copy of, and the summary with the memories."""

    shown: AgentState
    original: AgentState
    summary: str

    def summary_after(self, state: AgentState) -> str | None:
        """The summary that a node leaves: its own, without the memories, or the one of before."""
        is_unchanged = state.context_summary == self.summary
        return self.original.context_summary if is_unchanged else without_memories(state.context_summary)


_view: ContextVar[_View | None] = ContextVar("eunoe_agentflow_view", default=None)
"""The view of the node that runs in this context; nodes of other runs have contexts of their own."""


_managers: Final = TurnCache[MemoryManager]()
"""The manager of each run. Agentflow calls the callbacks of the graph that was built last, whichever runs; what belongs
to a graph for sure is told when its run starts."""


class MemoryRetrievalCallback(BeforeInvokeCallback[Any, Any], GraphLifecycleHook[AgentState]):
    """Shows a node the memories that fit what the user said last, after the summary of its state.

    The node gets a copy of the state: no memory gets into a checkpoint. All nodes of a turn share one search. An
    `Agent` takes its state from Agentflow itself; give it the `MemoryAwareMixin`.
    """

    def __init__(self, memory_manager: MemoryManager) -> None:
        self.memory_manager = memory_manager
        self._is_hook = False

    def register(self, callbacks: CallbackManager) -> None:
        """Register what runs before a node, and what keeps the memories out of the state that it returns."""
        self._is_hook = True
        callbacks.register_lifecycle_hook(self)
        callbacks.register_before_invoke(InvocationType.AI, self)
        callbacks.register_after_invoke(InvocationType.AI, self.take_back)

    async def on_graph_start(self, context: GraphLifecycleContext, state: AgentState) -> AgentState | None:
        _managers.keep((str(context.run_id),), self.memory_manager)
        return None

    async def __call__(self, context: CallbackContext, input_data: Any) -> Any:
        _view.set(None)
        config, name = _config(context), _name_of_state(input_data)
        manager = self._manager_of(config)
        if name is None or context.node_name in (START, END) or manager is None or not manager.auto_retrieve:
            return input_data
        original = input_data[name]
        memories = await manager.retrieve_for_turn(original, config)
        if not memories:
            return input_data
        text = manager.format_memories(memories)
        summary = with_memories(original.context_summary, text)
        shown = original.model_copy(update={"context_summary": summary})
        _view.set(_View(shown, original, summary))
        return {**input_data, name: shown}

    async def take_back(self, context: CallbackContext, input_data: Any, output_data: Any) -> Any:
        """Take the memories out of a state that the node returns, and keep what it changed in the one it was shown."""
        view, name = _view.get(), _name_of_state(input_data)
        if view is None or name is None or input_data[name] is not view.shown:
            return output_data
        _copy_changes(view)
        for state in _states_in(output_data):
            state.context_summary = view.summary_after(state)
        return output_data

    def _manager_of(self, config: Mapping[str, Any]) -> MemoryManager | None:
        """The manager of the graph that runs; None if that graph has none."""
        return _managers.get((str(config.get("run_id")),), None if self._is_hook else self.memory_manager)


class MemoryStorageCallback(AfterInvokeCallback[Any, Any], GraphLifecycleHook[AgentState]):
    """Stores what the user said and what a node answered, once for each thing the user said.

    Args:
        memory_manager: What stores it.
        store_nodes: The nodes whose answers count; None: all of them.
    """

    def __init__(self, memory_manager: MemoryManager, store_nodes: Collection[str] | None = None) -> None:
        self.memory_manager = memory_manager
        self.store_nodes = store_nodes
        self._slow_runs = TurnCache[bool]()

    def register(self, callbacks: CallbackManager) -> None:
        """Register it for all nodes, functions and agents, in plain and in streaming runs."""
        callbacks.register_lifecycle_hook(self)

    async def on_state_update(
        self,
        context: GraphLifecycleContext,
        node_name: str,
        old_state: AgentState,
        new_state: AgentState,
        step: int,
    ) -> AgentState | None:
        await self._store(node_name, context.config, new_state.context)
        return None

    async def __call__(self, context: CallbackContext, input_data: Any, output_data: Any) -> Any:
        """Do the same as a plain callback after a node. Answers that are streamed only the hook sees."""
        name = _name_of_state(input_data)
        if name is not None:
            config = _config(context)
            output_data = await _as_message(output_data, config)
            await self._store(context.node_name, config, [*input_data[name].context, *_messages_in(output_data)])
        return output_data

    async def _store(self, node_name: str, config: Mapping[str, Any], messages: list[Message]) -> None:
        if not self.memory_manager.auto_store or (self.store_nodes is not None and node_name not in self.store_nodes):
            return
        question, answer = find_interaction(messages)
        if question is None or answer is None:
            return
        run = (str(config.get("run_id")),)
        if run in self._slow_runs:  # not every node of a run is to wait for a store that hangs
            return
        try:
            async with asyncio.timeout(self.memory_manager.timeout_seconds):
                await self.memory_manager.store_interaction(config, question, answer)
        except Exception as error:
            if isinstance(error, TimeoutError) and config.get("run_id"):
                self._slow_runs.keep(run, True)
            _log.warning("an interaction could not be stored: %s", type(error).__name__)


def find_interaction(messages: list[Message]) -> tuple[Message | None, Message | None]:
    """What the user said last, and the last answer after it that is more than a call of a tool."""
    places = [place for place, message in enumerate(messages) if message.role == "user"]
    if not places:
        return None, None
    answers = [message for message in messages[places[-1] + 1 :] if _is_answer(message)]
    return messages[places[-1]], answers[-1] if answers else None


def _is_answer(message: Message) -> bool:
    return message.role == "assistant" and not message.tools_calls and bool(message.text().strip())


def _config(context: CallbackContext) -> Mapping[str, Any]:
    config: Mapping[str, Any] = (context.metadata or {}).get("config") or {}
    return config


def _name_of_state(input_data: Any) -> str | None:
    """The argument that is the state: a node with one parameter may call it as it likes."""
    if not isinstance(input_data, Mapping):
        return None
    return next((name for name, value in input_data.items() if isinstance(value, AgentState)), None)


def _states_in(output: Any) -> Iterator[AgentState]:
    """The states that a node returned: one itself, in a command, or in what an agent returns."""
    parts = [output.update, output.state] if isinstance(output, Command) else [output]
    for part in parts:
        if isinstance(part, AgentState):
            yield part
        elif isinstance(part, Mapping) and isinstance(part.get("state"), AgentState):
            yield part["state"]


def _messages_in(output: Any) -> list[Message]:
    """The messages that a node returned."""
    for state in _states_in(output):
        return list(state.context)
    parts = output.update if isinstance(output, Command) else output
    return [part for part in (parts if isinstance(parts, list) else [parts]) if isinstance(part, Message)]


async def _as_message(output: Any, config: Mapping[str, Any]) -> Any:
    """An answer as the message that Agentflow would make of it, so that it has its id already."""
    if isinstance(output, str):
        return Message.text_message(output, role="assistant")
    if isinstance(output, ModelResponseConverter) and not config.get("is_stream"):
        return await output.invoke()
    return output


def _copy_changes(view: _View) -> None:
    """Set in the original what the node set in the state that it was shown."""
    shown, original, _ = view
    for name in type(original).model_fields:
        value = view.summary_after(shown) if name == "context_summary" else getattr(shown, name)
        if value is not getattr(original, name) and value != getattr(original, name):
            setattr(original, name, value)
