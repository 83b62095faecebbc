"""Leases: so that several workers share the work in a scope, and each piece is done once."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from eunoe.errors import InputError
from eunoe.memory.groups import Group
from eunoe.model.arguments import check_flag, check_id, check_metadata, check_name, check_seconds, check_text, show
from eunoe.model.result import Lease, LeaseStatus, check_lease
from eunoe.model.scope import ScopeLike
from eunoe.records import named_leases
from eunoe.records.leases import renewing

MAX_LEASE_SECONDS = 7 * 24 * 3600.0
"""Whoever needs longer renews it: until then nobody goes on with the work of a killed process."""


class Leases(Group):
    """Who works on what in a scope. A lease that nobody renews runs out, so that a killed worker holds up nobody."""

    def acquire(
        self,
        scope: ScopeLike,
        name: str,
        *,
        seconds: float | None = None,
        ignore_pause: bool = False,
        data: Mapping[str, Any] | None = None,
    ) -> Lease | None:
        """Take the lease of this name; None if somebody holds it, or if it failed and its pause is not over.

        Write what the work gives with `lease=`: it is written only while the lease is still yours, and ends it.

        Args:
            seconds: how long it lasts without being renewed; 20, or what EUNOE_LEASE says.
            ignore_pause: take it even if it failed a moment ago.
            data: what is kept with it, such as ids; no words, since forgetting looks for whole texts only.

        >>> with eunoe.open(":memory:") as memory:
        ...     lease = memory.leases.acquire("user=anna", "diary")
        ...     second = memory.leases.acquire("user=anna", "diary")
        ...     _ = memory.remember_many("user=anna", ["Anna rests on Sundays."], lease=lease)
        ...     second, memory.leases.list("user=anna")
        (None, [])
        """
        owner, checked = self._guard.scope(scope, "write"), check_id(name, "name")
        wanted = None if seconds is None else _check_lease_seconds(seconds)
        kept = None if data is None else dict(check_metadata(data, "data"))
        flag = check_flag(ignore_pause, "ignore_pause")
        run, store = self._engine.run, self._engine.store
        return run(named_leases.acquire_lease, store, owner, checked, wanted, flag, kept)

    def renew(self, scope: ScopeLike, lease: Lease) -> bool:
        """Hold on to a lease for its seconds from now on; False if it is no longer yours."""
        owner = self._guard.scope(scope, "write")
        return self._engine.run(named_leases.renew_lease, self._engine.store, owner, check_lease(lease))

    def release(self, scope: ScopeLike, lease: Lease) -> bool:
        """Give a lease back undone, so that anybody can take it at once; False if it is no longer yours."""
        owner = self._guard.scope(scope, "write")
        return self._engine.run(named_leases.release_lease, self._engine.store, owner, check_lease(lease))

    def fail(self, scope: ScopeLike, lease: Lease, error: str) -> bool:
        """Say that the work failed: it may be tried again after a pause that grows with every attempt.

        Return False if the lease is no longer yours. `list` and `status` show it until the work is done.
        """
        owner, said = self._guard.scope(scope, "write"), check_text(error, "error")
        return self._engine.run(named_leases.fail_lease, self._engine.store, owner, check_lease(lease), said)

    def list(self, scope: ScopeLike, prefix: str = "") -> builtins.list[LeaseStatus]:
        """Return what is held or has failed, of names that begin so, in the order of the names."""
        owner, start = self._guard.scope(scope, "read"), check_name(prefix, "prefix")
        return self._engine.run(named_leases.list_leases, self._engine.store, owner, start)

    def drop(self, scope: ScopeLike, name: str) -> bool:
        """End a lease, whoever holds it, and forget that it failed; False if there was none."""
        owner, checked = self._guard.scope(scope, "write"), check_id(name, "name")
        return self._engine.run(named_leases.drop_lease, self._engine.store, owner, checked)

    def renewing(self, scope: ScopeLike, lease: Lease) -> AbstractContextManager[None]:
        """Renew a lease in a thread of its own while the block lasts, or until it is lost."""
        owner, held = self._guard.scope(scope, "write"), check_lease(lease)
        return renewing(lambda: self.renew(owner, held), held.seconds)


def _check_lease_seconds(seconds: object) -> float:
    checked = check_seconds(seconds, "seconds")
    if not 0 < checked <= MAX_LEASE_SECONDS:
        raise InputError(f"seconds is {show(seconds)}: give a number above 0, up to {MAX_LEASE_SECONDS:,.0f}")
    return checked
