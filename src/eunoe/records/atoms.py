"""Facts and observations: kept once, superseded by what comes after them, never overwritten."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.model.atom import AUTHOR, CORRECTION, WORTH, Atom, Item, Record, parse_item
from eunoe.model.result import Receipt
from eunoe.records.damage import check_undamaged
from eunoe.records.fingerprints import (
    Known,
    all_tombstone_identities,
    atom_identity,
    find_known,
    id_identity,
    tombstone_identities,
    topic_of,
)
from eunoe.records.ids import new_ids
from eunoe.records.insertion import VectorBatch, insert_records, link_sources
from eunoe.records.versions import close_into, closed_record, find_by_id, insert_keyed, stored_receipt
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamState

CARRIED = ("text", "kind", "label", "files", "pages", "people", "source", "time", "pinned", "metadata")
"""What an update carries over from the atom it supersedes, where it does not change it."""


def atom_record(atom: Atom, id: str, identity: bytes, recorded: datetime) -> Record:
    return Record(
        kind=atom.kind,
        id=id,
        identity=identity,
        text=atom.text,
        recorded=recorded,
        time=atom.time,
        label=atom.label,
        people=atom.people,
        files=atom.files,
        pages=atom.pages,
        valid_from=atom.valid_from,
        valid_to=atom.valid_to,
        retired=atom.retired,
        pinned=atom.pinned,
        supersedes=atom.supersedes,
        superseded_by=atom.superseded_by,
        supports=(atom.source,) if atom.source else (),
        metadata=atom.metadata,
        topic=topic_of(atom.kind, atom.metadata, atom.people),
    )


class _Candidate(NamedTuple):
    """An atom that is to be kept, and what it is recognised by."""

    atom: Atom
    id: str
    identity: bytes
    content: bytes


def keep_atoms(
    store: Store,
    stream: StreamState,
    atoms: Sequence[Atom],
    vectors: VectorBatch,
    recorded: datetime,
    again: bool,
    known: Known | None = None,
) -> list[Receipt]:
    """Store what is new; say of the rest why not. An atom with an id is recognised by it, others by their words.

    One with a memory key supersedes the one that had it. With `again`, forgotten ones are kept as well. `known` is what
    the stream holds of them, if that has been looked up.
    """
    candidates = list(_candidates(atoms))
    identities = list(dict.fromkeys(each.identity for each in candidates))
    if again:
        forget_tombstones(store, stream, atoms)
    forgotten = _find_forgotten(store, stream, candidates)
    if known is None:
        known = find_known(store, stream.id, identities, [atom.id for atom in atoms if atom.id])
    receipts: list[Receipt | None] = []
    kept: list[Record] = []
    records: list[Record] = []
    for candidate, is_forgotten in zip(candidates, forgotten, strict=True):
        receipt = _refusal(candidate, is_forgotten, known)
        if receipt is None:
            known[candidate.identity] = (candidate.id, candidate.content)
            record = atom_record(candidate.atom, candidate.id, candidate.identity, recorded)
            kept.append(record)
            if record.topic:
                receipt = insert_keyed(store, stream, record, vectors)
            else:
                records.append(record)
        receipts.append(receipt)
    link_sources(store, stream, kept)
    inserted = iter(insert_records(store, stream, records, vectors))
    return [stored_receipt(next(inserted)) if receipt is None else receipt for receipt in receipts]


def forget_tombstones(store: Store, stream: StreamState, atoms: Sequence[Atom]) -> None:
    """Let what was forgotten come back, by id and by words."""
    if not store.tombstones(stream.id, limit=1):
        return
    texts = [identity for atom in atoms for identity in all_tombstone_identities(atom.text)]
    store.remove_tombstones(stream.id, [*(id_identity(atom.id) for atom in atoms if atom.id), *texts])


def is_forgotten(store: Store, stream: StreamState, atom: Atom) -> bool:
    """Whether an atom with an id was forgotten here."""
    return _find_forgotten(store, stream, list(_candidates([atom])))[0]


def _candidates(atoms: Sequence[Atom]) -> Iterator[_Candidate]:
    for atom, new_id in zip(atoms, new_ids(len(atoms)), strict=True):
        content = atom_identity(atom.kind, atom.text)
        yield _Candidate(atom, atom.id or new_id, id_identity(atom.id) if atom.id else content, content)


def _find_forgotten(store: Store, stream: StreamState, candidates: Sequence[_Candidate]) -> list[bool]:
    """Which candidates were forgotten here, by id, by words or by what the words look like."""
    if not store.tombstones(stream.id, limit=1):
        return [False] * len(candidates)
    identities = [(each.identity, *tombstone_identities(each.atom.kind, each.atom.text)) for each in candidates]
    wanted = list(dict.fromkeys(identity for own in identities for identity in own))
    buried = {tombstone.identity for tombstone in store.tombstones(stream.id, wanted)}
    return [not buried.isdisjoint(own) for own in identities]


def _refusal(candidate: _Candidate, is_forgotten: bool, known: Known) -> Receipt | None:
    if is_forgotten:
        return Receipt("forgotten", candidate.atom.id)
    if candidate.identity in known:
        id, content = known[candidate.identity]
        return Receipt("duplicate" if content == candidate.content else "conflict", id)
    return None


def supersede(
    store: Store, stream: StreamState, record: Record, new: Atom, vectors: VectorBatch, recorded: datetime
) -> Receipt:
    """Close an atom and put the new one in its place."""
    if store.tombstones(stream.id, tombstone_identities(new.kind, new.text)):
        return Receipt("forgotten", record.id)
    content = atom_identity(new.kind, new.text)
    has_own_id = record.identity == id_identity(record.id)
    same = [] if has_own_id else store.select(ItemQuery(stream.id, identities=[content], open=True))
    same = [other for other in same if other.seq != record.seq]
    new_id = same[0].id if same else new_ids(1)[0]
    start = new.valid_from or recorded
    end = new.valid_to or _kept_end(record, new, start)
    if end and end < start:
        raise InputError(f"valid_to {end.isoformat()} is before the update takes effect, {start.isoformat()}")
    if same:
        close_into(store, stream, record, same[0], start, recorded)
        return Receipt("superseded", new_id, closed=record.id)
    version = store.advance(stream.id).version
    store.update([closed_record(record, new_id, start, recorded)._replace(version=version)])
    new = replace(new, valid_from=start, valid_to=end, supersedes=record.id, superseded_by="", retired=None)
    added = atom_record(new, new_id, id_identity(new_id) if has_own_id else content, recorded)
    link_sources(store, stream, [added])
    inserted = insert_records(store, stream, [added], vectors)
    return Receipt("superseded", new_id, embedded=not inserted[0].pending, closed=record.id)


def _kept_end(record: Record, new: Atom, start: datetime) -> datetime | None:
    """The same words keep the end they had; other words have none until it is given."""
    kept = record.valid_to is not None and record.text == new.text and record.valid_to > start
    return record.valid_to if kept else None


def find_record(store: Store, stream: StreamState | None, id: str) -> Record:
    record = find_by_id(store, stream.id, id) if stream else None
    if record is None:
        if stream:
            check_undamaged(store, stream)
        raise NotFoundError(f"there is no memory {id!r} in this scope")
    return record


def find_updatable(store: Store, stream: StreamState | None, id: str) -> tuple[Record, Record]:
    """An atom, and the one in its place if an update closed it."""
    record = find_record(store, stream, id)
    if record.kind == "message":
        raise InputError(f"{id} is a message: the log is verbatim; forget it, or remember a fact beside it")
    return record, find_by_id(store, record.stream, record.superseded_by) or record


def is_as_wanted(item: Item, wanted: Atom) -> bool:
    """Whether an atom is already what an update asks for: the update was repeated, or changes nothing."""
    times = (getattr(wanted, name) in (None, getattr(item, name)) for name in ("valid_from", "valid_to"))
    return all(getattr(item, name) == getattr(wanted, name) for name in CARRIED) and all(times)


def check_open(record: Record) -> Record:
    if record.retired is not None:
        by = record.superseded_by or "an earlier update"
        raise ConflictError(f"{record.id} was closed by {by}: update that one instead")
    return record


def pin_record(store: Store, stream: StreamState | None, id: str, pinned: bool) -> Receipt:
    """Mark a record as one that no clean-up may take, or take the mark off."""
    record = find_record(store, stream, id)
    if record.retired is not None:
        raise ConflictError(f"{id} was closed: pin the memory that took its place, {record.superseded_by}")
    if record.pinned == pinned:
        return Receipt("duplicate", id)
    version = store.advance(record.stream).version
    store.update([record._replace(pinned=pinned, version=version)])
    return Receipt("stored", id)


def archive(store: Store, stream: StreamState, records: Sequence[Record], moment: datetime) -> None:
    """Close atoms without anything in their place, in one version step."""
    version = store.advance(stream.id).version
    store.update([record._replace(version=version, retired=moment) for record in records])


def unarchive(store: Store, stream: StreamState | None, id: str) -> Receipt:
    """Bring an archived atom back; one that was superseded stays closed."""
    record = find_record(store, stream, id)
    if record.kind == "message":
        raise InputError(f"{id} is a message: restore it with retract(..., retracted=False)")
    if CORRECTION in record.metadata and record.label == CORRECTION:
        raise InputError(f"{id} is a correction: there is no memory to bring back")
    if record.retired is None:
        return Receipt("duplicate", id, embedded=not record.pending)
    if record.superseded_by:
        raise ConflictError(f"{id} was closed by {record.superseded_by}, not archived: update that one instead")
    if store.tombstones(record.stream, [record.identity, *tombstone_identities(record.kind, record.text)]):
        return Receipt("forgotten", id)
    same = store.select(ItemQuery(record.stream, identities=[record.identity], open=True))
    if same:
        raise ConflictError(f"{id} says the same as {same[0].id}, which was stored since: it stays archived")
    version = store.advance(record.stream).version
    store.update([record._replace(version=version, retired=None)])
    return Receipt("stored", id, embedded=not record.pending)


def changed_atom(old: Item, text: str | None, changes: Mapping[str, Any]) -> tuple[Atom, Any]:
    """Return an atom with other words or fields, and the vector that came with them."""
    fields = {name: getattr(old, name) for name in CARRIED} | ({} if text is None else {"text": text})
    if fields["text"] != old.text:  # other words have another author, and nobody judged them
        fields["metadata"] = {name: value for name, value in old.metadata.items() if name not in (AUTHOR, WORTH)}
    return parse_item({**fields, **changes})
