"""A run of an agent: whose memory it uses, which it says itself, and which of its messages are new, each once."""

import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Annotated, Any, Final, NotRequired, TypedDict
from uuid import uuid4

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import OmitFromOutput, PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.untracked_value import UntrackedValue

from eunoe.errors import InputError, ScopeError
from eunoe.memory import Memory
from eunoe.model.scope import MAX_VALUE_CHARACTERS, Scope
from eunoe.text.normalize import replace_surrogates

_IDS: Final = ("user_id", "agent_id", "session_id", "thread_id")
_NAMES: Final = ("memory_scope", *_IDS)
_CONVERSATION_IDS: Final = frozenset({"session_id", "thread_id"})
_CONVERSATION_KEYS: Final = ("session", "thread")
_DIGEST_CHARACTERS: Final = 16
_log = logging.getLogger("eunoe")


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


NO_LOG: Final = RunLog(last="", waiting=[])


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


def run_scope(state: Mapping[str, Any], runtime: Any) -> Scope:
    """Read the scope from a run's context or state.

    A `memory_scope` is taken as it is. Else a `user_id` must be there; without it a ScopeError is raised. The thread
    of the checkpointer is added if neither session nor thread is named. The id of a session or thread goes by its
    fingerprint, if it is too long for a scope. If the context names a user, the state, which may come from outside,
    cannot name another one.
    """
    sources = (runtime.context, state)
    for source in sources:
        if (named := _value(source, "memory_scope")) is not None:
            return Scope.of(named)
        if _value(source, "user_id") is not None:
            break
    ids: dict[str, Any] = {}
    for name in _IDS:
        value = next((found for source in sources if (found := _value(source, name)) is not None), None)
        if value is not None:
            ids[name] = _short(value) if name in _CONVERSATION_IDS else value
    if "user_id" not in ids:
        raise ScopeError("the run names no user_id, neither in its context nor in its state")
    scope = Scope.of(ids)
    thread = getattr(runtime.execution_info, "thread_id", None)
    if not thread or any(key in scope for key in _CONVERSATION_KEYS):
        return scope
    return scope.extended({"thread": _short(thread)})


def read_names(state: Mapping[str, Any]) -> dict[str, Any]:
    """What the input of a run says of whose memory it uses."""
    return {name: value for name in _NAMES if (value := state.get(name)) is not None}


def with_names(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state of a run with what its input named: no checkpoint has that, so a run that goes on has lost it."""
    kept = state.get("eunoe_names")
    return {**state, **kept} if kept and not read_names(state) else state


def lasting_scope(scope: Scope) -> Scope:
    """The same memory beyond one conversation, where what is stored on purpose belongs."""
    kept = [key for key in scope if key not in _CONVERSATION_KEYS]
    return scope.only(kept) if kept else scope


def read_messages(log: RunLog, messages: Sequence[AnyMessage], scope: Scope | None) -> RunLog:
    """Take in what was said since the log was last read. Without a scope it is read and never learned.

    Messages that wait are read again: they may have been redacted since, or removed by a summary.
    """
    if not messages:
        return log
    for message in messages:
        if message.id is None:  # as LangChain's own middleware does: not every agent's state has done so
            message.id = str(uuid4())
    current = {message.id: message for message in messages}
    waiting = []
    for entry in log["waiting"]:
        known = current.get(entry["id"])
        waiting.append(entry if known is None else WaitingMessage(**{**entry, "text": _said_text(known)}))
    ids = {entry["id"] for entry in waiting}
    for message in messages[_first_new(messages, log["last"]) :]:
        if scope and message.id not in ids and is_said(message):
            role = "user" if isinstance(message, HumanMessage) else "assistant"
            speaker, text = replace_surrogates(message.name or ""), _said_text(message)
            waiting.append(WaitingMessage(scope=scope.text, id=message.id or "", role=role, speaker=speaker, text=text))
    return RunLog(last=messages[-1].id or "", waiting=[entry for entry in waiting if entry["text"]])


def is_said(message: AnyMessage) -> bool:
    """Whether a human or the agent said it. Tools' results, summaries and what middleware wrote are not learned."""
    is_speech = isinstance(message, HumanMessage | AIMessage)
    return is_speech and "lc_source" not in message.additional_kwargs and bool(_said_text(message))


def last_question(messages: Sequence[AnyMessage]) -> str:
    humans = (each for each in reversed(messages) if isinstance(each, HumanMessage) and is_said(each))
    return next((human.text for human in humans), "")


def learn(memory: Memory, waiting: Sequence[WaitingMessage]) -> None:
    """Observe messages in their scopes. Those that are known by their id are recognised."""
    for scope, entries in groupby(waiting, lambda entry: entry["scope"]):
        messages: list[dict[str, Any]] = [
            {name: value for name, value in entry.items() if name != "scope"} for entry in entries
        ]
        outcomes = _observe(memory, scope, messages)
        edited = []
        for message, outcome in zip(messages, outcomes, strict=True):
            if outcome == "conflict":  # it was edited: its id stands for other words by now
                digest = sha256(message["text"].encode()).hexdigest()[:_DIGEST_CHARACTERS]
                edited.append({**message, "id": f"{message['id']}-{digest}"})
        if edited:
            _observe(memory, scope, edited)


def _observe(memory: Memory, scope: str, messages: list[dict[str, Any]]) -> list[str]:
    """Observe messages; return what became of each. One that cannot be stored must not keep the others waiting."""
    try:
        return [receipt.outcome for receipt in memory.observe(scope, messages)]
    except InputError:
        if len(messages) > 1:
            return [outcome for message in messages for outcome in _observe(memory, scope, [message])]
        _log.warning("memory: a message of %d characters cannot be learned", len(messages[0]["text"]))
        return ["ignored"]


def _first_new(messages: Sequence[AnyMessage], last: str) -> int:
    """The place after the message read last. If that is gone, or nothing was read yet, the last thing asked."""
    for place in range(len(messages) - 1, -1, -1):
        if last and messages[place].id == last:
            return place + 1
    start = len(messages)
    while start and not isinstance(messages[start - 1], HumanMessage):
        start -= 1
    while start and isinstance(messages[start - 1], HumanMessage):
        start -= 1
    return start


def _said_text(message: AnyMessage) -> str:
    return replace_surrogates(message.text).strip()


def _short(id: Any) -> Any:
    if isinstance(id, str) and len(id) > MAX_VALUE_CHARACTERS:
        return sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return id


def _value(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
