"""Expiry: until when atoms hold, set in place."""

from collections.abc import Sequence
from datetime import datetime

from eunoe.errors import ConflictError, InputError
from eunoe.model.atom import Record
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.records.atoms import find_record
from eunoe.store.contract import Store


def expire_atoms(store: Store, scope: Scope, ids: Sequence[str], at: datetime | None) -> list[Receipt]:
    """Set until when atoms hold; all of them or, on an error, none."""
    with store.writing():
        stream = store.stream(scope)
        records = [_check_open_atom(find_record(store, stream, id)) for id in ids]
        ends = [_end(record, at) for record in records]
        changed = [record._replace(valid_to=end) for record, end in zip(records, ends, strict=True)]
        different = [new for new, old in zip(changed, records, strict=True) if new != old]
        if stream and different:
            version = store.advance(stream.id).version
            store.update([record._replace(version=version) for record in different])
    return [Receipt("stored" if new in different else "duplicate", new.id) for new in changed]


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
