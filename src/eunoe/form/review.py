"""Review: new atoms wait until somebody has looked at them, and can be put back.

What an atom in review is to close stays in force until it is kept.
"""

from collections.abc import Sequence
from datetime import datetime

from eunoe.errors import ConflictError, InputError
from eunoe.form.remainder import keep_remainder
from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.atom import Record
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.records.atoms import archive, find_record
from eunoe.records.insertion import VectorBatch
from eunoe.records.reading import find_owner
from eunoe.records.versions import (
    all_versions,
    bridge_gaps,
    close_into,
    find_by_id,
    last_said,
    split_rivals,
    stored_receipt,
)
from eunoe.store.contract import ItemQuery, Store
from eunoe.store.schema import Absorption, StreamState


def review_atoms(store: Store, scope: Scope, ids: Sequence[str], keep: bool) -> list[Receipt]:
    """Keep atoms that wait, or let kept ones wait again; all of them or, on an error, none."""
    with store.writing():
        now, receipts = utc_now(), []
        for id in ids:  # each is read when it is its turn: those before it may have closed it
            stream = find_owner(store, scope, id)
            record = find_record(store, stream, id)
            assert stream is not None
            receipts.append((keep_atom if keep else put_back)(store, stream, record, now))
    return receipts


def keep_atom(store: Store, stream: StreamState, record: Record, now: datetime) -> Receipt:
    """Put an atom in review into force: it closes what it was to close, or is closed by what was said later."""
    _check_open_atom(record)
    if not record.in_review:
        return Receipt("duplicate", record.id, embedded=not record.pending)
    said = last_said(store, stream, record)
    earlier, later = split_rivals(store, stream, record, _find_rivals(store, record), said)
    start = said[0] if earlier and record.valid_from is None else record.valid_from
    version = store.advance(stream.id).version
    kept = record._replace(in_review=False, replaces=(), valid_from=start, version=version)
    store.update([kept])
    for rival in earlier:
        close_into(store, stream, rival, kept, said[0], now)
        keep_remainder(store, stream, rival.id, VectorBatch(), now)
    if later:
        kept = find_by_id(store, stream.id, kept.id) or kept
        close_into(store, stream, kept, later[0], last_said(store, stream, later[0])[0], now)
    return Receipt("superseded", kept.id, not kept.pending, earlier[0].id) if earlier else stored_receipt(kept)


def put_back(store: Store, stream: StreamState, record: Record, now: datetime) -> Receipt:
    """Let an atom wait again. What it had closed is open again."""
    _check_open_atom(record)
    if record.in_review:
        return Receipt("duplicate", record.id, embedded=not record.pending)
    if record.pinned:
        raise ConflictError(f"{record.id} is pinned: take the pin off first")
    if store.load(Absorption, stream=stream.id, id=record.id):
        raise ConflictError(f"{record.id} is part of the summary: go back to an earlier revision first, or forget it")
    closed = [version.id for version in all_versions(store, stream, record) if version.superseded_by == record.id]
    _archive_remainders(store, stream, record, closed, now)
    version = store.advance(stream.id).version
    store.update([each._replace(version=version) for each in bridge_gaps(store, stream, [record])])
    waiting = record._replace(in_review=True, replaces=tuple(closed), supersedes="", version=version)
    store.update([waiting])
    return stored_receipt(waiting)


def _archive_remainders(
    store: Store, stream: StreamState, record: Record, closed: Sequence[str], now: datetime
) -> None:
    """Put away what was kept of the atoms that were closed."""
    groups = {(id, record.id) for id in closed}
    query = ItemQuery(stream.id, kinds=ATOM_KINDS, supported=True, open=True)
    found = [each for each in store.select(query) if not groups.isdisjoint(each.supports)] if groups else []
    if found:
        archive(store, stream, found, now)


def _find_rivals(store: Store, record: Record) -> list[Record]:
    """What it is to close and is still open. Only `update` closes a pinned one."""
    if not record.replaces:
        return []
    found = store.select(ItemQuery(record.stream, ids=record.replaces, open=True))
    return [rival for rival in found if not rival.pinned]


def _check_open_atom(record: Record) -> None:
    if record.kind == "message":
        raise InputError(f"{record.id} is a message: only facts and observations are reviewed")
    if record.retired is not None:
        by = f"closed by {record.superseded_by}" if record.superseded_by else "archived"
        raise ConflictError(f"{record.id} was {by}: there is nothing to review")
