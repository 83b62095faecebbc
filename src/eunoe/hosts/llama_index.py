"""LlamaIndex's memory: the chat stands in the message log, and what bears on the next message goes before it."""

from __future__ import annotations

import logging
from typing import Any, Final

from eunoe.errors import InputError, MissingPackageError
from eunoe.hosts.common import blocking, forget_messages, latest_messages, whole_message
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import check_count
from eunoe.model.scope import Scope, ScopeLike

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory import BaseMemory
except ImportError as error:
    raise MissingPackageError("eunoe.hosts.llama_index needs LlamaIndex: pip install 'eunoe[llama-index]'") from error

_log = logging.getLogger("eunoe")
_MESSAGE: Final = "chat_message"
"""The field of a message's metadata that holds the chat message."""
_RESULTS: Final = (MessageRole.TOOL, MessageRole.FUNCTION)


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
        cls,
        memory: Memory | AsyncMemory | None = None,
        scope: ScopeLike | None = None,
        chat_limit: int = 50,
        tokens: int = 1000,
        **unknown: Any,
    ) -> EunoeMemory:
        """Without `memory` the store of the command line. The scope names user and session."""
        if unknown:
            raise InputError(f"no such option: {', '.join(unknown)}; there are memory, scope, chat_limit and tokens")
        if scope is None:
            raise InputError("scope is missing: name whose conversation it is, such as 'session=s1/user=anna'")
        limits = {"chat_limit": check_count(chat_limit, "chat_limit"), "tokens": check_count(tokens, "tokens", 0)}
        created = cls(scope=Scope.of(scope).text, **limits)
        created._memory = blocking(memory)
        return created

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        """The latest messages; with an input also what memory knows about it, fenced, in front of them.

        They do not begin with the result of a tool: what called it comes too.
        """
        latest: list[ChatMessage] = []
        for message in latest_messages(self._memory, self.scope, _MESSAGE):
            if len(latest) >= self.chat_limit and latest[-1].role not in _RESULTS:
                break
            latest.append(ChatMessage.model_validate(message.metadata[_MESSAGE]))
        chat = latest[::-1]
        if not input or not self.tokens:
            return chat
        context = self._memory.context(self.scope, input, tokens=self.tokens)
        if not context.text:
            _log.info("memory: the context is empty: %s", "; ".join(context.notes + context.faults))
            return chat
        return [ChatMessage(role=MessageRole.USER, content=context.text), *chat]

    def get_all(self) -> list[ChatMessage]:
        messages = latest_messages(self._memory, self.scope, _MESSAGE)
        return [ChatMessage.model_validate(message.metadata[_MESSAGE]) for message in messages][::-1]

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        given = []
        for message in messages:
            whole = message.model_dump(mode="json", exclude_none=True)
            given.append(whole_message(whole, _MESSAGE, message.role.value, message.content or ""))
        self._memory.observe(self.scope, given)

    def set(self, messages: list[ChatMessage]) -> None:
        self.reset()
        self.put_messages(messages)

    def reset(self) -> None:
        forget_messages(self._memory, self.scope, _MESSAGE)
