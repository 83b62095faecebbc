"""What makes memories from chunks: a function for each kind of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from eunoe.apps.discussion.authors import Author, Prompts
from eunoe.apps.discussion.chunks.content import chunk_text
from eunoe.apps.discussion.model import Chunk, LogMessage
from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.model.scope import Scope


@dataclass(frozen=True, slots=True)
class CreatorCall:
    """One chunk that is to become memories."""

    memory: Memory
    scope: Scope
    chunk: Chunk
    messages: Sequence[LogMessage]
    author: Author | None = None
    """Who puts them in words; None: they are made of the words of the chat."""
    notes: list[str] = field(default_factory=list)
    """What a person should know about what was made; it goes into the report. No words of the chat."""

    @property
    def text(self) -> str:
        """The words of the chunk, with speakers and times."""
        return chunk_text(self.messages)


Make = Callable[[CreatorCall], Sequence[Mapping[str, Any]]]
"""Makes memories from a chunk, each a dict of what `Memory.remember` takes. Raises LlmError if it cannot."""


@dataclass(frozen=True, slots=True)
class Creator:
    """A kind of memory and what makes it."""

    kind: str
    make: Make
    prompts: Prompts | None = None
    """What a language model is asked by default; None: none is asked."""
    schema: Mapping[str, Any] | None = None


_CREATORS: Final[dict[str, Creator]] = {}


def creator(
    kind: str, prompts: Prompts | None = None, schema: Mapping[str, Any] | None = None
) -> Callable[[Make], Make]:
    """Register a function that makes memories of a kind from a chunk. Settings name the kind in `memory_kinds`.

    >>> @creator("headcount")
    ... def make_headcount(call):
    ...     return [{"text": f"{len({message.name for message in call.messages})} people spoke."}]
    >>> find_creator("headcount").make is make_headcount
    True
    """

    def register(make: Make) -> Make:
        _CREATORS[kind] = Creator(kind, make, prompts, schema)
        return make

    return register


def find_creator(kind: str) -> Creator:
    """The creator of a kind. Raises InputError if there is none."""
    if kind not in _CREATORS:
        raise InputError(f"there is no creator for {kind!r}: choose from {', '.join(creator_kinds())}")
    return _CREATORS[kind]


def creator_kinds() -> list[str]:
    """All kinds of memories that can be made."""
    return sorted(_CREATORS)
