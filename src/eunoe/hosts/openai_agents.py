"""A session of the OpenAI Agents SDK: its items stand in the message log, and memories are formed from them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

from eunoe.errors import MissingPackageError
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.message import Message
from eunoe.model.scope import Scope, ScopeLike

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import resolve_session_limit
except ImportError as error:
    raise MissingPackageError("eunoe.hosts.openai_agents needs the SDK: pip install 'eunoe[openai-agents]'") from error

_ITEM: Final = "item"
"""The field of a message's metadata that holds the item, whole."""
_PAGE: Final = 1000


class EunoeSession(SessionABC):
    """Pass it to `Runner.run(agent, text, session=...)`.

    Args:
        session_id: the conversation.
        scope: whose it is, such as `{"user": "anna", "agent": "cook"}`; the session is added to it.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | AsyncMemory,
        scope: ScopeLike,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory = memory.blocking if isinstance(memory, AsyncMemory) else memory
        self._scope = Scope.of(scope).extended({"session": session_id})

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest items, in the order in which they were added."""
        count = resolve_session_limit(limit, self.session_settings)
        return await asyncio.to_thread(self._items, count)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if items:
            await asyncio.to_thread(self._memory.observe, self._scope, [_to_message(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Forget the latest item, with what was learned from it, and return it."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Forget the conversation, with what was learned from it."""
        await asyncio.to_thread(self._clear)

    def _items(self, count: int | None) -> list[TResponseInputItem]:
        if count is not None and count <= 0:
            return []
        return [message.metadata[_ITEM] for message in self._latest(count)][::-1]

    def _latest(self, count: int | None) -> Iterator[Message]:
        """Messages that were added as items, the latest first."""
        after, left = "", count
        while left is None or left > 0:
            page = self._memory.list(self._scope, kinds=["message"], newest=True, limit=_PAGE, after=after)
            found = [item for item in page.items if isinstance(item, Message) and _ITEM in item.metadata][:left]
            yield from found
            left = None if left is None else left - len(found)
            if not (after := page.next):
                return

    def _pop(self) -> TResponseInputItem | None:
        for message in self._latest(1):
            self._memory.forget(self._scope, message.id, may_return=True)
            item: TResponseInputItem = message.metadata[_ITEM]
            return item
        return None

    def _clear(self) -> None:
        if ids := [message.id for message in self._latest(None)]:
            self._memory.forget(self._scope, ids, may_return=True)


def _to_message(item: Any) -> dict[str, Any]:
    """An item as a message: its words, or none for a call, a result or a thought."""
    whole = json.loads(json.dumps(item))
    content, role = (
        whole.get("content"),
        whole.get("role") or ("assistant" if "call" in whole.get("type", "") else "tool"),
    )
    parts = content if isinstance(content, list) else [{"text": content}]
    words = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    text = "\n".join(words) if whole.get("role") else ""
    return {"id": uuid4().hex, "role": role, "content": text, "metadata": {_ITEM: whole}}
