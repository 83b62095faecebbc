"""A wiki memory as the facts it is kept as: one, or one for each part of a long content."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from eunoe.apps.wiki.memory_model import UNVERIFIED, MemoryType, WikiMemory
from eunoe.apps.wiki.parts import Part, join_parts, part_ids, split_content
from eunoe.model.atom import Atom, Item, Record

_MAX_PARTS: Final = 10_000
"""More than the longest text has."""


class MemoryPart(NamedTuple):
    """Which part of which memory a fact is."""

    memory_id: str
    number: int = 1
    parts: int = 1
    start: int = 0

    @property
    def ids(self) -> list[str]:
        """The ids of all parts of the memory."""
        return part_ids(self.memory_id, self.parts)


def part_of(fact: Item | Record) -> MemoryPart:
    """Say which part a fact is. One that anybody else wrote, and that does not say so, is a memory of its own."""
    try:
        values = fact.metadata["part"]
        part = MemoryPart(str(values["memory"]), int(values["number"]), int(values["parts"]), int(values["start"]))
    except (KeyError, TypeError, ValueError):
        return MemoryPart(fact.id)
    return part if 0 < part.number <= part.parts <= _MAX_PARTS and part.start >= 0 else MemoryPart(fact.id)


def atom_items(memory: WikiMemory) -> list[dict[str, Any]]:
    """Return what `remember_many` is to be given. Files and pages stand in each part, so that recall can filter."""
    parts = split_content(memory.content)
    shared = {
        "label": memory.memory_type.value,
        "files": memory.file_paths,
        "pages": memory.related_pages,
        "time": memory.created_at,
    }
    return [
        {"text": text, "id": id, "metadata": _metadata(memory, MemoryPart(memory.id, number, len(parts), start))}
        | shared
        for number, (id, (start, text)) in enumerate(zip(part_ids(memory.id, len(parts)), parts, strict=True), 1)
    ]


def _metadata(memory: WikiMemory, part: MemoryPart) -> dict[str, Any]:
    values: dict[str, Any] = {
        "source_agent": memory.source_agent,
        "trust": memory.trust,
        "branch": memory.branch,
        "commit": memory.commit,
        "blobs": dict(memory.blobs),
        "embedding": memory.embedding_metadata,
    }
    if part.parts > 1:
        place = {"memory": part.memory_id, "number": part.number, "parts": part.parts, "start": part.start}
        values["part"] = place
    return {name: value for name, value in values.items() if value}


def read_memory(facts: Sequence[Atom], score: float | None = None) -> WikiMemory:
    """Return the memory that these facts, all its parts, are kept as."""
    first = facts[0]
    metadata = first.metadata
    scope = first.scope
    assert scope is not None  # what was read from a store has one
    content = join_parts(Part(part_of(fact).start, fact.text) for fact in facts)
    return WikiMemory(
        repository_id=scope["repository"],
        memory_type=MemoryType.parse(first.label),
        content=content,
        source_agent=str(metadata.get("source_agent", "")),
        file_paths=list(first.files),
        related_pages=list(first.pages),
        embedding_metadata={**_mapping(metadata, "embedding"), **_sizes(len(facts), len(content))},
        id=part_of(first).memory_id,
        branch=str(metadata.get("branch", "")),
        commit=str(metadata.get("commit", "")),
        blobs=_mapping(metadata, "blobs"),
        trust=str(metadata.get("trust", UNVERIFIED)),
        created_at=first.time or first.recorded,
        updated_at=first.recorded,
        score=score,
    )


def merge_memories(known: WikiMemory, memory: WikiMemory) -> WikiMemory:
    """Return what is known after the same was stored again: the files and pages of both, as they are now."""
    return replace(
        memory,
        created_at=known.created_at,
        source_agent=known.source_agent,
        file_paths=list(dict.fromkeys([*known.file_paths, *memory.file_paths])),
        related_pages=list(dict.fromkeys([*known.related_pages, *memory.related_pages])),
        blobs={**known.blobs, **memory.blobs},
        branch=memory.branch or known.branch,
        commit=memory.commit or known.commit,
    )


def _mapping(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = metadata.get(name)
    return dict(value) if isinstance(value, Mapping) else {}


def _sizes(chunks: int, length: int) -> dict[str, int]:
    return {"total_chunks": chunks, "original_length": length}
