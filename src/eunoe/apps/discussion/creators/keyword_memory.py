"""Keyword memories: what a chunk says, with the words by which it is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eunoe.apps.discussion.atoms import keyword_memory_item
from eunoe.apps.discussion.authors import Author
from eunoe.apps.discussion.creators.answers import SCHEMA, read_keyword_memories
from eunoe.apps.discussion.creators.borrowing import find_borrowed, memory_text
from eunoe.apps.discussion.creators.extractive import make_keyword_memories
from eunoe.apps.discussion.creators.prompts import KEYWORD_MEMORY as PROMPTS
from eunoe.apps.discussion.creators.registry import CreatorCall, creator
from eunoe.apps.discussion.creators.related import RelatedMemories, find_related
from eunoe.apps.discussion.documents.answer_guard import guard_answer
from eunoe.apps.discussion.model import KEYWORD_MEMORY, KeywordMemory
from eunoe.errors import LlmError


@creator(KEYWORD_MEMORY, PROMPTS, SCHEMA)
def make_keyword_memory(call: CreatorCall) -> Sequence[Mapping[str, Any]]:
    """Make one or several memories from a chunk."""
    memories = make_keyword_memories(call.messages) if call.author is None else _write(call, call.author)
    return [keyword_memory_item(memory) for memory in memories]


def _write(call: CreatorCall, author: Author) -> list[KeywordMemory]:
    related = find_related(call)
    answer = read_keyword_memories(author.write({"TextChunk": call.text, "Memory_file": related.text}))
    call.notes.extend(answer.notes)
    taken = [memory for each in answer.memories if (memory := _guarded(call, author, each, related))]
    if not taken:
        raise LlmError(call.notes[-1])
    return [related.settle(each, call.notes) for each in taken]


def _guarded(
    call: CreatorCall, author: Author, memory: KeywordMemory, related: RelatedMemories
) -> KeywordMemory | None:
    """A memory with what it rests on; None, and a note, if its words cannot be taken."""
    try:
        return _with_origin(call, author, memory, related)
    except LlmError as error:
        call.notes.append(str(error))
        return None


def _with_origin(call: CreatorCall, author: Author, memory: KeywordMemory, related: RelatedMemories) -> KeywordMemory:
    """A memory with what it rests on; LlmError if its words cannot be taken."""
    text = memory_text(memory)
    guard_answer(author, text, call.text)
    shown = related.text if author.reads("Memory_file") else ""
    return replace(
        memory,
        source=tuple(message.id for message in call.messages),
        borrowed=find_borrowed(call, text, shown, list(related.memories.values())),
        time=call.messages[-1].time,
        author=author.name,
    )
