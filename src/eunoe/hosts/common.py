"""What several adapters need: their memory, messages kept whole, values as JSON, problems of foreign data."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar
from uuid import UUID, uuid4

import eunoe
from eunoe.errors import InputError, NotFoundError
from eunoe.memory import AsyncMemory, Memory, iterate
from eunoe.model.arguments import check_text
from eunoe.model.message import Message
from eunoe.model.scope import ScopeLike
from eunoe.text.normalize import replace_surrogates

R = TypeVar("R")

ODD_DATA = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
"""What data of another shape raises."""
_lock = Lock()


def default_memory() -> Memory:
    """Open the per-user store, or the one that EUNOE_STORE names, once in this process. It is closed at exit."""
    with _lock:
        return _open(os.environ.get("EUNOE_STORE"))


@cache
def _open(target: str | None) -> Memory:
    memory = eunoe.open(target or None)
    atexit.register(memory.close)
    return memory


def blocking(memory: Memory | AsyncMemory | None) -> Memory:
    """The memory that an adapter was given, as one that blocks; the store of the command line, if it was given none."""
    return memory.blocking if isinstance(memory, AsyncMemory) else memory or default_memory()


def awaited(method: Callable[..., R], on: str = "") -> Callable[..., Coroutine[Any, Any, R]]:
    """The async twin of a method, of the object itself or of what it has `on`. It runs in a thread, so that it never
    blocks the event loop."""

    @wraps(method)
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> R:
        twin = getattr(getattr(self, on) if on else self, method.__name__)
        result: R = await asyncio.to_thread(twin, *args, **kwargs)
        return result

    return call


def whole_message(value: Mapping[str, Any], field: str, role: str, words: str) -> dict[str, Any]:
    """A message for `Memory.observe` that keeps a value whole, in a field of its metadata; only half an emoji in it is
    replaced."""
    try:
        whole = json.loads(replace_surrogates(json.dumps(value, ensure_ascii=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a message cannot be written as JSON: {error}") from None
    return {"id": uuid4().hex, "role": role, "content": replace_surrogates(words), "metadata": {field: whole}}


def latest_messages(memory: Memory, scope: ScopeLike, field: str) -> Iterator[Message]:
    """The messages with this field, the latest first."""
    for item in iterate(memory, scope, kinds=["message"], newest=True, exact=True):
        if isinstance(item, Message) and field in item.metadata:
            yield item


def forget_message(memory: Memory, scope: ScopeLike, id: str) -> bool:
    """Forget a message, with what was learned from it; False if somebody else has forgotten it."""
    try:
        return id in memory.forget(scope, id, may_return=True, exact=True).messages
    except NotFoundError:
        return False


def forget_messages(memory: Memory, scope: ScopeLike, field: str) -> None:
    """Forget all messages with this field, with what was learned from them."""
    while ids := [message.id for message in latest_messages(memory, scope, field)]:
        try:
            memory.forget(scope, ids, may_return=True, exact=True)
            return
        except NotFoundError:  # somebody else has forgotten one of them: none is gone yet
            continue


def plain_mapping(given: Any, name: str) -> dict[str, Any]:
    """Return a copy of a mapping as it will come back.

    Dates, UUIDs, decimals, enums, dataclasses, tuples, sets and keys that are numbers become what JSON has for them.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{name} must be a mapping, not {type(given).__name__}")
    try:
        text = json.dumps(dict(given), default=_plain, allow_nan=False, ensure_ascii=False)
        plain: dict[str, Any] = json.loads(check_text(text, name), object_pairs_hook=_distinct)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{name} is nothing that JSON can carry: {error}") from None
    return plain


def _plain(value: Any) -> Any:
    """What is not of one of JSON's own types, or of a type made from one."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=lambda each: (type(each).__name__, str(each)))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is neither text nor number, list or dict")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a number and the same number as text are keys of one dict")
    return found


class Problems:
    """What an import of foreign data cannot read, each once, with its place; the rest comes."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def add(self, place: str, reason: object, prefix: str = "") -> None:
        text = str(reason)
        if isinstance(reason, KeyError):
            text = f"{reason.args[0]} is missing"
        elif isinstance(reason, json.JSONDecodeError):
            text = f"not JSON: {reason.msg}"
        elif isinstance(reason, UnicodeDecodeError):
            text = "not UTF-8 text"
        elif isinstance(reason, RecursionError):
            text = "nested too deep"
        self._lines[f"{place}: {' '.join((prefix + text).split())}"] = None

    @contextmanager
    def catch(self, place: str, prefix: str = "") -> Iterator[None]:
        """Make a problem of what odd data raises."""
        try:
            yield
        except ODD_DATA as error:
            self.add(place, error, prefix)
