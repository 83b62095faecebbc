"""Which messages of a thread are new, and how they are learned: each once, under the scope of its own run."""

import logging
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from eunoe.errors import InputError
from eunoe.hosts.langchain.state import RunLog, WaitingMessage
from eunoe.memory import Memory
from eunoe.model.scope import Scope
from eunoe.text.normalize import replace_surrogates

NO_LOG: Final = RunLog(last="", waiting=[])
_DIGEST_CHARACTERS: Final = 16
_log = logging.getLogger("eunoe")


def read_messages(log: RunLog, messages: Sequence[AnyMessage], scope: Scope | None) -> RunLog:
    """Take in what was said since the log was last read. Without a scope it is read and never learned.

    Messages that wait are read again: they may have been redacted since, or removed by a summary.
    """
    if not messages:
        return log
    _ensure_ids(messages)
    current = {message.id: message for message in messages}
    waiting = [_current_entry(entry, current.get(entry["id"])) for entry in log["waiting"]]
    known = {entry["id"] for entry in waiting}
    new = [message for message in messages[_first_new(messages, log["last"]) :] if message.id not in known]
    if scope:
        waiting += [_entry(message, scope) for message in new if is_said(message)]
    return RunLog(last=messages[-1].id or "", waiting=[entry for entry in waiting if entry["text"]])


def is_said(message: AnyMessage) -> bool:
    """Whether a human or the agent said it. Tools' results, summaries and what middleware wrote are not learned."""
    is_speech = isinstance(message, HumanMessage | AIMessage)
    return is_speech and "lc_source" not in message.additional_kwargs and bool(_said_text(message))


def last_question(messages: Sequence[AnyMessage]) -> str:
    """What the human said last."""
    humans = (each for each in reversed(messages) if isinstance(each, HumanMessage) and is_said(each))
    return next((human.text for human in humans), "")


def learn(memory: Memory, waiting: Sequence[WaitingMessage]) -> None:
    """Observe messages in their scopes. Those that are known by their id are recognised."""
    for scope, entries in groupby(waiting, lambda entry: entry["scope"]):
        messages = [_message(entry) for entry in entries]
        outcomes = _observe(memory, scope, messages)
        edited = [message for message, outcome in zip(messages, outcomes, strict=True) if outcome == "conflict"]
        if edited:
            _observe(memory, scope, map(_with_text_in_id, edited))


def _observe(memory: Memory, scope: str, messages: Iterable[dict[str, Any]]) -> list[str]:
    """Observe messages; return what became of each. One that cannot be stored must not keep the others waiting."""
    given = list(messages)
    try:
        return [receipt.outcome for receipt in memory.observe(scope, given)]
    except InputError:
        if len(given) > 1:
            return [outcome for message in given for outcome in _observe(memory, scope, [message])]
        _log.warning("memory: a message of %d characters cannot be learned", len(given[0]["text"]))
        return ["ignored"]


def _ensure_ids(messages: Iterable[AnyMessage]) -> None:
    """Give an id to messages without one, as LangChain's own middleware does: not every agent's state has done so."""
    for message in messages:
        if message.id is None:
            message.id = str(uuid4())


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


def _entry(message: AnyMessage, scope: Scope) -> WaitingMessage:
    role = "user" if isinstance(message, HumanMessage) else "assistant"
    speaker = replace_surrogates(message.name or "")
    return WaitingMessage(scope=scope.text, id=message.id or "", role=role, speaker=speaker, text=_said_text(message))


def _current_entry(entry: WaitingMessage, message: AnyMessage | None) -> WaitingMessage:
    return entry if message is None else WaitingMessage(**{**entry, "text": _said_text(message)})


def _message(entry: WaitingMessage) -> dict[str, Any]:
    return {name: entry[name] for name in ("id", "role", "speaker", "text")}


def _with_text_in_id(message: dict[str, Any]) -> dict[str, Any]:
    """The id of a message that was edited: it stands for other words by now."""
    digest = sha256(message["text"].encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return {**message, "id": f"{message['id']}-{digest}"}
