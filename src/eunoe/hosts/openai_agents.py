"""A session of the OpenAI Agents SDK: its items stand in the message log, and memories are formed from them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Final

from eunoe.errors import InputError, MissingPackageError
from eunoe.hosts.chats.formats import words_of
from eunoe.hosts.common import blocking, forget_message, forget_messages, latest_messages, whole_message
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.scope import Scope, ScopeLike

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import resolve_session_limit
except ImportError as error:
    raise MissingPackageError("eunoe.hosts.openai_agents needs the SDK: pip install 'eunoe[openai-agents]'") from error

_ITEM: Final = "item"
"""The field of a message's metadata that holds the item."""


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
        owner = Scope.of(scope)
        if "session" in owner:
            raise InputError(f"{owner} names a session already: leave it out, session_id is added to the scope")
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory = blocking(memory)
        self._scope = owner.extended({"session": session_id})

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest items, in the order in which they were added."""
        count = resolve_session_limit(limit, self.session_settings)

        def read() -> list[TResponseInputItem]:
            latest = latest_messages(self._memory, self._scope, _ITEM)
            return [message.metadata[_ITEM] for message in islice(latest, count and max(count, 0))][::-1]

        return await asyncio.to_thread(read)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        messages = []
        for item in items:
            if not isinstance(item, Mapping):
                raise InputError(f"an item is a dict with a role or a type, not {type(item).__name__}")
            # A call, a result or reasoning has no role, and no words.
            role = item.get("role") or ("tool" if str(item.get("type")).endswith("output") else "assistant")
            words = words_of(item.get("content")) if item.get("role") else ""
            messages.append(whole_message(item, _ITEM, str(role), words))
        if messages:
            await asyncio.to_thread(self._memory.observe, self._scope, messages)

    async def pop_item(self) -> TResponseInputItem | None:
        """Forget the latest item, with what was learned from it, and return it."""
        latest = latest_messages(self._memory, self._scope, _ITEM)
        mine = (each.metadata[_ITEM] for each in latest if forget_message(self._memory, self._scope, each.id))
        return await asyncio.to_thread(next, mine, None)

    async def clear_session(self) -> None:
        await asyncio.to_thread(forget_messages, self._memory, self._scope, _ITEM)
