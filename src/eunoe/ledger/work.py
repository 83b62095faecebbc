"""Which part of a conversation is still to be formed, who works on it, and how far the cursor is."""

from __future__ import annotations

from collections.abc import Sequence

from eunoe.model.message import Message
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.store.contract import Store, StreamRow


def note(
    store: Store, scope: Scope, stream: StreamRow, messages: Sequence[Message], receipts: Sequence[Receipt], now: int
) -> bool:
    """Counts new messages in the step that stores them; True if the conversation is due."""
    return False


def is_hidden(store: Store, scope: Scope) -> bool:
    """Whether the session is incognito."""
    return False


def hide(store: Store, scope: Scope, on: bool) -> None:
    raise NotImplementedError
