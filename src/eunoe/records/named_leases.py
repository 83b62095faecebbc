"""Leases of work outside the engine: one worker at a time for each name in a scope.

Every lease has an owner of its own, also two of the same thread. What a worker writes with its lease is written only
if nobody else has got it meanwhile, in the same step.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from eunoe.errors import ConflictError
from eunoe.model.arguments import show, utc_now
from eunoe.model.atom import Record
from eunoe.model.result import Lease, LeaseStatus
from eunoe.model.scope import Scope
from eunoe.records import leases
from eunoe.records.log import linked_streams
from eunoe.records.streams import check_not_incognito
from eunoe.store import schema
from eunoe.store.codec import dump_json
from eunoe.store.contract import Reading, Store, Writing
from eunoe.store.schema import LeaseRecord, StreamState

_OWNER_BYTES = 8


def acquire_lease(
    store: Store, scope: Scope, name: str, seconds: float | None, ignore_pause: bool, data: Mapping[str, Any] | None
) -> Lease | None:
    """Take a lease that is free; without `data` it keeps what it has."""
    seconds = leases.lease_seconds() if seconds is None else seconds

    def acquire(store: Writing) -> Lease | None:
        check_not_incognito(store, scope)
        stream = store.create_stream(scope)
        record = _find(store, stream, name) or LeaseRecord(stream.id, name)
        now = utc_now()
        if not leases.is_free(record.lease, now, ignore_pause):
            return None
        record = record._replace(
            data=record.data if data is None else data,
            lease=_extended(record.lease._replace(owner=secrets.token_hex(_OWNER_BYTES)), now, seconds),
        )
        store.save([record])
        return Lease(name, record.lease.owner, dict(record.data), record.lease.attempts, seconds)

    return store.write([scope], acquire)


def renew_lease(store: Store, scope: Scope, lease: Lease) -> bool:
    def renew(store: Writing) -> bool:
        record = _find_held(store, store.stream(scope), lease)
        if record:
            store.save([record._replace(lease=_extended(record.lease, utc_now(), lease.seconds))])
        return record is not None

    return store.write([scope], renew)


def release_lease(store: Store, scope: Scope, lease: Lease) -> bool:
    """Give a lease back undone. One that failed before stays known."""

    def release(store: Writing) -> bool:
        record = _find_held(store, store.stream(scope), lease)
        if record and record.lease.attempts:
            store.save([_ended(record)])
        elif record:
            _drop(store, record)
        return record is not None

    return store.write([scope], release)


def fail_lease(store: Store, scope: Scope, lease: Lease, error: str) -> bool:
    def fail(store: Writing) -> bool:
        record = _find_held(store, store.stream(scope), lease)
        if record:
            failed = leases.lease_after_failure(record.lease, error, record.stream, record.name)
            store.save([record._replace(lease=failed)])
        return record is not None

    return store.write([scope], fail)


def list_leases(store: Store, scope: Scope, prefix: str) -> list[LeaseStatus]:
    def find(store: Reading) -> list[LeaseStatus]:
        stream = store.stream(scope)
        records = store.load(LeaseRecord, stream=stream.id) if stream else []
        now = utc_now()
        return [_status(record, now) for record in records if record.name.startswith(prefix)]

    return store.read([scope], find)


def drop_lease(store: Store, scope: Scope, name: str) -> bool:
    def drop(store: Writing) -> bool:
        stream = store.stream(scope)
        record = _find(store, stream, name) if stream else None
        if record:
            _drop(store, record)
        return record is not None

    return store.write([scope], drop)


def end_lease(store: Writing, stream: StreamState, lease: Lease | None) -> None:
    """End a lease in the step that writes what was made under it; raise ConflictError if it is no longer held."""
    if lease is None:
        return
    record = _find_held(store, stream, lease)
    if record is None:
        raise ConflictError(
            f"the lease {show(lease.name)} is no longer yours: it ran out and another worker took it, or something it "
            "was about was forgotten. Nothing was written; acquire it again and do the work anew"
        )
    _drop(store, record)


def forget_in_leases(store: Writing, stream: StreamState, removed: Sequence[Record], whole: bool) -> None:
    """Take what was forgotten out of leases. Whoever works has read what is gone, and may write nothing any more.

    Errors may repeat words. Where a name or data holds an id or the words of what was removed, the lease goes.
    """
    gone = {dump_json(text)[1:-1] for record in removed for text in (record.id, record.text) if text}
    for record in store.load(LeaseRecord, stream=sorted({stream.id, *linked_streams(store, stream.id)})):
        held = dump_json([record.name, dict(record.data)])
        if (whole and record.stream == stream.id) or any(text in held for text in gone):
            _drop(store, record)
        else:
            cleared = record.lease._replace(error=record.lease.error and leases.CLEARED)
            store.save([_ended(record._replace(lease=cleared))])


def _find(store: Reading, stream: StreamState, name: str) -> LeaseRecord | None:
    found = store.load(LeaseRecord, stream=stream.id, name=name)
    return found[0] if found else None


def _find_held(store: Reading, stream: StreamState | None, lease: Lease) -> LeaseRecord | None:
    record = _find(store, stream, lease.name) if stream else None
    return record if record and record.lease.owner == lease.owner else None


def _extended(lease: schema.Lease, now: datetime, seconds: float) -> schema.Lease:
    return lease._replace(until=now + timedelta(seconds=seconds))


def _ended(record: LeaseRecord) -> LeaseRecord:
    return record._replace(lease=record.lease._replace(owner="", until=None))


def _drop(store: Writing, record: LeaseRecord) -> None:
    store.drop(LeaseRecord, stream=record.stream, name=record.name)


def _status(record: LeaseRecord, now: datetime) -> LeaseStatus:
    lease = record.lease
    is_held = lease.until is not None and lease.until > now
    until = lease.until if is_held else None
    return LeaseStatus(record.name, dict(record.data), is_held, until, lease.attempts, lease.retry, lease.error)
