"""Memory without a line of code in the nodes: callbacks and a mixin that recall before, and store the answer after."""

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from injectq import InjectQ
from tenxgraph.core.state import AgentState, Message
from tenxgraph.runtime.adapters.llm.model_response_converter import ModelResponseConverter
from tenxgraph.storage.store.base_store import BaseStore
from tenxgraph.storage.store.store_schema import MemorySearchResult
from tenxgraph.utils.callbacks import (
    AfterInvokeCallback,
    BeforeInvokeCallback,
    CallbackContext,
    CallbackManager,
    GraphLifecycleContext,
    GraphLifecycleHook,
    InvocationType,
)
from tenxgraph.utils.command import Command
from tenxgraph.utils.constants import END, START

from eunoe.errors import InputError
from eunoe.hosts.agentflow.manager import (
    MemoryManager,
    TurnCache,
    format_memories,
    last_user_message,
    with_memories,
    without_memories,
)

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


def configure_memory(
    container: InjectQ,
    store: BaseStore | None,
    auto_retrieve: bool = True,
    auto_store: bool = True,
    relevance_threshold: float = 0.7,
    max_memories: int = 5,
    **options: Any,
) -> MemoryManager:
    """Bind a store and a manager in a container, and give the manager. `options` are those of `MemoryManager`.

    Use what this gives in nodes and callbacks. `Inject[MemoryManager]` finds the container that was activated last:
    with two graphs in a process, that is the other one's.
    """
    if container is None:
        raise InputError("container is None: pass an InjectQ, such as InjectQ.get_instance()")
    manager = MemoryManager(store, auto_retrieve, auto_store, relevance_threshold, max_memories, **options)
    if store is not None:
        container.bind_instance(BaseStore, store, allow_concrete=True)
    container.bind_instance(MemoryManager, manager, allow_concrete=True)
    return manager


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
        manager = _managers.get((str(config.get("run_id")),), None if self._is_hook else self.memory_manager)
        if name is None or context.node_name in (START, END) or manager is None or not manager.auto_retrieve:
            return input_data
        original = input_data[name]
        memories = await manager.retrieve_for_turn(original, config)
        if not memories:
            return input_data
        summary = with_memories(original.context_summary, manager.format_memories(memories))
        shown = original.model_copy(update={"context_summary": summary})
        _view.set(_View(shown, original, summary))
        return {**input_data, name: shown}

    async def take_back(self, context: CallbackContext, input_data: Any, output_data: Any) -> Any:
        """Take the memories out of a state that the node returns, and keep what it changed in the one it was shown."""
        view, name = _view.get(), _name_of_state(input_data)
        if view is None or name is None or input_data[name] is not view.shown:
            return output_data
        shown, original, _ = view
        for field in type(original).model_fields:
            value = view.summary_after(shown) if field == "context_summary" else getattr(shown, field)
            if value is not getattr(original, field) and value != getattr(original, field):
                setattr(original, field, value)
        for state in _states_in(output_data):
            state.context_summary = view.summary_after(state)
        return output_data


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
        self, context: GraphLifecycleContext, node_name: str, old_state: AgentState, new_state: AgentState, step: int
    ) -> AgentState | None:
        await self._store(node_name, context.config, new_state.context)
        return None

    async def __call__(self, context: CallbackContext, input_data: Any, output_data: Any) -> Any:
        """Do the same as a plain callback after a node. Answers that are streamed only the hook sees."""
        name, config = _name_of_state(input_data), _config(context)
        if name is None:
            return output_data
        # An answer becomes the message that Agentflow would make of it, so that it has its id already.
        if isinstance(output_data, str):
            output_data = Message.text_message(output_data, role="assistant")
        elif isinstance(output_data, ModelResponseConverter) and not config.get("is_stream"):
            output_data = await output_data.invoke()
        states = list(_states_in(output_data))
        parts = output_data.update if isinstance(output_data, Command) else output_data
        answered = states[0].context if states else parts if isinstance(parts, list) else [parts]
        messages = [part for part in answered if isinstance(part, Message)]
        await self._store(context.node_name, config, [*input_data[name].context, *messages])
        return output_data

    async def _store(self, node_name: str, config: Mapping[str, Any], messages: list[Message]) -> None:
        """Store what the user said last, and the last answer after it that is more than a call of a tool."""
        if not self.memory_manager.auto_store or (self.store_nodes is not None and node_name not in self.store_nodes):
            return
        question = answer = None
        for message in messages:
            if message.role == "user":
                question, answer = message, None
            elif message.role == "assistant" and not message.tools_calls and message.text().strip():
                answer = message
        run = (str(config.get("run_id")),)
        if question is None or answer is None or run in self._slow_runs:
            return
        try:
            async with asyncio.timeout(self.memory_manager.timeout_seconds):
                await self.memory_manager.store_interaction(config, question, answer)
        except Exception as error:
            if isinstance(error, TimeoutError) and config.get("run_id"):
                self._slow_runs.keep(run, True)  # not every node of a run is to wait for a store that hangs
            _log.warning("an interaction could not be stored: %s", type(error).__name__)


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
    for part in [output.update, output.state] if isinstance(output, Command) else [output]:
        if isinstance(part, AgentState):
            yield part
        elif isinstance(part, Mapping) and isinstance(part.get("state"), AgentState):
            yield part["state"]
