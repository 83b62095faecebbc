"""The settings of a discussion: when memories are made, from how much, and who puts them in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from eunoe.discussion.model import CHUNK_MEMORY, MemoryKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorSettings:
    """Who puts something in words: a workflow if one is named, else a language model, else the words of the chat."""

    workflow: str = ""
    system_prompt: str = ""
    """Empty: the default of what is made."""
    prompt: str = ""
    """Empty: the default of what is made. It may hold names in brackets, such as `[TextChunk]`."""
    endpoint: str = ""
    """The name of a language model in the map of models; empty: the memory's own."""
    preset: str = ""
    max_tokens: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSettings:
    """How large chunks are, and who makes memories from them."""

    tokens: int = 1000
    """A chunk is due at so many estimated tokens,"""
    messages: int = 5
    """or at so many messages."""
    author: AuthorSettings = AuthorSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySettings:
    """The rolling summary."""

    is_on: bool = True
    least_memories: int = 3
    """So many new chunk memories make it due."""
    most_memories: int = 3
    """So many are folded in at a time."""
    author: AuthorSettings = AuthorSettings(max_tokens=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class CondensationSettings:
    """Old chunk memories made into one."""

    is_on: bool = False
    memories: int = 0
    """So many become one."""
    buffer: int = 0
    """So many of the latest are left alone."""
    lease_seconds: int = 600
    """After so many seconds without a sign of life another process may take over."""
    author: AuthorSettings = AuthorSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDocumentSettings:
    """The document that holds the current truth."""

    is_on: bool = False
    least_share: float = 0.5
    """A new version that is shorter than this share of the old one is refused, once the old one is long enough."""
    author: AuthorSettings = AuthorSettings(max_tokens=2000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionSettings:
    """All settings of a discussion. `read_settings` reads them from a file."""

    memory_kinds: tuple[MemoryKind, ...] = (CHUNK_MEMORY,)
    """What a chunk becomes."""
    lookback: int = 3
    """So many messages at the end are left out, since they may still change."""
    chunk_memory: ChunkSettings = ChunkSettings()
    keyword_memory: ChunkSettings = ChunkSettings(author=AuthorSettings(max_tokens=1024))
    summary: SummarySettings = SummarySettings()
    condensation: CondensationSettings = CondensationSettings()
    state_document: StateDocumentSettings = StateDocumentSettings()
    token_factor: float = 1.0
    """What estimated tokens are multiplied with."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What a settings file asked for that is not supported."""


DEFAULT_SETTINGS: Final = DiscussionSettings()
