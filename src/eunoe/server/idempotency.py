"""Requests that are done once, however often they come. Fingerprints and receipts are kept, never what was sent."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection
from typing import Final, NamedTuple

from eunoe.errors import ConflictError, InputError
from eunoe.memory import lease_seconds
from eunoe.server.state import ServerState

KEEP_SECONDS: Final = 24 * 3600


class IdempotencyMismatchError(InputError):
    """An idempotency key came with another request before."""


class InProgressError(ConflictError):
    """The same request is still being worked on."""


class Attempt(NamedTuple):
    """A request that is being worked on, or the reply that it had."""

    caller: str
    key: bytes
    id: str
    created: float
    """When the first attempt began."""
    reply: str | None = None


class Idempotency:
    """The requests of the last day that came with a key. Threads and processes may share them."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.lease_seconds = lease_seconds()
        """A request that has not been heard of for so long has died, and may be repeated."""

    def begin(self, caller: str, key: bytes, request: bytes) -> Attempt:
        """Take a request in hand, or find the reply that it had. Raise InProgressError while somebody else has it."""
        now, id = time.time(), secrets.token_hex(8)
        with self._state.write() as db:
            db.execute("DELETE FROM idempotency WHERE created < ?", (now - KEEP_SECONDS,))
            row = db.execute("SELECT * FROM idempotency WHERE caller = ? AND key = ?", (caller, key)).fetchone()
            if row and row["request"] != request:
                raise IdempotencyMismatchError("this Idempotency-Key came with another request: take a new one")
            if row and row["reply"] is not None:
                return Attempt(caller, key, id, row["created"], row["reply"])
            if row and row["lease"] > now:
                raise InProgressError("the same request is still being worked on")
            created = row["created"] if row else now
            values = (caller, key, request, id, now + self.lease_seconds, created)
            db.execute("INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?, ?, ?, NULL)", values)
        return Attempt(caller, key, id, created)

    def renew(self, attempt: Attempt) -> None:
        """Say that the request is still being worked on."""
        self._set("lease", time.time() + self.lease_seconds, attempt)

    def finish(self, attempt: Attempt, reply: str) -> None:
        """Keep the reply for whoever repeats the request."""
        self._set("reply", reply, attempt)

    def give_up(self, attempt: Attempt) -> None:
        """Let the request be repeated: it did nothing."""
        with self._state.write() as db:
            db.execute("DELETE FROM idempotency WHERE caller = ? AND key = ? AND attempt = ?", attempt[:3])

    def forget(self, ids: Collection[str]) -> None:
        """Drop the replies that name one of these ids: the same request is then a new one."""
        gone = {*ids}
        with self._state.read() as db:
            rows = db.execute("SELECT caller, key, attempt, reply FROM idempotency WHERE reply IS NOT NULL").fetchall()
        named = [row for row in rows if gone & {receipt["id"] for receipt in json.loads(row["reply"])["receipts"]}]
        for row in named:
            self.give_up(Attempt(row["caller"], row["key"], row["attempt"], 0.0))
        if named:
            self._state.scrub()

    def _set(self, column: str, value: str | float, attempt: Attempt) -> None:
        condition = "caller = ? AND key = ? AND attempt = ?"
        with self._state.write() as db:
            db.execute(f"UPDATE idempotency SET {column} = ? WHERE {condition}", (value, *attempt[:3]))
