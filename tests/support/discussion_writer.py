"""Writes memories into discussions, as creators leave them."""

from __future__ import annotations

from typing import Any

from eunoe.apps.discussion.model import DEFAULT_USER, ChunkMemory, KeywordMemory, discussion_scope, memory_item
from eunoe.memory import Memory


class DiscussionWriter:
    """Writes memories into discussions."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._count = 0

    def keyword(
        self, summary: str, *, discussion: str = "trip", user: str = DEFAULT_USER, **fields: Any
    ) -> KeywordMemory:
        self._count += 1
        wanted = {"title": "", "id": f"k{self._count}", "place": float(self._count)} | fields
        memory = KeywordMemory(summary=summary, **wanted)
        self.memory.remember_many(discussion_scope(discussion, user), [memory_item(memory)], replace=True)
        return memory

    def chunks(self, *texts: str, discussion: str = "trip", user: str = DEFAULT_USER) -> None:
        for text in texts:
            self._count += 1
            memory = ChunkMemory(text=text, id=f"c{self._count}", place=float(self._count), hash=f"hash of {text}")
            self.memory.remember_many(discussion_scope(discussion, user), [memory_item(memory)])

    def summary(self, text: str, *, discussion: str = "trip", user: str = DEFAULT_USER) -> None:
        self.memory.summaries.write(discussion_scope(discussion, user), text, author="test")
