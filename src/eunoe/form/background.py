"""Forming behind the reply: one thread that works off the conversations that are due."""

from __future__ import annotations

from eunoe.form.kit import Kit
from eunoe.model.scope import Scope


class Background:
    """A queue of conversations to form. The thread starts with the first one."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit

    def add(self, scope: Scope) -> None:
        """Puts a conversation on the list, once."""

    def flush(self, timeout: float | None) -> bool:
        """Waits until nothing is left to do; False if that took too long."""
        return True

    def close(self) -> None:
        """Lets what is under way come to its end; the rest stays due in the store."""
