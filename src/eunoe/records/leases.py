"""Leases: who works on a job or a summary, for how long, and when a failed one is tried again."""

import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TypeVar

from eunoe.errors import EunoeError, InputError
from eunoe.model.arguments import utc_now
from eunoe.store.contract import Reading, Store, Writing
from eunoe.store.schema import TABLES, Job, Lease, SummaryState
from eunoe.text.normalize import fingerprint, one_line

LEASE_VARIABLE = "EUNOE_LEASE"
CLEARED = "the last attempt failed; what it said was cleared by forget"
MAX_ERROR_CHARACTERS = 300

_LEASE_SECONDS = 20.0
"""Longer than a store may be busy, shorter than anybody wants to wait for the work of a killed process."""
_FIRST_PAUSE_SECONDS = 30
_LONGEST_PAUSE_SECONDS = 3600
_RENEWALS = 3
"""How often a lease is renewed in its own time."""
Leased = TypeVar("Leased", Job, SummaryState)
_threads = threading.local()
_log = logging.getLogger("eunoe")


def current_owner() -> str:
    """A random name for this thread of this process."""
    known: tuple[int, str] = getattr(_threads, "owner", (0, ""))
    if known[0] != os.getpid():
        known = _threads.owner = (os.getpid(), secrets.token_hex(8))
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


def find_held(store: Reading, leased: Leased) -> Leased | None:
    """The job or summary as it stands, if it is still in the hands of whom it was leased to."""
    key = {name: getattr(leased, name) for name in TABLES[type(leased)].key}
    found = store.load(type(leased), **key)
    return found[0] if found and found[0].lease.owner == leased.lease.owner else None


def renew(store: Writing, leased: Leased) -> bool:
    """Hold on to a job or summary; return False if somebody else has it, or it is gone."""
    held = find_held(store, leased)
    if held:
        store.save([held._replace(lease=take(held.lease, held.lease.owner))])
    return held is not None


def renew_in_step(store: Store, leased: Leased) -> bool:
    """`renew` in a step of its own."""

    def renew_lease(store: Writing) -> bool:
        return renew(store, leased)

    return store.write((), renew_lease)


def release(store: Writing, leased: Leased) -> None:
    """Give a job or summary back as if nobody had begun it."""
    if held := find_held(store, leased):
        store.save([held._replace(lease=held.lease._replace(owner="", until=None))])


def fail(store: Writing, leased: Leased, error: str) -> None:
    """Let go of a job or summary that went wrong; it is due again after a pause that grows."""
    if held := find_held(store, leased):
        failed = lease_after_failure(held.lease, error, held.stream, getattr(held, "start", 0))
        store.save([held._replace(lease=failed)])


def lease_after_failure(lease: Lease, error: str, *key: object) -> Lease:
    """The next pause depends on the key to a part, so that many do not come back at once."""
    attempts = lease.attempts + 1
    longest = min(_FIRST_PAUSE_SECONDS << min(attempts - 1, 20), _LONGEST_PAUSE_SECONDS)
    share = fingerprint(*map(str, key), str(attempts))[0] / 1024
    retry = utc_now() + timedelta(seconds=longest * (1 - share))
    return Lease(attempts=attempts, retry=retry, error=one_line(error, MAX_ERROR_CHARACTERS))


def is_free(lease: Lease, now: datetime, ignore_pause: bool = False) -> bool:
    """Whether it may be taken: nobody holds it, and its pause is over."""
    return (lease.until is None or lease.until < now) and (ignore_pause or lease.retry is None or lease.retry <= now)


def is_held_by_other(lease: Lease, now: datetime) -> bool:
    return lease.owner not in ("", current_owner()) and lease.until is not None and lease.until > now


@contextmanager
def renewing(renew: Callable[[], bool], seconds: float | None = None) -> Iterator[None]:
    """Call `renew` now and then while the block lasts, in a thread of its own, until it says that the lease is lost.
    It lasts so many seconds."""
    done = threading.Event()
    pause = (lease_seconds() if seconds is None else seconds) / _RENEWALS
    thread = threading.Thread(target=_renew_until, args=(renew, done, pause), name="eunoe-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _renew_until(renew: Callable[[], bool], done: threading.Event, pause: float) -> None:
    is_held = True
    while is_held and not done.wait(pause):
        try:
            is_held = renew()
        except EunoeError as error:
            _log.warning("a lease could not be renewed: %s", error)
