"""How memories of a discussion are kept as atoms.

A chunk memory is an observation: it waits until the rolling summary, which is the summary of the stream, absorbs it. A
condensed one is a fact, since what it holds was absorbed before. A keyword memory is a fact, and its text is its
summary. What is no longer in force has expired (`valid_to`), or was replaced under its id; the history keeps both.
A chunk with nothing to remember has an atom too, which says so and never holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, Chunk, ChunkMemory, KeywordMemory
from eunoe.memory import Memory
from eunoe.model.arguments import AtomKind, utc_now
from eunoe.model.atom import AUTHOR, Atom
from eunoe.model.scope import Scope

NOTHING: Final = "nothing_to_remember"
"""The label of an atom that stands for a chunk of which there is no memory."""
NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When an atom ends to hold that is kept and that no recall may bring back."""
SETTINGS: Final = "settings"
"""The field of metadata with the digest of the settings by which a memory was made."""
_PAGE: Final = 1000
_BORROWED: Final = "borrowed"
_FIELDS: Final = ("title", "entities", "key_phrases", "topics", "sentiment")
_LINKS: Final = ("supersedes", "superseded_by", _BORROWED)


def chunk_memory_item(memory: ChunkMemory) -> dict[str, Any]:
    """What `Memory.remember_many` takes."""
    fields = {"hash": memory.hash, "condenses": list(memory.condenses), "place": memory.place, AUTHOR: memory.author}
    fields[_BORROWED] = list(memory.borrowed)
    return {
        "text": memory.text,
        "id": memory.id,
        "kind": "fact" if memory.condenses else "observation",
        "label": CHUNK_MEMORY,
        "source": [*memory.source, *memory.borrowed],
        "metadata": _without_blanks({**fields, "chunk": memory.chunk and asdict(memory.chunk)}),
    }


def keyword_memory_item(memory: KeywordMemory) -> dict[str, Any]:
    """What `Memory.remember_many` takes."""
    fields = {name: _as_json(getattr(memory, name)) for name in _FIELDS}
    links = {name: list(getattr(memory, name)) for name in _LINKS}
    others = {"extra": dict(memory.extra), "place": memory.place, AUTHOR: memory.author}
    chunk = memory.chunk and asdict(memory.chunk)
    return {
        "text": memory.summary,
        "id": memory.id,
        "label": KEYWORD_MEMORY,
        "source": [*memory.source, *memory.borrowed],
        "time": memory.time,
        "metadata": _without_blanks({**fields, **links, **others, "chunk": chunk}),
    }


def nothing_item() -> dict[str, Any]:
    """What `Memory.remember_many` takes for a chunk with nothing to remember."""
    return {"text": "Nothing to remember.", "label": NOTHING, "valid_to": NEVER}


def nothing_after(atom: Atom) -> dict[str, Any]:
    """The same for the chunk of a memory that is to be forgotten."""
    kept = {name: atom.metadata[name] for name in ("chunk", "place", SETTINGS) if name in atom.metadata}
    id = f"{Chunk(**kept['chunk']).name}:none"
    return {**nothing_item(), "id": id, "source": own_source(atom), "metadata": kept}


def is_nothing(atom: Atom) -> bool:
    """Whether an atom says that its chunk has nothing to remember; one that was ended since does not."""
    return atom.label == NOTHING and atom.valid_to == NEVER


def read_chunk_memory(atom: Atom) -> ChunkMemory:
    """The chunk memory that an atom holds."""
    fields = atom.metadata
    return ChunkMemory(
        text=atom.text,
        hash=fields.get("hash", ""),
        id=atom.id,
        chunk=_read_chunk(fields),
        source=own_source(atom),
        borrowed=tuple(fields.get(_BORROWED, ())),
        condenses=tuple(fields.get("condenses", ())),
        place=fields.get("place", 0.0),
        recorded=atom.recorded,
        author=fields.get(AUTHOR, ""),
    )


def read_keyword_memory(atom: Atom) -> KeywordMemory:
    """The keyword memory that an atom holds."""
    fields = atom.metadata
    lists = {name: tuple(fields.get(name, ())) for name in ("entities", "key_phrases", "topics", *_LINKS)}
    return KeywordMemory(
        title=fields.get("title", ""),
        summary=atom.text,
        sentiment=fields.get("sentiment", ""),
        id=atom.id,
        chunk=_read_chunk(fields),
        source=own_source(atom),
        extra=fields.get("extra", {}),
        time=atom.time,
        place=fields.get("place", 0.0),
        recorded=atom.recorded,
        author=fields.get(AUTHOR, ""),
        **lists,
    )


def own_source(atom: Atom) -> tuple[str, ...]:
    """Ids of what a memory was made from, without what its author took over from others."""
    borrowed = set(atom.metadata.get(_BORROWED, ()))
    return tuple(id for id in atom.source if id not in borrowed)


def chunk_memories(memory: Memory, scope: Scope) -> list[ChunkMemory]:
    """Those in force, in the order of the discussion."""
    found = map(read_chunk_memory, atoms_in_force(memory, scope, CHUNK_MEMORY, ("observation", "fact")))
    return sorted(found, key=lambda each: each.place)


def keyword_memories(memory: Memory, scope: Scope) -> list[KeywordMemory]:
    """Those in force, in the order of the discussion."""
    found = map(read_keyword_memory, atoms_in_force(memory, scope, KEYWORD_MEMORY, ("fact",)))
    return sorted(found, key=lambda each: each.place)


def atoms_in_force(memory: Memory, scope: Scope, label: str, kinds: Iterable[AtomKind]) -> Iterator[Atom]:
    """Atoms with a label that have neither expired nor been replaced, in the order they were recorded."""
    now = utc_now()
    return (atom for atom in open_atoms(memory, scope, label, kinds) if is_in_force(atom, now))


def open_atoms(memory: Memory, scope: Scope, label: str, kinds: Iterable[AtomKind]) -> Iterator[Atom]:
    """Atoms with a label that have not been replaced, in the order they were recorded, also what has expired."""
    after = ""
    while True:
        page = memory.list(scope, kinds=kinds, labels=[label], limit=_PAGE, after=after, exact=True)
        yield from (item for item in page.items if isinstance(item, Atom))
        if not (after := page.next):
            return


def is_in_force(atom: Atom, now: datetime) -> bool:
    """Whether an atom holds at that moment."""
    return atom.valid_to is None or atom.valid_to > now


def _read_chunk(fields: Mapping[str, Any]) -> Chunk | None:
    return Chunk(**fields["chunk"]) if fields.get("chunk") else None


def _without_blanks(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ("", None, [], {})}


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
