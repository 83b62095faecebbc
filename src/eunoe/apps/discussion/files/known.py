"""The memories of a discussion that are known already, in force or not, as an import compares them with a file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final, TypeVar

from eunoe.apps.discussion.atoms import is_in_force, read_chunk_memory, read_keyword_memory
from eunoe.apps.discussion.files.keyword_rows import row_content, row_number, write_row
from eunoe.apps.discussion.files.plan import Known
from eunoe.apps.discussion.files.record import IMPORT, is_imported, read_record
from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, ChunkMemory, KeywordMemory
from eunoe.memory import Memory
from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.atom import AUTHOR, Atom
from eunoe.model.scope import Scope

_PAGE: Final = 1000
M = TypeVar("M", ChunkMemory, KeywordMemory)


def known_chunk_memories(memory: Memory, scope: Scope) -> list[Known[ChunkMemory]]:
    """All chunk memories, in the order of the discussion."""
    atoms = _atoms(memory, scope, CHUNK_MEMORY)
    return _known(
        atoms,
        read_chunk_memory,
        lambda each: ((each.text, each.hash), each.hash),
        lambda each: each.condenses,
        read_record(memory, scope).replaced,
    )


def known_keyword_memories(memory: Memory, scope: Scope) -> list[Known[KeywordMemory]]:
    """All keyword memories, in the order of the discussion."""
    atoms = _atoms(memory, scope, KEYWORD_MEMORY)

    def keys(each: KeywordMemory) -> tuple[Hashable, Hashable]:
        return row_content(write_row(each)), row_number(each)

    return _known(atoms, read_keyword_memory, keys, lambda each: each.supersedes)


def all_atoms(memory: Memory, scope: Scope, label: str, retired: bool = False) -> Iterator[Atom]:
    """All atoms with a label, also those that have expired; with `retired` former versions too."""
    after = ""
    while True:
        how: Any = {"kinds": ATOM_KINDS, "labels": [label], "retired": retired, "exact": True}
        page = memory.list(scope, limit=_PAGE, after=after, **how)
        yield from (item for item in page.items if isinstance(item, Atom))
        if not (after := page.next):
            return


def _atoms(memory: Memory, scope: Scope, label: str) -> list[Atom]:
    """All atoms, with former versions of what was made here: where a file still has one, that is no change of it."""
    atoms = all_atoms(memory, scope, label, retired=True)
    return [atom for atom in atoms if atom.retired is None or atom.metadata.get(AUTHOR) != IMPORT]


def _known(
    atoms: Iterable[Atom],
    read: Callable[[Atom], M],
    keys: Callable[[M], tuple[Hashable, Hashable]],
    covers: Callable[[M], tuple[str, ...]],
    replaced: Iterable[str] = (),
) -> list[Known[M]]:
    now = utc_now()
    pairs = sorted(((read(atom), atom) for atom in atoms), key=lambda pair: pair[0].place)
    covered = {id for each, atom in pairs if not atom.retired for id in covers(each)} | set(replaced)
    return [_entry(each, atom, keys(each), now, atom.id in covered) for each, atom in pairs]


def _entry(memory: M, atom: Atom, keys: tuple[Hashable, Hashable], now: datetime, is_covered: bool) -> Known[M]:
    content, anchor = keys
    return Known(
        memory,
        content,
        "" if atom.retired else anchor,
        id=atom.id,
        place=memory.place,
        is_imported=is_imported(atom.id),
        is_in_force=atom.retired is None and is_in_force(atom, now),
        is_covered=is_covered,
    )
