"""What a retriever gives."""

from __future__ import annotations

from typing import NamedTuple

from eunoe.apps.discussion.retrievers.escaping import CHUNK_BREAK, join_memories


class Retrieval(NamedTuple):
    """Memories for a prompt, escaped; none if there are none, and then a message for people that says why."""

    texts: tuple[str, ...]
    message: str = ""
    """For people, never for a prompt: why there is nothing, or not everything."""
    delimiter: str = CHUNK_BREAK

    @property
    def text(self) -> str:
        """All of them, with the delimiter between them; empty if there are none."""
        return join_memories(self.texts, self.delimiter)

    def joined(self, delimiter: str) -> str:
        """All of them, with another delimiter."""
        return join_memories(self.texts, delimiter or self.delimiter)
