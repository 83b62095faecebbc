"""Facts and observations: kept once, superseded by what comes after them, never overwritten. An id that is
there already names a new version from now on where it is replaced."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.model.atom import AUTHOR, CORRECTION, WORTH, Atom, Item, Record, parse_item
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.records.identity import (
    Known,
    all_tombstone_identities,
    atom_identity,
    find_known,
    id_identity,
    new_ids,
    record_content,
    tombstone_identities,
    topic_of,
)
from eunoe.records.insertion import VectorBatch, insert_records, link_sources, rewrite_record
from eunoe.records.revisions import rename_absorbed
from eunoe.records.streams import check_undamaged
from eunoe.records.versions import (
    close_into,
    closed_record,
    find_by_id,
    find_same_topic,
    insert_keyed,
    last_said,
    split_rivals,
    stored_receipt,
)
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import PassageGraphRecord, StreamState

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
    store: Writing,
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


def forget_tombstones(store: Writing, stream: StreamState, atoms: Sequence[Atom]) -> None:
    """Let what was forgotten come back, by id and by words."""
    if not store.tombstones(stream.id, limit=1):
        return
    texts = [identity for atom in atoms for identity in all_tombstone_identities(atom.text)]
    store.remove_tombstones(stream.id, [*(id_identity(atom.id) for atom in atoms if atom.id), *texts])


def is_forgotten(store: Reading, stream: StreamState, atom: Atom) -> bool:
    """Whether an atom with an id was forgotten here."""
    return _find_forgotten(store, stream, list(_candidates([atom])))[0]


def _candidates(atoms: Sequence[Atom]) -> Iterator[_Candidate]:
    for atom, new_id in zip(atoms, new_ids(len(atoms)), strict=True):
        content = atom_identity(atom.kind, atom.text)
        yield _Candidate(atom, atom.id or new_id, id_identity(atom.id) if atom.id else content, content)


def _find_forgotten(store: Reading, stream: StreamState, candidates: Sequence[_Candidate]) -> list[bool]:
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
    store: Writing, stream: StreamState, record: Record, new: Atom, vectors: VectorBatch, recorded: datetime
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


def find_record(store: Reading, stream: StreamState | None, id: str) -> Record:
    record = find_by_id(store, stream.id, id) if stream else None
    if record is None:
        if stream:
            check_undamaged(store, stream)
        raise NotFoundError(f"there is no memory {id!r} in this scope")
    return record


def find_updatable(store: Reading, stream: StreamState | None, id: str) -> tuple[Record, Record]:
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


def pin_record(store: Writing, stream: StreamState | None, id: str, pinned: bool) -> Receipt:
    """Mark a record as one that no clean-up may take, or take the mark off."""
    record = find_record(store, stream, id)
    if record.retired is not None:
        raise ConflictError(f"{id} was closed: pin the memory that took its place, {record.superseded_by}")
    if record.pinned == pinned:
        return Receipt("duplicate", id)
    version = store.advance(record.stream).version
    store.update([record._replace(pinned=pinned, version=version)])
    return Receipt("stored", id)


def archive(store: Writing, stream: StreamState, records: Sequence[Record], moment: datetime) -> None:
    """Close atoms without anything in their place, in one version step."""
    version = store.advance(stream.id).version
    store.update([record._replace(version=version, retired=moment) for record in records])


def unarchive(store: Writing, stream: StreamState | None, id: str) -> Receipt:
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


_COMPARED = ("text", "kind", "label", "files", "pages", "people", "time", "valid_to", "pinned")
"""What has to be the same in a record and an atom that changes nothing, beside what is compared in other ways."""


def replace_atoms(
    store: Writing, stream: StreamState, atoms: Sequence[Atom], vectors: VectorBatch, recorded: datetime, again: bool
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


def _new_places(store: Reading, stream: StreamState, atoms: Sequence[Atom]) -> list[int]:
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
    store: Writing, stream: StreamState, atom: Atom, vectors: VectorBatch, recorded: datetime, again: bool
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
    store: Writing, stream: StreamState, record: Record, atom: Atom, vectors: VectorBatch, recorded: datetime
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


def _insert_past(store: Writing, stream: StreamState, record: Record, end: datetime, recorded: datetime) -> Record:
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


def _close_last(store: Writing, past: Record, id: str, end: datetime, recorded: datetime) -> Record:
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


def _pass_on(store: Writing, stream: StreamState, new: Record, past: Record) -> None:
    """Let what was derived from the words before belong to the version that had them."""
    store.drop(PassageGraphRecord, seq=new.seq)
    if past.kind == "observation":
        rename_absorbed(store, stream, new.id, past.id)


def _close_rivals(store: Writing, stream: StreamState, new: Record) -> None:
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


def expire_atoms(store: Store, scope: Scope, ids: Sequence[str], at: datetime | None) -> list[Receipt]:
    """Set until when atoms hold; all of them or, on an error, none."""

    def expire(store: Writing) -> list[Receipt]:
        stream = store.stream(scope)
        records = [_check_open_atom(find_record(store, stream, id)) for id in ids]
        ends = [_end(record, at) for record in records]
        changed = [record._replace(valid_to=end) for record, end in zip(records, ends, strict=True)]
        different = [new for new, old in zip(changed, records, strict=True) if new != old]
        if stream and different:
            version = store.advance(stream.id).version
            store.update([record._replace(version=version) for record in different])
        return [Receipt("stored" if new in different else "duplicate", new.id) for new in changed]

    return store.write([scope], expire)


def _end(record: Record, at: datetime | None) -> datetime | None:
    """What would end before it began was never true: it ends where it began."""
    return at if at is None or record.valid_from is None else max(at, record.valid_from)


def _check_open_atom(record: Record) -> Record:
    if record.kind == "message":
        raise InputError(f"ids: {record.id} is a message: what was said does not expire; forget it")
    if record.retired is not None:
        by = f"closed by {record.superseded_by}" if record.superseded_by else "archived"
        raise ConflictError(f"{record.id} was {by}: it has ended already")
    return record
