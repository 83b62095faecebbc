"""Reading by id: one item or several, and all versions of an atom."""

from collections.abc import Sequence

from eunoe.model.atom import Atom
from eunoe.model.record import Item
from eunoe.model.scope import Scope
from eunoe.records.atoms import find_record
from eunoe.records.damage import check_undamaged
from eunoe.records.versions import all_versions, has_gaps
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery


def find_item(store: Store, scope: Scope, id: str) -> Item:
    if found := store.find_at_once(scope, (id,)):
        return found[0].item(scope)
    with store.reading():
        return find_record(store, store.stream(scope), id).item(scope)


def find_items(store: Store, scope: Scope, ids: Sequence[str]) -> list[Item]:
    """Those that are there, in the order of their ids."""
    records = store.find_at_once(scope, ids)
    if records is None:
        with store.reading():
            stream = store.stream(scope)
            records = store.select(ItemQuery(stream.id, ids=ids)) if stream and ids else []
            if stream and len(records) < len(ids):
                check_undamaged(store, stream)
    items = {record.id: record.item(scope) for record in records}
    return [items[id] for id in ids if id in items]


def find_history(store: Store, scope: Scope, id: str) -> list[Atom]:
    """All versions of an atom, oldest first."""
    with store.reading():
        stream = store.stream(scope)
        record = find_record(store, stream, id)
        versions = all_versions(store, stream, record) if stream else []
        if stream and has_gaps(versions):
            check_undamaged(store, stream)
    return [item for version in versions if isinstance(item := version.item(scope), Atom)]
