"""Chunk memories: one block of text that sums up a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from eunoe.apps.discussion.atoms import chunk_memories, chunk_memory_item
from eunoe.apps.discussion.authors import Author
from eunoe.apps.discussion.creators.borrowing import find_borrowed
from eunoe.apps.discussion.creators.extractive import write_digest
from eunoe.apps.discussion.creators.prompts import CHUNK_MEMORY as PROMPTS
from eunoe.apps.discussion.creators.registry import CreatorCall, creator
from eunoe.apps.discussion.documents.answer_guard import guard_answer
from eunoe.apps.discussion.model import CHUNK_MEMORY, ChunkMemory
from eunoe.model.atom import EXTRACTIVE
from eunoe.text.normalize import neutralize

SEPARATOR: Final = "\n--------------\n"
"""Between memories in a workflow's inputs."""
_RECENT: Final = 3


@creator(CHUNK_MEMORY, PROMPTS)
def make_chunk_memory(call: CreatorCall) -> Sequence[Mapping[str, Any]]:
    """Sum a chunk up."""
    memory = _write(call, call.author) if call.author else ChunkMemory(text=write_digest(call.messages))
    made = replace(
        memory,
        hash=call.messages[-1].hash,
        source=tuple(message.id for message in call.messages),
        author=call.author.name if call.author else EXTRACTIVE,
    )
    return [chunk_memory_item(made)]


def _write(call: CreatorCall, author: Author) -> ChunkMemory:
    own, known = {message.id for message in call.messages}, chunk_memories(call.memory, call.scope)
    others = [each for each in known if each.id != call.chunk.name and own.isdisjoint(each.source)]
    inputs = _inputs(call, others)
    text = author.write(inputs)
    guard_answer(author, text, call.text)
    shown = "\n".join(value for name, value in inputs.items() if name != "TextChunk" and author.reads(name))
    return ChunkMemory(text=text, borrowed=find_borrowed(call, text, shown, others))


def _inputs(call: CreatorCall, others: Sequence[ChunkMemory]) -> dict[str, str]:
    """The chunk, the last memories before it, all other memories, and the rolling summary as it was before."""
    from eunoe.apps.discussion.documents.summary import summary_of

    before = [each for each in others if each.place < call.chunk.place]
    return {
        "TextChunk": call.text,
        "Memory_file": _join(before[-_RECENT:]),
        "Full_Memory_file": _join(others),
        "Chat_Summary": neutralize(summary_of(call.memory, call.scope, before)),
    }


def _join(memories: Sequence[ChunkMemory]) -> str:
    return SEPARATOR.join(neutralize(memory.text) for memory in memories)
