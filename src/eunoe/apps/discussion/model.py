"""The nouns of a discussion: a message in its place, the chunk a memory was made from, and the memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

MemoryKind = str
"""What a chunk can become: the label of its atoms. Other packages may add kinds of their own."""
CHUNK_MEMORY: Final = "chunk_memory"
KEYWORD_MEMORY: Final = "keyword_memory"
STATE_DOCUMENT: Final = "state_document"
"""The label of the state document's atom, and the beginning of its id."""


@dataclass(frozen=True, slots=True)
class LogMessage:
    """One message of a discussion as it stands now."""

    id: str
    role: str
    text: str
    """Its words; empty for an image or a tool call without text."""
    speaker: str = ""
    time: datetime | None = None
    """When it was said, else when it was recorded."""
    hash: str = ""
    """SHA-256 of its content as other programs compute it: of the words, or of words and images if it has no words."""
    is_retracted: bool = False
    """Whether it was edited, deleted or regenerated, so that it is no longer part of the chat."""

    @property
    def name(self) -> str:
        """Who spoke."""
        return self.speaker or self.role


@dataclass(frozen=True, slots=True)
class Chunk:
    """Neighbouring messages that become memories together. Its bounds never move."""

    kind: MemoryKind
    place: float
    """Where it stands among the chunks of its kind; they are sorted by it."""
    first: str
    """The id of its first message."""
    last: str
    """The id of its last message."""
    digest: str = ""
    """A fingerprint of who said what in it. If it is another one than that of a memory, the memory is stale."""
    edition: int = 0
    """How many rebuilds of the discussion came before it."""

    @property
    def name(self) -> str:
        """What its lease is called, and how the ids of its memories begin: each rebuild has its own."""
        return f"{self.kind}:{self.first}" + (f"~{self.edition}" if self.edition else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkMemory:
    """A text block that sums up a chunk, or several that were condensed."""

    text: str
    hash: str = ""
    """SHA-256 of the content of the message that it ends on."""
    id: str = ""
    chunk: Chunk | None = None
    """None if it was imported: then the messages it was made from are not known."""
    source: tuple[str, ...] = ()
    """Ids of the messages it was made from."""
    borrowed: tuple[str, ...] = ()
    """Ids of other messages and memories whose words its author took over: it rests on them too."""
    condenses: tuple[str, ...] = ()
    """Ids of the chunk memories in whose place it stands."""
    place: float = 0.0
    recorded: datetime | None = None
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordMemory:
    """A memory with the words by which it is found."""

    title: str
    summary: str
    entities: tuple[str, ...] = ()
    key_phrases: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    sentiment: str = ""
    id: str = ""
    chunk: Chunk | None = None
    source: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    """Ids of other messages and memories whose words its author took over."""
    supersedes: tuple[str, ...] = ()
    """Ids of keyword memories of earlier chunks that it contradicts."""
    superseded_by: tuple[str, ...] = ()
    """Ids of keyword memories of later chunks that contradict it, and were there when it was made."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other fields that came with it, kept for exports."""
    time: datetime | None = None
    """When what it tells of was said; for an imported one, when it was added there."""
    place: float = 0.0
    recorded: datetime | None = None
    author: str = ""

    @property
    def moment(self) -> datetime | None:
        """When what it tells of was said, else when it was recorded."""
        return self.time or self.recorded
