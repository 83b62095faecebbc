"""Replacing: an id that is there already names a new version from now on.

The record keeps its number, and with it its place among the others. What it was until then goes into the history under
an id of its own, closed.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from eunoe.model.atom import Atom, Record
from eunoe.model.result import Receipt
from eunoe.records.atoms import atom_record, forget_tombstones, is_forgotten, keep_atoms
from eunoe.records.fingerprints import Known, id_identity, record_content
from eunoe.records.ids import new_ids
from eunoe.records.insertion import VectorBatch, link_sources, rewrite_record
from eunoe.records.revisions import rename_absorbed
from eunoe.records.versions import (
    close_into,
    closed_record,
    find_by_id,
    find_same_topic,
    last_said,
    split_rivals,
)
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import PassageGraphRecord, StreamState

_COMPARED = ("text", "kind", "label", "files", "pages", "people", "time", "valid_to", "pinned")
"""What has to be the same in a record and an atom that changes nothing, beside what is compared in other ways."""


def replace_atoms(
    store: Store, stream: StreamState, atoms: Sequence[Atom], vectors: VectorBatch, recorded: datetime, again: bool
) -> list[Receipt]:
    """Store atoms, each in place of what its id has named so far. Those without an id are recognised by their words."""
    new = _new_places(store, stream, atoms)
    known: Known | None = {} if all(atoms[place].id for place in new) else None
    kept = keep_atoms(store, stream, [atoms[place] for place in new], vectors, recorded, again, known)
    receipts = dict(zip(new, kept, strict=True))
    for place, atom in enumerate(atoms):
        if place not in receipts:
            receipts[place] = _replace(store, stream, atom, vectors, recorded, again)
    return [receipts[place] for place in range(len(atoms))]


def _new_places(store: Store, stream: StreamState, atoms: Sequence[Atom]) -> list[int]:
    """Where the atoms stand whose ids are neither known nor named by one before them."""
    ids = [atom.id for atom in atoms if atom.id]
    known = {record.id for record in store.select(ItemQuery(stream.id, ids=ids))} if ids else set()
    new = []
    for place, atom in enumerate(atoms):
        if atom.id not in known:
            new.append(place)
            known |= {atom.id} if atom.id else set()
    return new


def _replace(
    store: Store, stream: StreamState, atom: Atom, vectors: VectorBatch, recorded: datetime, again: bool
) -> Receipt:
    record = find_by_id(store, stream.id, atom.id)
    if record is None:  # one before it in the same call was refused
        return keep_atoms(store, stream, [atom], vectors, recorded, again)[0]
    if again:
        forget_tombstones(store, stream, [atom])
    elif is_forgotten(store, stream, atom):
        return Receipt("forgotten", atom.id)
    if record.kind == "message":
        return Receipt("conflict", atom.id)
    if _is_same(record, atom):
        if vectors.has_own(record):
            record = rewrite_record(store, record._replace(version=store.advance(stream.id).version), vectors)
        return Receipt("duplicate", atom.id, embedded=not record.pending)
    return _put_in_place(store, stream, record, atom, vectors, recorded)


def _is_same(record: Record, atom: Atom) -> bool:
    """Whether an atom changes nothing. One that says nothing of when it began began when it was recorded."""
    starts = (None, _start(record.valid_to, record.recorded)) if atom.valid_from is None else (atom.valid_from,)
    return (
        record.retired is None
        and record.valid_from in starts
        and record.sources == atom.source
        and all(getattr(record, name) == getattr(atom, name) for name in _COMPARED)
        and _plain(record.metadata) == _plain(atom.metadata)
    )


def _plain(metadata: Mapping[str, Any]) -> str:
    """The same text for the same metadata. Compared as they are, 1 and true would be equal."""
    return json.dumps(metadata, sort_keys=True)


def _start(valid_to: datetime | None, recorded: datetime) -> datetime:
    """Since when a new version holds: from now on, unless it is over already."""
    return recorded if valid_to is None else min(recorded, valid_to)


def _put_in_place(
    store: Store, stream: StreamState, record: Record, atom: Atom, vectors: VectorBatch, recorded: datetime
) -> Receipt:
    """Let an id name a new version, and put the one before into the history."""
    end = atom.valid_from or recorded
    past = _insert_past(store, stream, record, end, recorded)
    last = _close_last(store, past, record.id, end, recorded)
    new = atom_record(atom, record.id, id_identity(record.id), recorded)._replace(
        seq=record.seq,
        stream=record.stream,
        version=past.version,
        pending=record.pending,
        valid_from=atom.valid_from or _start(atom.valid_to, recorded),
        supersedes=last.id,
    )
    link_sources(store, stream, [new])
    if new.text != record.text:
        _pass_on(store, stream, new, past)
    if new.text != record.text or vectors.has_own(new):
        new = rewrite_record(store, new, vectors)
    else:
        store.update([new])
    _close_rivals(store, stream, new)
    return Receipt("superseded", new.id, embedded=not new.pending, closed=last.id)


def _insert_past(store: Store, stream: StreamState, record: Record, end: datetime, recorded: datetime) -> Record:
    """Insert what a record was until now under an id of its own. The versions around it are linked with that."""
    id = new_ids(1)[0]
    has_own_id = record.identity == id_identity(record.id)
    past = record._replace(id=id, identity=id_identity(id) if has_own_id else record.identity)
    if not record.superseded_by:
        past = _closed(past, record.id, end, recorded)
    past = store.insert(store.advance(stream.id), [past])[0]
    store.copy_vectors(record.seq, past.seq)
    graphs = store.load(PassageGraphRecord, seq=record.seq)
    store.save([graph._replace(seq=past.seq) for graph in graphs])
    earlier = store.select(ItemQuery(stream.id, superseded_by=[record.id]))
    links = [each._replace(superseded_by=id) for each in earlier if each.id != id]
    later = find_by_id(store, stream.id, record.superseded_by)
    if later and later.supersedes == record.id:
        links.append(later._replace(supersedes=id))
    store.update([each._replace(version=past.version) for each in links])
    return past


def _close_last(store: Store, past: Record, id: str, end: datetime, recorded: datetime) -> Record:
    """The version just before the new one: the last that an update put in place of the one before."""
    versions = {past.id: past}
    while (after := find_by_id(store, past.stream, past.superseded_by)) and after.id not in (id, *versions):
        past = versions[after.id] = after
    if past.superseded_by != id:
        version = next(iter(versions.values())).version
        past = _closed(past, id, end, recorded)._replace(version=version)
        store.update([past])
    return past


def _closed(record: Record, by: str, end: datetime, recorded: datetime) -> Record:
    """A record that is closed. One that was archived stays closed since then."""
    return closed_record(record, by, end, recorded)._replace(
        retired=record.retired or recorded, in_review=False, replaces=()
    )


def _pass_on(store: Store, stream: StreamState, new: Record, past: Record) -> None:
    """Let what was derived from the words before belong to the version that had them."""
    store.drop(PassageGraphRecord, seq=new.seq)
    if past.kind == "observation":
        rename_absorbed(store, stream, new.id, past.id)


def _close_rivals(store: Store, stream: StreamState, new: Record) -> None:
    """Close the older ones with the same memory key, as for any new atom that has one."""
    content = record_content(new)
    rivals = [
        other
        for other in find_same_topic(store, stream, new)
        if other.id != new.id and not other.pinned and record_content(other) != content
    ]
    said = last_said(store, stream, new)
    for rival in split_rivals(store, stream, new, rivals, said)[0] if rivals else ():
        close_into(store, stream, rival, new, said[0], new.recorded)
