"""Chunks: texts with where they come from and whatever else the host wants to find with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from eunoe.apps.projects import ProjectMemory, ProjectName
from eunoe.errors import InputError
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope
from eunoe.text.normalize import replace_surrogates

CHUNK: Final = "chunk"
"""The field of a document's metadata that holds a chunk's own. Beside it stand fields that have a meaning here."""
_SOURCE: Final = "source_id"
_KEPT: Final = ("text", "id", "label", "time", "files", "pages", "people", "pinned")
_GRAPH: Final = frozenset({"entities", "triples"})
"""Fields of metadata that the entity graph takes in."""


@dataclass(frozen=True)
class Chunk:
    """A text to index, the id of its source, and metadata that comes back with it.

    >>> Chunk("Tea is hot.", "tea.md", {"page": 2}).described
    {'page': 2, 'source_id': 'tea.md'}
    """

    content: str
    source_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def described(self) -> dict[str, Any]:
        """Its metadata with the id of its source."""
        return {**self.metadata, **({} if self.source_id is None else {_SOURCE: self.source_id})}


def read_chunks(docs: Any) -> list[Chunk]:
    """Check a list of texts and chunks, which may be HippoRAG's own."""
    if isinstance(docs, str | bytes | Mapping) or not isinstance(docs, Iterable):
        raise InputError("docs must be a list of texts or chunks")
    return [_read_chunk(place, doc) for place, doc in enumerate(docs)]


def _read_chunk(place: int, doc: Any) -> Chunk:
    content = doc if isinstance(doc, str) else getattr(doc, "content", None)
    source, metadata = getattr(doc, _SOURCE, None), getattr(doc, "metadata", None) or {}
    if not isinstance(content, str) or not isinstance(metadata, Mapping):
        raise InputError(f"docs must be a list of texts or chunks: docs[{place}] is a {type(doc).__name__}")
    return Chunk(replace_surrogates(content), None if source is None else str(source), dict(metadata))


def keep_described(memory: ProjectMemory, project: ProjectName, described: Mapping[str, Mapping[str, Any]]) -> None:
    """Give documents that were known already, by id, the metadata of the chunks that name them now."""
    scope = Scope(project=project)
    changed = [
        {**{name: getattr(atom, name) for name in _KEPT}, "metadata": metadata}
        for atom in memory.memory.get_many(scope, list(described))
        if isinstance(atom, Atom)
        and (metadata := {**atom.metadata, CHUNK: dict(described[atom.id])}) != dict(atom.metadata)
    ]
    if changed:
        memory.memory.remember_many(scope, changed, replace=True)
    if any(_GRAPH & each["metadata"].keys() for each in changed):
        memory.memory.graph.extract(scope, ask=False)  # a new version of a text is not in the graph by itself


def described_by(memory: ProjectMemory, project: ProjectName, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The metadata of the chunks that documents were indexed as, by id."""
    items = memory.memory.get_many(Scope(project=project), list(ids)) if ids else []
    return {item.id: dict(item.metadata.get(CHUNK) or {}) for item in items}
