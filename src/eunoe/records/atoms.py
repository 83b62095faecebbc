"""Facts and observations: kept once, closed by what comes after them, never overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.model.atom import Atom
from eunoe.model.result import Item, Receipt
from eunoe.model.time import from_micros, micros
from eunoe.records.ids import new_ids
from eunoe.records.rows import atom_content, atom_contents, atom_marks, atom_row, id_key, looks_key, row_content
from eunoe.records.vectors import Vectors, write
from eunoe.records.versions import Namesakes, close, closed, memory_key, succeed
from eunoe.store.contract import Row, Store, StreamRow

CARRIED = ("text", "kind", "label", "files", "pages", "people", "source", "time", "pinned", "metadata")


def keep(
    store: Store, stream: StreamRow, atoms: Sequence[Atom], vectors: Vectors, recorded: int, again: bool
) -> list[Receipt]:
    """Stores what is new; says of the rest why not. An atom with an id is told apart by it, others by their words.

    One with a memory key takes the place of the one that had it.
    """
    contents = [atom_content(atom.kind, atom.text) for atom in atoms]
    keys = [id_key(atom.id) if atom.id else content for atom, content in zip(atoms, contents, strict=True)]
    if again:
        store.unbury(stream.id, [*keys, *(content for atom in atoms for content in atom_contents(atom.text))])
    forgets = store.has_buried(stream.id)
    looks = [looks_key(atom.text) if forgets else b"" for atom in atoms]
    marks = [*dict.fromkeys(keys + contents + looks)] if forgets else []
    buried = {stone.key for stone in store.buried(stream.id, marks)}
    known = _known(store, stream, atoms, keys)
    namesakes = Namesakes(store, stream) if any(memory_key(atom.metadata) for atom in atoms) else None
    receipts: list[Receipt | None] = []
    rows = []
    for atom, key, content, look, new_id in zip(atoms, keys, contents, looks, new_ids(len(atoms)), strict=True):
        if not buried.isdisjoint((key, content, look)):
            receipts.append(Receipt("forgotten", atom.id))
        elif key in known:
            id, held = known[key]
            receipts.append(Receipt("duplicate" if held == content else "conflict", id))
        else:
            known[key] = (atom.id or new_id, content)
            row = atom_row(atom, atom.id or new_id, key, recorded)
            if namesakes and memory_key(atom.metadata):
                receipts.append(succeed(store, stream, row, namesakes.rivals(row), vectors))
                namesakes.add(row)
            else:
                rows.append(row)
                receipts.append(None)
    placed = iter(write(store, stream, rows, vectors))
    return [_stored(next(placed)) if receipt is None else receipt for receipt in receipts]


def _stored(row: Row) -> Receipt:
    return Receipt("stored", row.id, embedded=not row.pending)


def _known(
    store: Store, stream: StreamRow, atoms: Sequence[Atom], keys: Sequence[bytes]
) -> dict[bytes, tuple[str, bytes]]:
    """What the store holds under these keys, the closed ones too where an id was given."""
    living = store.by_key(stream.id, list(dict.fromkeys(keys)))
    named = store.by_id(stream.id, [atom.id for atom in atoms if atom.id])
    known = {row.key: (row.id, row_content(row)) for row in living}
    return known | {id_key(row.id): (row.id, row_content(row)) for row in named}


def supersede(store: Store, stream: StreamRow, row: Row, new: Atom, vectors: Vectors, recorded: int) -> Receipt:
    """Closes an atom and puts the new one in its place."""
    content = atom_content(new.kind, new.text)
    named = row.key == id_key(row.id)
    if store.buried(stream.id, atom_marks(new.kind, new.text)):
        return Receipt("forgotten", row.id)
    same = [] if named else [other for other in store.by_key(stream.id, [content]) if other.seq != row.seq]
    new_id = same[0].id if same else new_ids(1)[0]
    start = new.valid_from or from_micros(recorded)
    end = new.valid_to or _end(row, new, start)
    if end and end < start:
        raise InputError(f"valid_to {end.isoformat()} is before the update takes effect, {start.isoformat()}")
    if same:
        close(store, stream, row, same[0], micros(start), recorded)
        return Receipt("superseded", new_id, closed=row.id)
    version = store.advance(stream.id).version
    store.replace([closed(row, new_id, micros(start), recorded)._replace(version=version)])
    new = replace(new, valid_from=start, valid_to=end, supersedes=row.id, superseded_by="", retired=None)
    placed = write(store, stream, [atom_row(new, new_id, id_key(new_id) if named else content, recorded)], vectors)
    return Receipt("superseded", new_id, embedded=not placed[0].pending, closed=row.id)


def _end(row: Row, new: Atom, start: datetime) -> datetime | None:
    """The same words keep the end they had; other words have none until it is given."""
    kept = row.valid_to is not None and row.text == new.text and row.valid_to > micros(start)
    return from_micros(row.valid_to) if kept and row.valid_to is not None else None


def changeable(store: Store, stream: StreamRow | None, id: str) -> tuple[Row, Row]:
    """An atom, and the one in its place if an update closed it."""
    row = found(store, stream, id)
    if row.kind == "message":
        raise InputError(f"{id} is a message: the log is verbatim; forget it, or remember a fact beside it")
    after = store.by_id(row.stream, [row.superseded_by]) if row.superseded_by else []
    return row, after[0] if after else row


def says(item: Item, wanted: Atom) -> bool:
    """Whether an atom is already what an update asks for: the update was repeated, or changes nothing."""
    times = (getattr(wanted, name) in (None, getattr(item, name)) for name in ("valid_from", "valid_to"))
    return all(getattr(item, name) == getattr(wanted, name) for name in CARRIED) and all(times)


def check_open(row: Row) -> Row:
    if row.retired is not None:
        raise ConflictError(
            f"{row.id} was closed by {row.superseded_by or 'an earlier update'}: update that one instead"
        )
    return row


def found(store: Store, stream: StreamRow | None, id: str) -> Row:
    rows = store.by_id(stream.id, [id]) if stream else []
    if not rows:
        raise NotFoundError(f"there is no memory {id!r} in this scope")
    return rows[0]


def reopen(store: Store, stream: StreamRow | None, id: str) -> Receipt:
    """Brings an archived atom back; one that was superseded stays closed."""
    row = found(store, stream, id)
    if row.retired is None:
        return Receipt("duplicate", id, embedded=not row.pending)
    if row.superseded_by:
        raise ConflictError(f"{id} was closed by {row.superseded_by}, not archived: update that one instead")
    if store.buried(row.stream, [row.key, *atom_marks(row.kind, row.text)]):
        return Receipt("forgotten", id)
    twins = store.by_key(row.stream, [row.key])
    if twins:
        raise ConflictError(f"{id} says the same as {twins[0].id}, which was stored since: it stays archived")
    version = store.advance(row.stream).version
    store.replace([row._replace(version=version, retired=None)])
    return Receipt("stored", id, embedded=not row.pending)
