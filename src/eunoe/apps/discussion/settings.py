"""The settings of a discussion: when memories are made, from how much, and who puts them in words."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final

from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, MemoryKind
from eunoe.errors import InputError
from eunoe.model.arguments import show


class _Settings:
    """Values that have the types of their defaults: any other is refused by its name."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            _check_type(f"{type(self).__name__}.{each.name}", getattr(self, each.name), each.default)


def _check_type(name: str, value: Any, default: Any) -> None:
    kind = type(default)
    is_right = isinstance(value, (int, float) if kind is float else kind) and isinstance(value, bool) == (kind is bool)
    if not is_right or (kind is tuple and not all(isinstance(each, str) for each in value)):
        raise InputError(f"{name} is {show(value)}: it must be {_TYPE_NAMES.get(kind, kind.__name__)}")


_TYPE_NAMES: Final = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a tuple of texts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorSettings(_Settings):
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
class ChunkSettings(_Settings):
    """How large chunks are, and who makes memories from them."""

    tokens: int = 1000
    """A chunk is due at so many estimated tokens,"""
    messages: int = 5
    """or at so many messages."""
    author: AuthorSettings = AuthorSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySettings(_Settings):
    """The rolling summary."""

    is_on: bool = True
    least_memories: int = 3
    """So many new chunk memories make it due."""
    most_memories: int = 3
    """So many are folded in at a time."""
    author: AuthorSettings = AuthorSettings(max_tokens=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class CondensationSettings(_Settings):
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
class StateDocumentSettings(_Settings):
    """The document that holds the current truth."""

    is_on: bool = False
    least_share: float = 0.5
    """A new version that is shorter than this share of the old one is refused, once the old one is long enough."""
    author: AuthorSettings = AuthorSettings(max_tokens=2000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionSettings(_Settings):
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

    @property
    def authors(self) -> list[AuthorSettings]:
        """Those of all that is switched on."""
        chunks = {CHUNK_MEMORY: self.chunk_memory, KEYWORD_MEMORY: self.keyword_memory}
        documents = [each for each in (self.summary, self.condensation, self.state_document) if each.is_on]
        return [chunks[kind].author for kind in self.memory_kinds if kind in chunks] + [
            each.author for each in documents
        ]


DEFAULT_SETTINGS: Final = DiscussionSettings()
