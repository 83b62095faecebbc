"""Leases: who works on something, for how long, and when what failed is tried again.

A lease is part of a row: of a job or a summary, or of a row of its own, for work outside the engine. Whoever holds it
renews it, and may write what was made under it only while the row names them: in one step with the end of the lease.
"""

import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from eunoe.errors import ConflictError, EunoeError, InputError
from eunoe.model.arguments import show, utc_now
from eunoe.model.atom import Record
from eunoe.model.result import Lease as NamedLease
from eunoe.model.result import LeaseStatus
from eunoe.model.scope import Scope
from eunoe.store.codec import dump_json
from eunoe.store.contract import Reading, Store, Writing
from eunoe.store.schema import TABLES, Job, Lease, LeaseRecord, StreamState, SummaryState
from eunoe.text.normalize import fingerprint, one_line

LEASE_VARIABLE: Final = "EUNOE_LEASE"
CLEARED: Final = "the last attempt failed; what it said was cleared by forget"
MAX_ERROR_CHARACTERS: Final = 300

_LEASE_SECONDS: Final = 20.0
"""Longer than a store may be busy, shorter than anybody wants to wait for the work of a killed process."""
_FIRST_PAUSE_SECONDS: Final = 30
_LONGEST_PAUSE_SECONDS: Final = 3600
_RENEWALS: Final = 3
"""How often a lease is renewed in its own time."""
_OWNER_BYTES: Final = 8
Leased = TypeVar("Leased", Job, SummaryState)
_threads = threading.local()
_log = logging.getLogger("eunoe")


def current_owner() -> str:
    """A random name for this thread of this process."""
    known: tuple[int, str] = getattr(_threads, "owner", (0, ""))
    if known[0] != os.getpid():
        known = _threads.owner = (os.getpid(), secrets.token_hex(_OWNER_BYTES))
    return known[1]


def lease_seconds() -> float:
    """Seconds that a lease is held without being renewed."""
    given = os.environ.get(LEASE_VARIABLE, "")
    try:
        seconds = float(given) if given else _LEASE_SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"{LEASE_VARIABLE} is {given!r}: it is a number of seconds above 0")
    return seconds


def take(lease: Lease, owner: str = "") -> Lease:
    """The lease in the hands of this owner from now on, by default this thread."""
    return lease._replace(owner=owner or current_owner(), until=utc_now() + timedelta(seconds=lease_seconds()))


def is_free(lease: Lease, now: datetime, ignore_pause: bool = False) -> bool:
    """Whether it may be taken: nobody holds it, and its pause is over."""
    return (lease.until is None or lease.until < now) and (ignore_pause or lease.retry is None or lease.retry <= now)


def is_held_by_other(lease: Lease, now: datetime) -> bool:
    return lease.owner not in ("", current_owner()) and lease.until is not None and lease.until > now


def lease_after_failure(lease: Lease, error: str, *key: object) -> Lease:
    """The next pause depends on the key to a part, so that many do not come back at once."""
    attempts = lease.attempts + 1
    longest = min(_FIRST_PAUSE_SECONDS << min(attempts - 1, 20), _LONGEST_PAUSE_SECONDS)
    share = fingerprint(*map(str, key), str(attempts))[0] / 1024
    retry = utc_now() + timedelta(seconds=longest * (1 - share))
    return Lease(attempts=attempts, retry=retry, error=one_line(error, MAX_ERROR_CHARACTERS))


def find_held(store: Reading, leased: Leased) -> Leased | None:
    """The job or summary as it stands, if it is still in the hands of whom it was leased to."""
    key = {name: getattr(leased, name) for name in TABLES[type(leased)].key}
    found = store.load(type(leased), **key)
    return found[0] if found and found[0].lease.owner == leased.lease.owner else None


def renew(store: Store, leased: Leased) -> bool:
    """Hold on to a job or summary, in a step of its own; return False if somebody else has it, or it is gone."""

    def renew_held(store: Writing) -> bool:
        held = find_held(store, leased)
        if held:
            store.save([held._replace(lease=take(held.lease, held.lease.owner))])
        return held is not None

    return store.write((), renew_held)


def release(store: Writing, leased: Leased) -> None:
    """Give a job or summary back as if nobody had begun it."""
    if held := find_held(store, leased):
        store.save([held._replace(lease=held.lease._replace(owner="", until=None))])


def fail(store: Writing, leased: Leased, error: str) -> None:
    """Let go of a job or summary that went wrong; it is due again after a pause that grows."""
    if held := find_held(store, leased):
        failed = lease_after_failure(held.lease, error, held.stream, getattr(held, "start", 0))
        store.save([held._replace(lease=failed)])


@contextmanager
def renewing(renew: Callable[[], bool], seconds: float | None = None) -> Iterator[None]:
    """Call `renew` now and then while the block lasts, in a thread of its own, until it says that the lease is lost.
    It lasts so many seconds."""
    done = threading.Event()
    pause = (lease_seconds() if seconds is None else seconds) / _RENEWALS

    def renew_until_done() -> None:
        is_held = True
        while is_held and not done.wait(pause):
            try:
                is_held = renew()
            except EunoeError as error:
                _log.warning("a lease could not be renewed: %s", error)

    thread = threading.Thread(target=renew_until_done, name="eunoe-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


# Named leases: one worker at a time for each name in a scope. Each has an owner of its own, also two of one thread.


def acquire_lease(
    store: Store,
    scope: Scope,
    name: str,
    seconds: float | None,
    ignore_pause: bool,
    data: Mapping[str, Any] | None,
    check: Callable[[Reading, Scope], None],
) -> NamedLease | None:
    """Take a lease that is free, if `check` allows one; without `data` it keeps what it has."""
    seconds = lease_seconds() if seconds is None else seconds

    def acquire(store: Writing) -> NamedLease | None:
        check(store, scope)
        stream = store.create_stream(scope)
        record = _find(store, stream, name) or LeaseRecord(stream.id, name)
        now = utc_now()
        if not is_free(record.lease, now, ignore_pause):
            return None
        lease = record.lease._replace(owner=secrets.token_hex(_OWNER_BYTES), until=now + timedelta(seconds=seconds))
        record = record._replace(data=record.data if data is None else data, lease=lease)
        store.save([record])
        return NamedLease(name, lease.owner, dict(record.data), lease.attempts, seconds)

    return store.write([scope], acquire)


def renew_lease(store: Store, scope: Scope, lease: NamedLease) -> bool:
    until = utc_now() + timedelta(seconds=lease.seconds)
    return _change(store, scope, lease, lambda record: record.lease._replace(until=until))


def release_lease(store: Store, scope: Scope, lease: NamedLease) -> bool:
    """Give a lease back undone. One that failed before stays known."""
    return _change(store, scope, lease, lambda record: _ended(record.lease) if record.lease.attempts else None)


def fail_lease(store: Store, scope: Scope, lease: NamedLease, error: str) -> bool:
    return _change(
        store, scope, lease, lambda record: lease_after_failure(record.lease, error, record.stream, record.name)
    )


def list_leases(store: Store, scope: Scope, prefix: str) -> list[LeaseStatus]:
    def find(store: Reading) -> list[LeaseStatus]:
        stream = store.stream(scope)
        records = store.load(LeaseRecord, stream=stream.id) if stream else []
        now, statuses = utc_now(), list[LeaseStatus]()
        for _, name, data, lease in records:
            if name.startswith(prefix):
                until = lease.until if lease.until is not None and lease.until > now else None
                statuses.append(
                    LeaseStatus(name, dict(data), until is not None, until, lease.attempts, lease.retry, lease.error)
                )
        return statuses

    return store.read([scope], find)


def drop_lease(store: Store, scope: Scope, name: str) -> bool:
    def drop(store: Writing) -> bool:
        stream = store.stream(scope)
        record = _find(store, stream, name) if stream else None
        if record:
            _drop(store, record)
        return record is not None

    return store.write([scope], drop)


def end_lease(store: Writing, stream: StreamState, lease: NamedLease | None) -> None:
    """End a lease in the step that writes what was made under it; raise ConflictError if it is no longer held."""
    if lease is None:
        return
    record = _find(store, stream, lease.name)
    if record is None or record.lease.owner != lease.owner:
        raise ConflictError(
            f"the lease {show(lease.name)} is no longer yours: it ran out and another worker took it, or something it "
            "was about was forgotten. Nothing was written; acquire it again and do the work anew"
        )
    _drop(store, record)


def forget_in_leases(
    store: Writing, stream: int, linked: Iterable[int], removed: Sequence[Record], whole: bool
) -> None:
    """Take what was forgotten out of leases. Whoever works has read what is gone, and may write nothing any more.

    Errors may repeat words. Where a name or data holds an id or the words of what was removed, the lease goes.
    """
    gone = {dump_json(text)[1:-1] for record in removed for text in (record.id, record.text) if text}
    for record in store.load(LeaseRecord, stream=sorted({stream, *linked})):
        held = dump_json([record.name, dict(record.data)])
        if (whole and record.stream == stream) or any(text in held for text in gone):
            _drop(store, record)
        else:
            cleared = record.lease._replace(error=record.lease.error and CLEARED)
            store.save([record._replace(lease=_ended(cleared))])


def _change(store: Store, scope: Scope, lease: NamedLease, change: Callable[[LeaseRecord], Lease | None]) -> bool:
    """Give a lease that is still held another form, or drop it; return False if it is lost."""

    def change_held(store: Writing) -> bool:
        stream = store.stream(scope)
        record = _find(store, stream, lease.name) if stream else None
        if record is None or record.lease.owner != lease.owner:
            return False
        changed = change(record)
        if changed is None:
            _drop(store, record)
        else:
            store.save([record._replace(lease=changed)])
        return True

    return store.write([scope], change_held)


def _find(store: Reading, stream: StreamState, name: str) -> LeaseRecord | None:
    found = store.load(LeaseRecord, stream=stream.id, name=name)
    return found[0] if found else None


def _ended(lease: Lease) -> Lease:
    return lease._replace(owner="", until=None)


def _drop(store: Writing, record: LeaseRecord) -> None:
    store.drop(LeaseRecord, stream=record.stream, name=record.name)
