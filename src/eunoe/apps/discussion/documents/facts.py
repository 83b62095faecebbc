"""Facts for the state document: what the memories of a discussion say now, and what they said before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from eunoe.apps.discussion.atoms import (
    chunk_memories,
    is_in_force,
    keyword_memories,
    open_atoms,
    read_chunk_memory,
    read_keyword_memory,
)
from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, ChunkMemory, KeywordMemory, MemoryKind
from eunoe.errors import NotFoundError
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope


@dataclass(frozen=True, slots=True)
class Fact:
    """What one memory says."""

    id: str
    """Of the memory."""
    kind: MemoryKind
    text: str
    source: tuple[str, ...] = ()
    place: float = 0.0
    """Where it stands in the chat among those of its kind."""
    edition: int | None = None
    """That of its chunk; None if it has none."""

    @property
    def digest(self) -> str:
        return text_digest(self.text)


def text_digest(text: str) -> str:
    """SHA-256 of a text."""
    return sha256(text.encode()).hexdigest()


def current_facts(memory: Memory, scope: Scope) -> list[Fact]:
    """What is true now, oldest first, by memories of both kinds."""
    keyword = [_fact(KEYWORD_MEMORY, each, _keyword_text(each)) for each in keyword_memories(memory, scope)]
    chunk = [_fact(CHUNK_MEMORY, each, each.text) for each in _single_memories(memory, scope)]
    return [*chunk, *keyword]


def _fact(kind: MemoryKind, memory: ChunkMemory | KeywordMemory, text: str) -> Fact:
    source, edition = (*memory.source, *memory.borrowed), memory.chunk.edition if memory.chunk else None
    return Fact(memory.id, kind, text, source, memory.place, edition)


def of_one_kind(facts: Sequence[Fact]) -> list[Fact]:
    """The keyword memories; the chunk memories where there are none. Both tell of the same messages."""
    return [fact for fact in facts if fact.kind == KEYWORD_MEMORY] or list(facts)


def past_text(memory: Memory, scope: Scope, id: str, digest: str) -> str:
    """What a memory said when it had this digest; empty if that is forgotten."""
    try:
        versions = memory.history(scope, id, exact=True)
    except NotFoundError:
        return ""
    return next((text for text in map(_text, versions) if text_digest(text) == digest), "")


def _single_memories(memory: Memory, scope: Scope) -> list[ChunkMemory]:
    """Chunk memories, with its members in place of each condensed one."""
    now, members = utc_now(), {id for each in chunk_memories(memory, scope) for id in each.condenses}
    atoms = open_atoms(memory, scope, CHUNK_MEMORY, ("observation",))
    found = [read_chunk_memory(atom) for atom in atoms if atom.id in members or is_in_force(atom, now)]
    return sorted(found, key=lambda each: each.place)


def _text(atom: Atom) -> str:
    return _keyword_text(read_keyword_memory(atom)) if atom.label == KEYWORD_MEMORY else atom.text


def _keyword_text(memory: KeywordMemory) -> str:
    title = memory.title.rstrip("….").casefold()  # a title may be the beginning of the summary, cut
    is_told = title in memory.summary.casefold()
    return memory.summary if is_told else f"{memory.title}: {memory.summary}"
