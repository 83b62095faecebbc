"""The memories of a discussion that are known already, in force or not, as an import compares them with a file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, TypeVar

from eunoe.discussion.atoms import read_chunk_memory, read_keyword_memory
from eunoe.discussion.files.keyword_rows import row_content, row_number, write_row
from eunoe.discussion.files.plan import Known
from eunoe.discussion.files.record import is_imported
from eunoe.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, ChunkMemory, KeywordMemory
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.scope import Scope
from eunoe.model.time import utc_now

_PAGE: Final = 1000
M = TypeVar("M", ChunkMemory, KeywordMemory)


def known_chunk_memories(memory: Memory, scope: Scope) -> list[Known[ChunkMemory]]:
    """All chunk memories, in the order of the discussion."""
    atoms = list(all_atoms(memory, scope, CHUNK_MEMORY))
    return _known(
        atoms, read_chunk_memory, lambda each: ((each.text, each.hash), each.hash), lambda each: each.condenses
    )


def known_keyword_memories(memory: Memory, scope: Scope) -> list[Known[KeywordMemory]]:
    """All keyword memories, in the order of the discussion."""
    atoms = list(all_atoms(memory, scope, KEYWORD_MEMORY))

    def keys(each: KeywordMemory) -> tuple[Hashable, Hashable]:
        return row_content(write_row(each)), row_number(each)

    return _known(atoms, read_keyword_memory, keys, lambda each: each.supersedes)


def all_atoms(memory: Memory, scope: Scope, label: str, retired: bool = False) -> Iterator[Atom]:
    """All atoms with a label, also those that have expired; with `retired` former versions too."""
    after = ""
    while True:
        page = memory.list(scope, kinds=ATOM_KINDS, labels=[label], limit=_PAGE, after=after, retired=retired)
        yield from (item for item in page.items if isinstance(item, Atom))
        if not (after := page.next):
            return


def _known(
    atoms: Iterable[Atom],
    read: Callable[[Atom], M],
    keys: Callable[[M], tuple[Hashable, Hashable]],
    covers: Callable[[M], tuple[str, ...]],
) -> list[Known[M]]:
    now = utc_now()
    pairs = sorted(((read(atom), atom) for atom in atoms), key=lambda pair: pair[0].place)
    ended = {atom.id for _, atom in pairs if atom.valid_to is not None and atom.valid_to <= now}
    covered = {id for each, _ in pairs for id in covers(each)}
    return [
        Known(
            each,
            *keys(each),
            id=each.id,
            place=each.place,
            is_imported=is_imported(each.id),
            is_in_force=each.id not in ended,
            is_covered=each.id in covered,
        )
        for each, _ in pairs
    ]
