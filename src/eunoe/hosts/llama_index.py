"""LlamaIndex's memory: the chat stands in the message log, and what bears on the next message goes before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

from eunoe.errors import InputError, MissingPackageError
from eunoe.hosts.default_store import default_memory
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.message import Message
from eunoe.model.scope import Scope, ScopeLike

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory import BaseMemory
except ImportError as error:
    raise MissingPackageError("eunoe.hosts.llama_index needs LlamaIndex: pip install 'eunoe[llama-index]'") from error

_MESSAGE: Final = "chat_message"
"""The field of a message's metadata that holds the chat message, whole."""
_PAGE: Final = 1000


class EunoeMemory(BaseMemory):
    """The memory of one conversation; make it with `from_defaults`."""

    scope: str
    chat_limit: int = Field(default=50, description="How many of the latest messages `get` returns.", gt=0)
    tokens: int = Field(default=1000, description="The most that is recalled for a message; 0 recalls nothing.", ge=0)
    _memory: Memory = PrivateAttr()

    @classmethod
    def class_name(cls) -> str:
        return "EunoeMemory"

    @classmethod
    def from_defaults(
        cls, memory: Memory | AsyncMemory | None = None, scope: ScopeLike | None = None, **options: Any
    ) -> EunoeMemory:
        """Without `memory` the store of the command line. The scope names user and session."""
        if scope is None:
            raise InputError("scope is missing: name whose conversation it is, such as 'session=s1/user=anna'")
        created = cls(scope=Scope.of(scope).text, **options)
        given = memory or default_memory()
        created._memory = given.blocking if isinstance(given, AsyncMemory) else given
        return created

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        """The latest messages; with an input also what memory knows about it, fenced, in front of them."""
        chat = list(self._latest(self.chat_limit))[::-1]
        text = self._memory.context(self.scope, input, tokens=self.tokens).text if input and self.tokens else ""
        return [ChatMessage(role=MessageRole.USER, content=text), *chat] if text else chat

    def get_all(self) -> list[ChatMessage]:
        return list(self._latest(None))[::-1]

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        self._memory.observe(self.scope, list(map(_to_message, messages)))

    def set(self, messages: list[ChatMessage]) -> None:
        """Forget the chat and put another one in its place."""
        self.reset()
        self.put_messages(messages)

    def reset(self) -> None:
        """Forget the chat, with what was learned from it."""
        if ids := [message.id for message in self._messages()]:
            self._memory.forget(self.scope, ids, may_return=True)

    def _latest(self, count: int | None) -> Iterator[ChatMessage]:
        for number, message in enumerate(self._messages()):
            if number == count:
                return
            yield ChatMessage.model_validate(message.metadata[_MESSAGE])

    def _messages(self) -> Iterator[Message]:
        """Messages that were put here, the latest first."""
        after = ""
        while True:
            page = self._memory.list(self.scope, kinds=["message"], newest=True, limit=_PAGE, after=after)
            yield from (item for item in page.items if isinstance(item, Message) and _MESSAGE in item.metadata)
            if not (after := page.next):
                return


def _to_message(message: ChatMessage) -> dict[str, Any]:
    whole = message.model_dump(mode="json", exclude_none=True)
    return {
        "id": uuid4().hex,
        "role": message.role.value,
        "content": message.content or "",
        "metadata": {_MESSAGE: whole},
    }
