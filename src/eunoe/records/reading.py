"""Reading by id: one item or several, and all versions of an atom."""

from collections import Counter
from collections.abc import Sequence

from eunoe.errors import ConflictError
from eunoe.model.arguments import show
from eunoe.model.atom import Atom, Item, Record
from eunoe.model.scope import Scope
from eunoe.records.atoms import find_record
from eunoe.records.damage import check_undamaged
from eunoe.records.versions import all_versions, has_gaps
from eunoe.store.contract import Store, streams_of
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamState


def find_item(store: Store, scope: Scope, id: str) -> Item:
    if found := store.find_at_once(scope.alone, (id,)):
        return found[0].item(scope.alone)
    with store.reading():
        stream = find_owner(store, scope, id)
        return find_record(store, stream, id).item(stream.scope if stream else scope)


def find_owner(store: Store, scope: Scope, id: str) -> StreamState | None:
    """The stream that an id is looked for in: the scope's own, or the one within that has it."""
    if scope.within and (records := find_records(store, scope, [id])):
        return store.streams(ids=[records[0].stream])[0]
    return store.stream(scope.alone)


def find_place(store: Store, scope: Scope, ids: Sequence[str]) -> Scope | None:
    """The scope within a user's that has one of these ids: told to whoever would change it in the wrong one."""
    if "user" not in scope.pairs:
        return None
    with store.reading():
        records = find_records(store, scope.everything, ids[:1])
        return store.streams(ids=[records[0].stream])[0].scope if records else None


def find_items(store: Store, scope: Scope, ids: Sequence[str]) -> list[Item]:
    """Those that are there, in the order of their ids."""
    found = store.find_at_once(scope.alone, ids)
    if found is not None:
        items = {record.id: record.item(scope.alone) for record in found}
        return [items[id] for id in ids if id in items]
    with store.reading():
        streams = {stream.id: stream for stream in streams_of(store, scope)}
        records = find_records(store, scope, ids)
        if len(records) < len({*ids}):
            for stream in streams.values():
                check_undamaged(store, stream)
    items = {record.id: record.item(streams[record.stream].scope) for record in records}
    return [items[id] for id in ids if id in items]


def find_records(store: Store, scope: Scope, ids: Sequence[str]) -> list[Record]:
    """The records that have these ids in a scope. Within it, what the scope itself has comes first."""
    own = store.stream(scope.alone)
    records = store.select(ItemQuery(own.id, ids=ids)) if own and ids else []
    missing = set(ids) - {record.id for record in records}
    if not scope.within or not missing:
        return records
    streams = {stream.id: stream.scope.text for stream in store.streams_within(scope)}
    found = store.select(ItemQuery(streams=[*streams], ids=sorted(missing)))
    if len({record.id for record in found}) < len(found):
        id, count = Counter(record.id for record in found).most_common(1)[0]
        named = " and ".join(sorted(streams[record.stream] for record in found if record.id == id)[:2])
        raise ConflictError(f"{count} scopes have a memory {show(id)}, such as {named}: name the one that you mean")
    return records + found


def find_history(store: Store, scope: Scope, id: str) -> list[Atom]:
    """All versions of an atom, oldest first."""
    with store.reading():
        stream = find_owner(store, scope, id)
        record = find_record(store, stream, id)
        versions = all_versions(store, stream, record) if stream else []
        if stream and has_gaps(versions):
            check_undamaged(store, stream)
    owner = stream.scope if stream else scope
    return [item for version in versions if isinstance(item := version.item(owner), Atom)]
