"""LangGraph's checkpoints: every message that a thread has ever held, with the time of its first checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from eunoe.errors import InputError, MissingPackageError
from eunoe.hosts.chats.conversation import Conversation
from eunoe.hosts.chats.plain import read_message
from eunoe.hosts.common import Problems

try:
    from langchain_core.messages import BaseMessage, RemoveMessage
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
except ImportError as error:
    raise MissingPackageError("LangGraph's checkpoints need LangGraph: pip install 'eunoe[langgraph]'") from error

Row = tuple[str, str, bytes, bytes]
"""Thread, how the checkpoint is packed, the checkpoint, its metadata."""


def read_threads(rows: Iterable[Row], problems: Problems) -> Iterator[Conversation]:
    """Threads from their checkpoints, each thread's together and in their order."""
    # No type outside the serializer's own list is made: a checkpoint can name any class.
    serializer = JsonPlusSerializer(allowed_msgpack_modules=None)
    for thread, group in groupby(rows, key=lambda row: row[0]):
        yield _read_thread(str(thread), group, serializer, problems)


def _read_thread(thread: str, rows: Iterable[Row], serializer: JsonPlusSerializer, problems: Problems) -> Conversation:
    messages: dict[str, dict[str, Any]] = {}
    person = ""
    for _, packing, data, metadata in rows:
        person = person or _person(metadata)
        with problems.catch(f"thread {thread}"):
            for value in _read_checkpoint(_load(serializer, packing, data), thread):
                messages.setdefault(value["id"], value)
    return Conversation(thread, list(messages.values()), person)


def _read_checkpoint(checkpoint: dict[str, Any], thread: str) -> list[dict[str, Any]]:
    said = enumerate(_messages(checkpoint))
    values = [read_message(each.model_dump(), f"{thread}#{number}", checkpoint.get("ts")) for number, each in said]
    return [value for value in values if value["text"].strip()]


def _load(serializer: JsonPlusSerializer, packing: str, data: bytes) -> dict[str, Any]:
    try:
        checkpoint = serializer.loads_typed((packing, data))
    except Exception as error:  # whatever a damaged or foreign checkpoint makes the serializer raise
        raise InputError(f"a checkpoint cannot be read ({type(error).__name__})") from error
    return checkpoint if isinstance(checkpoint, dict) else {}


def _messages(checkpoint: dict[str, Any]) -> list[BaseMessage]:
    values = checkpoint.get("channel_values")
    messages = values.get("messages") if isinstance(values, dict) else None
    found = messages if isinstance(messages, list) else []
    return [each for each in found if isinstance(each, BaseMessage) and not isinstance(each, RemoveMessage)]


def _person(metadata: bytes | str | None) -> str:
    try:
        value = json.loads(metadata or "{}")
    except ValueError:
        return ""
    user = value.get("user_id") if isinstance(value, dict) else None
    return str(user) if isinstance(user, str | int) else ""
