"""Messages that a framework gets back as they were: each is kept whole, in a field of its metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from eunoe.errors import InputError, NotFoundError
from eunoe.memory import Memory
from eunoe.model.message import Message
from eunoe.model.scope import ScopeLike
from eunoe.text.normalize import replace_surrogates

_PAGE: Final = 500


def whole_message(value: Mapping[str, Any], field: str, role: str, words: str) -> dict[str, Any]:
    """A message for `Memory.observe` that keeps a value whole; only half an emoji in it is replaced."""
    try:
        whole = json.loads(replace_surrogates(json.dumps(value, ensure_ascii=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a message cannot be written as JSON: {error}") from None
    return {"id": uuid4().hex, "role": role, "content": replace_surrogates(words), "metadata": {field: whole}}


def latest_messages(memory: Memory, scope: ScopeLike, field: str) -> Iterator[Message]:
    """The messages with this field, the latest first."""
    after = ""
    while True:
        page = memory.list(scope, kinds=["message"], newest=True, limit=_PAGE, after=after, exact=True)
        yield from (item for item in page.items if isinstance(item, Message) and field in item.metadata)
        if not (after := page.next):
            return


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
