"""What agents that write a wiki remember about a repository."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from eunoe.errors import InputError
from eunoe.model.arguments import check_choice
from eunoe.model.scope import Scope

RepositoryId = str | UUID

UNVERIFIED: Final = "unverified"
"""How far a memory can be trusted: an agent wrote it, from the text of a repository, and nobody looked at it since."""


class MemoryType(StrEnum):
    """What a memory is about."""

    STRUCTURAL_DECISION = "structural_decision"
    PATTERN_FOUND = "pattern_found"
    CROSS_REFERENCE = "cross_reference"

    @classmethod
    def parse(cls, value: object) -> "MemoryType":
        """Take a member or its text.

        >>> MemoryType.parse("pattern_found")
        <MemoryType.PATTERN_FOUND: 'pattern_found'>
        """
        return value if isinstance(value, cls) else cls(check_choice(value, "memory_type", MEMORY_TYPES))


MEMORY_TYPES: Final = tuple(each.value for each in MemoryType)


def parse_repository_id(value: object) -> str:
    """Return one spelling of an id, whether it comes as a UUID or as text. Raise InputError if there is none.

    >>> parse_repository_id("6F9619FF-8B86-D011-B42D-00C04FC964FF")
    '6f9619ff-8b86-d011-b42d-00c04fc964ff'
    """
    if isinstance(value, UUID):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise InputError(f"repository_id must be a UUID or a text, not {type(value).__name__}")
    text = (value or "").strip()
    if not text:
        raise InputError("repository_id is missing: say which repository is meant, by a UUID or a text")
    if not text.isprintable():
        raise InputError(f"repository_id {text!r} holds line breaks or other signs that cannot be printed")
    try:
        return str(UUID(text))
    except ValueError:
        return text


def repository_scope(repository_id: object) -> Scope:
    """Return the scope that holds the memories of a repository."""
    return Scope(repository=parse_repository_id(repository_id))


@dataclass(kw_only=True)
class WikiMemory:
    """One decision, pattern or cross-reference, with where it came from.

    Without an `id` it gets one that follows from its type and its words: what two agents store at once is one memory.

    >>> WikiMemory(repository_id="r1", content="Tests mirror modules.", memory_type=MemoryType.PATTERN_FOUND).id
    'wiki-392a74917a7ceb8a7d04788784d9d71e'
    """

    repository_id: RepositoryId
    memory_type: MemoryType
    content: str
    source_agent: str = ""
    file_paths: list[str] = field(default_factory=list)
    """Relative to the root of the repository."""
    related_pages: list[str] = field(default_factory=list)
    embedding_metadata: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    branch: str = ""
    commit: str = ""
    blobs: Mapping[str, str] = field(default_factory=dict)
    """The git blob hash of each file, as it was when the memory was stored."""
    trust: str = UNVERIFIED
    created_at: datetime | None = None
    updated_at: datetime | None = None
    score: float | None = None
    """How well it fits what was asked, from 0 to 1; None if nothing was."""
    stale: bool | None = None
    """Whether one of its files has changed since; None if that is not known."""
    changed_files: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values: the type and times as texts, without the hashes."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "blobs"}
        times = {name: time.isoformat() for name in ("created_at", "updated_at") if (time := values[name])}
        return {**values, **times, "memory_type": self.memory_type.value}

    def __post_init__(self) -> None:
        self.repository_id = parse_repository_id(self.repository_id)
        self.memory_type = MemoryType.parse(self.memory_type)
        if not self.id:
            words = f"{self.memory_type.value}\n{self.content}".encode(errors="replace")
            self.id = f"wiki-{blake2b(words, digest_size=16).hexdigest()}"
