"""What an import does not bring back: what was forgotten here, and what rests on nothing else."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import chain

from eunoe.model.atom import Record, SourcePlace, source_place, unique_supports
from eunoe.model.scope import Scope
from eunoe.records import fingerprints
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamState
from eunoe.transfer.lines import ItemLine, ScopedLine


def find_buried(store: Store, stream: StreamState, records: Sequence[Record]) -> dict[str, Record]:
    """The records that have a tombstone here, by id."""
    buried = _find_tombstones(store, stream, {record.id: _identities(record) for record in records})
    return {record.id: record for record in records if record.id in buried}


def forgotten_sources(store: Store, batch: Sequence[ScopedLine]) -> set[SourcePlace]:
    """What the atoms of a batch rest on and is not here, for it was forgotten."""
    lines = {(scope, line.record.id): line.record for scope, line in batch if scope and isinstance(line, ItemLine)}
    gone: set[SourcePlace] = set()
    for scope, ids in _source_ids(lines).items():
        if stream := store.stream(scope):
            missing = ids - {record.id for record in store.select(ItemQuery(stream.id, ids=sorted(ids)))}
            known = {id: lines.get((scope, id)) for id in missing}
            own = {id: _identities(line) if line else (fingerprints.id_identity(id),) for id, line in known.items()}
            gone |= {(scope, id) for id in _find_tombstones(store, stream, own)}
    return gone


def _source_ids(lines: Mapping[SourcePlace, Record]) -> dict[Scope, set[str]]:
    ids: defaultdict[Scope, set[str]] = defaultdict(set)
    for (owner, _), record in lines.items():
        for name in chain(*record.supports):
            scope, id = source_place(name, owner)
            ids[scope].add(id)
    return ids


def without_sources(record: Record, owner: Scope, gone: Set[SourcePlace]) -> Record:
    """A record with the supports that are left to it."""
    groups = (group for group in record.supports if gone.isdisjoint(source_place(name, owner) for name in group))
    return record._replace(supports=unique_supports(groups)) if gone and record.supports else record


def _find_tombstones(store: Store, stream: StreamState, identities: dict[str, tuple[bytes, ...]]) -> set[str]:
    """The ids of those that a tombstone recognises."""
    wanted = [identity for own in identities.values() for identity in own]
    found = {tombstone.identity for tombstone in store.tombstones(stream.id, wanted)} if wanted else set()
    return {id for id, own in identities.items() if not found.isdisjoint(own)}


def _identities(record: Record) -> tuple[bytes, ...]:
    """What a tombstone could recognise this record by."""
    own = (record.identity, fingerprints.id_identity(record.id))
    if record.kind != "message":
        return *own, *fingerprints.tombstone_identities(record.kind, record.text)
    content = fingerprints.message_content(record)
    if record.time is not None:
        return *own, fingerprints.time_identity(record.time, content)
    return own if record.identity == own[1] else (*own, fingerprints.words_identity(content))
