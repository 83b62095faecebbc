"""MemoryMiddleware: an agent recalls before it speaks and learns after it has spoken."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Final, Literal
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from eunoe.errors import AccessError, InputError, ScopeError
from eunoe.hosts.common import blocking
from eunoe.hosts.langchain.deadline import Deadline
from eunoe.hosts.langchain.final_text import final_text_update
from eunoe.hosts.langchain.runs import (
    NO_LOG,
    MemoryState,
    RunLog,
    WaitingMessage,
    last_question,
    learn,
    read_messages,
    read_names,
    run_scope,
    with_names,
)
from eunoe.hosts.langchain.tools import STORE_TOOL, memory_tools
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import RecipeName, check_choice, check_count, check_seconds
from eunoe.model.scope import Scope, ScopeLike
from eunoe.recall.recipes import Recipe
from eunoe.recall.request import find_recipe

Mode = Literal["message", "system", "tools"]
ScopeFunction = Callable[[Mapping[str, Any], Any], ScopeLike]
_Update = dict[str, Any]
_Result = ToolMessage | Command[Any]
_MOST_TEXTS: Final = 1000
_TEXT_SECONDS: Final = 60.0
"""How long a recalled text counts. Something in it may be forgotten while a run waits for a person."""
_log = logging.getLogger("eunoe")


class RecalledTexts:
    """What was recalled for the turns under way: outside of agents' states, each under a key that nobody else has.

    A run that breaks off leaves its text behind, so the oldest make room. A run whose text is gone or old recalls
    again.
    """

    def __init__(self, most: int = _MOST_TEXTS, seconds: float = _TEXT_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._texts: dict[str, tuple[str, float]] = {}
        self._lock = Lock()

    def add(self, text: str) -> str:
        key = uuid4().hex
        with self._lock:
            self._texts[key] = text, monotonic() + self._seconds
            if len(self._texts) > self._most:
                del self._texts[next(iter(self._texts))]
        return key

    def get(self, key: str | None) -> str | None:
        text, end = self._texts.get(key or "", ("", 0.0))
        return text if monotonic() < end else None

    def remove(self, key: str | None) -> None:
        with self._lock:
            self._texts.pop(key or "", None)


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Memory for an agent made with `create_agent`. One object serves any number of runs at once.

    Before the model is called it sees what memory holds about the user's message. After the agent has finished, what
    the user and the agent said is learned. Whatever goes wrong with the memory is logged, and the run goes on.

    >>> from langchain.agents import create_agent
    >>> from langchain_core.language_models import FakeListChatModel
    >>> memory = eunoe.open(":memory:")
    >>> middleware = MemoryMiddleware(memory, tools=False)
    >>> agent = create_agent(FakeListChatModel(responses=["Noted."]), middleware=[middleware])
    >>> said = {"messages": [("user", "I am allergic to peanuts.")], "user_id": "anna"}
    >>> agent.invoke(said)["messages"][-1].text
    'Noted.'
    >>> memory.recall("user=anna", "peanuts")[0].text
    'I am allergic to peanuts.'
    >>> memory.close()
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: Memory | AsyncMemory | None = None,
        *,
        scope: ScopeFunction | None = None,
        mode: Mode = "message",
        tools: bool = True,
        learns: bool = True,
        tokens: int = 2000,
        limit: int = 10,
        recipe: RecipeName | Recipe | int = "default",
        recall_seconds: float = 10.0,
        learn_seconds: float = 10.0,
    ) -> None:
        """
        Args:
            memory: a memory, blocking or async; the command line's store if none is given.
            scope: tells whose memory a run uses, from its state and runtime. Without it, see `run_scope`.
            mode: "message" shows what is recalled as a message of the user's role, before the last one; "system" in
                the system message; "tools" not at all.
            tools: offer tools to search and to store.
            learns: learn what the user and the agent say.
            tokens: the most that is shown for a turn. `limit`: the most memories that are looked up for it.
            recipe: how they are ranked, as in `recall`.
            recall_seconds: how long a run waits for what is recalled. After that it goes on without it.
            learn_seconds: how long a run waits until it is learned. After that learning goes on behind it.
        """
        super().__init__()
        self._memory = memory
        if scope is not None and not callable(scope):
            raise InputError("scope must be a function of state and runtime: whose memory it is, each run says anew")
        self._scope_function = scope or run_scope
        self._mode: Mode = check_choice(mode, "mode", ("message", "system", "tools"))
        self._learns = learns
        self._options: dict[str, Any] = {
            "tokens": check_count(tokens, "tokens"),
            "limit": check_count(limit, "limit"),
            "recipe": find_recipe(recipe),
        }
        self._reading = Deadline("recall", check_seconds(recall_seconds, "recall_seconds"), finishes=False)
        self._writing = Deadline("learning", check_seconds(learn_seconds, "learn_seconds"), finishes=True)
        self._texts = RecalledTexts()
        self._has_warned = False
        self.tools = memory_tools(self._open, self._find_scope, self._reading, self._writing) if tools else []

    @property
    def name(self) -> str:
        """Its name among other middleware. Deep Agents has a `MemoryMiddleware` of its own."""
        return "EunoeMemoryMiddleware"

    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> _Update:
        state, scope = self._beginning(state, runtime)
        return self._opening(state, scope, self._recall(state, scope))

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> _Update:
        state, scope = self._beginning(state, runtime)
        return self._opening(state, scope, await self._arecall(state, scope))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        state: Mapping[str, Any] = request.state
        if (text := self._texts.get(state.get("eunoe_recall"))) is not None:
            return handler(with_memory(request, text, self._mode))
        text = self._recall(state, self._scope(state, request.runtime))
        return self._with_recall(handler(with_memory(request, text, self._mode)), text)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        state: Mapping[str, Any] = request.state
        if (text := self._texts.get(state.get("eunoe_recall"))) is not None:
            return await handler(with_memory(request, text, self._mode))
        text = await self._arecall(state, self._scope(state, request.runtime))
        return self._with_recall(await handler(with_memory(request, text, self._mode)), text)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], _Result]) -> _Result:
        """Let other tools see whose run it is, such as one that calls a subagent, also after an interrupt."""
        return handler(_with_names(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        return await handler(_with_names(request))

    def after_model(self, state: MemoryState, runtime: Runtime[Any]) -> _Update | None:
        """Note what was said, since a summary may remove it before the agent has finished."""
        log = self._log_of(state, self._scope(state, runtime))
        return None if log == state.get("eunoe_log") else {"eunoe_log": log}

    async def aafter_model(self, state: MemoryState, runtime: Runtime[Any]) -> _Update | None:
        return self.after_model(state, runtime)

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> _Update:
        update = self._closing(state, runtime)
        waiting = update["eunoe_log"]["waiting"]
        try:
            if waiting:
                self._writing.run(lambda: learn(self._open(), waiting))
            left = []
        except Exception as error:
            left = _messages_to_retry(waiting, error)
        update["eunoe_log"]["waiting"] = left
        return update

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> _Update:
        update = self._closing(state, runtime)
        waiting = update["eunoe_log"]["waiting"]
        try:
            if waiting:
                await self._writing.arun(lambda: learn(self._open(), waiting))
            left = []
        except Exception as error:
            left = _messages_to_retry(waiting, error)
        update["eunoe_log"]["waiting"] = left
        return update

    def _beginning(self, state: MemoryState, runtime: Runtime[Any]) -> tuple[MemoryState, Scope | None]:
        """The state of a run that begins, which knows no names but those of its own input; and its scope."""
        state = {**state, "eunoe_names": read_names(state)}
        return state, self._scope(state, runtime)

    def _opening(self, state: Mapping[str, Any], scope: Scope | None, text: str) -> _Update:
        return {
            "eunoe_names": state["eunoe_names"],
            "eunoe_recall": self._texts.add(text),
            "eunoe_log": self._log_of(state, scope),
        }

    def _with_recall(self, response: ModelResponse[Any], text: str) -> ExtendedModelResponse[Any]:
        """Keep what was recalled for the next call of the model: an interrupted run has lost it."""
        return ExtendedModelResponse(response, Command(update={"eunoe_recall": self._texts.add(text)}))

    def _closing(self, state: Mapping[str, Any], runtime: Runtime[Any]) -> _Update:
        """What the state becomes when the agent has finished, before anything is learned."""
        messages = final_text_update(state, {STORE_TOOL})
        changed = {message.id: message for message in messages}
        final = {**state, "messages": [changed.get(message.id, message) for message in state["messages"]]}
        log = self._log_of(final, self._scope(state, runtime))
        self._texts.remove(state.get("eunoe_recall"))
        update: _Update = {"eunoe_log": log, "eunoe_names": {}}
        return {**update, "messages": messages} if messages else update

    def _log_of(self, state: Mapping[str, Any], scope: Scope | None) -> RunLog:
        return read_messages(state.get("eunoe_log") or NO_LOG, state["messages"], scope if self._learns else None)

    def _recall(self, state: Mapping[str, Any], scope: Scope | None) -> str:
        if scope is None or self._mode == "tools":
            return ""
        try:
            return self._reading.run(partial(self._context_text, scope, last_question(state["messages"])))
        except Exception as error:
            return _without_context(error)

    async def _arecall(self, state: Mapping[str, Any], scope: Scope | None) -> str:
        if scope is None or self._mode == "tools":
            return ""
        try:
            return await self._reading.arun(partial(self._context_text, scope, last_question(state["messages"])))
        except Exception as error:
            return _without_context(error)

    def _context_text(self, scope: Scope, question: str) -> str:
        context = self._open().context(scope, question, **self._options)
        if not context.text:
            _log.info("memory: the context is empty: %s", "; ".join(context.notes + context.faults))
        return context.text

    def _scope(self, state: Mapping[str, Any], runtime: Any) -> Scope | None:
        """The scope of a run, or None if it names none: then it goes on without memory."""
        try:
            return self._find_scope(state, runtime)
        except Exception as error:
            if not self._has_warned:
                self._has_warned = True
                reason = str(error) if isinstance(error, ScopeError) else type(error).__name__
                _log.warning("memory: a run goes on without memory: %s", reason)
            return None

    def _find_scope(self, state: Mapping[str, Any], runtime: Any) -> Scope:
        return Scope.of(self._scope_function(with_names(state), runtime))

    def _open(self) -> Memory:
        return blocking(self._memory)


def _with_names(request: ToolCallRequest) -> ToolCallRequest:
    state = dict(with_names(request.state))
    return replace(request, state=state, runtime=replace(request.runtime, state=state))


def _without_context(error: Exception) -> str:
    _log.warning("memory: a run goes on without what it would recall: %s", type(error).__name__)
    return ""


def _messages_to_retry(waiting: list[WaitingMessage], error: Exception) -> list[WaitingMessage]:
    """What the next run of the thread has to try again; nothing if this memory may never be written."""
    _log.warning("memory: %d messages are not known to be learned: %s", len(waiting), type(error).__name__)
    return [] if isinstance(error, AccessError) else waiting


def with_memory(request: ModelRequest[Any], text: str, mode: Mode) -> ModelRequest[Any]:
    """The request with recalled text in it: only there, never in the agent's state."""
    if not text:
        return request
    if mode == "system":
        blocks = request.system_message.content_blocks if request.system_message else []
        return request.override(system_message=SystemMessage(content_blocks=[*blocks, {"type": "text", "text": text}]))
    messages = request.messages
    place = next((at for at in reversed(range(len(messages))) if isinstance(messages[at], HumanMessage)), 0)
    while place and isinstance(call := messages[place - 1], AIMessage) and call.tool_calls:
        place -= 1  # before what the human said last, but never after a call that waits for its result
    return request.override(messages=[*messages[:place], HumanMessage(text), *messages[place:]])
