"""What the memories of one kind say about chunks: which were made, from what, and what no longer holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from eunoe.apps.discussion.atoms import NOTHING, is_nothing, own_source
from eunoe.apps.discussion.model import Chunk
from eunoe.memory import Memory
from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope

_PAGE: Final = 1000
_STANDS_FOR: Final = ("supersedes", "condenses")
"""Fields of metadata with the ids of memories in whose place an atom stands."""


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A chunk that was made, and the atoms it became."""

    chunk: Chunk
    atoms: tuple[Atom, ...]

    @property
    def recorded(self) -> datetime:
        return max(_recorded(atom) for atom in self.atoms)

    @property
    def source(self) -> set[str]:
        """The messages that its memories were made from."""
        return {id for atom in self.atoms for id in own_source(atom)}


class Records(NamedTuple):
    """All that is known of the chunks of one kind."""

    made: list[ChunkRecord]
    expired_by: Mapping[str, frozenset[str]]
    """By the id of a memory: the ids of those that stand in its place, and of those that stand in theirs."""
    leftovers: list[str]
    """Ids of atoms that hold although others were made in their place."""


def read_records(memory: Memory, scope: Scope, kind: str) -> Records:
    """Read the atoms of a kind. One that has expired still says that its chunk was made, if another stands for it."""
    now = utc_now()
    by_id = {atom.id: atom for atom in _open_atoms(memory, scope, kind)}
    expired_by: dict[str, frozenset[str]] = {}
    standing: dict[str, Atom] = {}
    superseded: set[str] = set()
    for atom in sorted(by_id.values(), key=_rank, reverse=True):  # what stands for another one comes after it
        successors = [id for id in atom.metadata.get("superseded_by", ()) if _is_older(standing.get(id), atom)]
        _note(expired_by, atom.id, successors)
        superseded.update([atom.id] * bool(successors))
        if is_made(atom, now) or atom.id in expired_by:
            standing[atom.id] = atom
            for id in _stands_for(atom):
                if _is_older(by_id.get(id), atom):
                    _note(expired_by, id, [atom.id])
            superseded.update(id for id in atom.metadata.get("supersedes", ()) if id in expired_by)
    made, outdated = _group(sorted(standing.values(), key=_recorded, reverse=True))
    leftovers = [id for id, atom in standing.items() if holds(atom, now) and (id in outdated or id in superseded)]
    return Records(made, expired_by, leftovers)


def read_chunk(metadata: Mapping[str, Any]) -> Chunk | None:
    """The chunk that an atom or a lease names."""
    return Chunk(**metadata["chunk"]) if metadata.get("chunk") else None


def holds(atom: Atom, now: datetime) -> bool:
    """Whether an atom is in force."""
    return atom.valid_to is None or atom.valid_to > now


def is_made(atom: Atom, now: datetime) -> bool:
    """Whether an atom says that its chunk was made, if only with nothing to remember."""
    return holds(atom, now) or is_nothing(atom)


def revivable(record: ChunkRecord, records: Records) -> list[str]:
    """Ids of what expired because of this chunk's memories alone, and holds again if they are made anew."""
    own = {atom.id for atom in record.atoms}
    return sorted(id for id, successors in records.expired_by.items() if successors <= own)


def _open_atoms(memory: Memory, scope: Scope, kind: str) -> Iterable[Atom]:
    after = ""
    while True:
        page = memory.list(scope, kinds=ATOM_KINDS, labels=[kind, NOTHING], limit=_PAGE, after=after, exact=True)
        found = (item for item in page.items if isinstance(item, Atom))
        yield from (atom for atom in found if atom.label == kind or atom.metadata["chunk"]["kind"] == kind)
        if not (after := page.next):
            return


def _group(atoms: Sequence[Atom]) -> tuple[list[ChunkRecord], set[str]]:
    """The atoms of each chunk that were made last, and the ids of the others. The newest atoms come first."""
    chunks: dict[str, Chunk] = {}
    current: dict[str, list[Atom]] = {}
    outdated = set()
    for atom in atoms:
        chunk = read_chunk(atom.metadata)
        if chunk is None:
            continue
        if chunks.setdefault(chunk.name, chunk) == chunk:
            current.setdefault(chunk.name, []).append(atom)
        else:
            outdated.add(atom.id)
    return [ChunkRecord(chunks[name], tuple(group)) for name, group in current.items()], outdated


def _stands_for(atom: Atom) -> Iterable[str]:
    return (id for name in _STANDS_FOR for id in atom.metadata.get(name, ()))


def _note(expired_by: dict[str, frozenset[str]], id: str, successors: Iterable[str]) -> None:
    """Note what stands in the place of a memory, and what stands in the place of that."""
    known = frozenset(successors).union(*(expired_by.get(each, ()) for each in successors))
    if known:
        expired_by[id] = expired_by.get(id, frozenset()) | known


def _is_older(atom: Atom | None, other: Atom) -> bool:
    """Whether an atom is there and was as it is when the other one was made."""
    return atom is not None and _recorded(atom) < _recorded(other)


def _rank(atom: Atom) -> tuple[float, datetime]:
    return atom.metadata.get("place", 0.0), _recorded(atom)


def _recorded(atom: Atom) -> datetime:
    return atom.recorded or utc_now()
