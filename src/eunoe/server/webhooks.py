"""Webhooks: addresses that are told what memory learns, and the log of what was sent to them."""

from __future__ import annotations

import builtins
import secrets
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time
from typing import Final

from eunoe.errors import InputError, NotFoundError
from eunoe.model.arguments import utc_now
from eunoe.server.state import ServerState

MAX_WEBHOOKS: Final = 100
"""Of one tenant."""
_MAX_DELIVERIES: Final = 1000
"""Kept for each webhook."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address, and how far it has been told."""

    id: str
    key: str
    """The id of the key that made it: it is told what that key may read."""
    tenant: str
    url: str
    with_text: bool
    """Whether the words are sent, or only which memories there are."""
    created: datetime
    problem: str
    """Why nothing is sent any more; empty if it works."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to tell an address."""

    number: int
    time: datetime
    items: int
    status: int
    """Of the answer; 0 if there was none."""
    seconds: float
    error: str


class Webhooks:
    """The webhooks of one server, in its own records."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def create(self, key: str, tenant: str, url: str, with_text: bool) -> tuple[Webhook, str]:
        """Make a webhook; return it and the secret that its requests are signed with, which is shown this once."""
        id, secret = secrets.token_hex(8), f"whsec_{secrets.token_urlsafe(32)}"
        with self._state.write() as db:
            count = db.execute("SELECT count(*) FROM webhook WHERE tenant = ?", (tenant,)).fetchone()[0]
            if count >= MAX_WEBHOOKS:
                raise InputError(f"there are {count} webhooks already: delete one first")
            db.execute(
                "INSERT INTO webhook (id, key, tenant, url, secret, with_text, cursor, created) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (id, key, tenant, url, secret, with_text, f"{utc_now().isoformat()}||", time()),
            )
        return self.get(id), secret

    def list(self, tenant: str | None = None) -> list[Webhook]:
        """All of a tenant, oldest first; without a tenant all there are."""
        with self._state.read() as db:
            rows = db.execute("SELECT * FROM webhook WHERE ? IS NULL OR tenant = ? ORDER BY created", (tenant, tenant))
            return [_webhook(row) for row in rows]

    def get(self, id: str, tenant: str | None = None) -> Webhook:
        with self._state.read() as db:
            return _webhook(_find(db, id, tenant))

    def secret(self, id: str) -> str:
        with self._state.read() as db:
            return str(_find(db, id, None)["secret"])

    def cursor(self, id: str) -> str:
        with self._state.read() as db:
            return str(_find(db, id, None)["cursor"])

    def delete(self, id: str, tenant: str | None = None) -> None:
        with self._state.write() as db:
            _find(db, id, tenant)
            db.execute("DELETE FROM webhook WHERE id = ?", (id,))

    def note_delivery(
        self, id: str, items: int, status: int, seconds: float, error: str = "", cursor: str = ""
    ) -> None:
        """Write an attempt down; with a cursor, that everything up to there has been told."""
        with self._state.write() as db:
            last = db.execute("SELECT max(number) FROM delivery WHERE webhook = ?", (id,)).fetchone()[0] or 0
            row = (id, last + 1, time(), items, status, seconds, error)
            db.execute("INSERT INTO delivery VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            db.execute("DELETE FROM delivery WHERE webhook = ? AND number <= ?", (id, last + 1 - _MAX_DELIVERIES))
            if cursor:
                db.execute("UPDATE webhook SET cursor = ?, problem = '' WHERE id = ?", (cursor, id))

    def stop(self, id: str, problem: str) -> None:
        """Send nothing more until somebody resumes it."""
        with self._state.write() as db:
            db.execute("UPDATE webhook SET problem = ? WHERE id = ?", (problem, id))

    def resume(self, id: str, tenant: str | None = None) -> Webhook:
        """Go on where it stopped."""
        with self._state.write() as db:
            _find(db, id, tenant)
            db.execute("UPDATE webhook SET problem = '' WHERE id = ?", (id,))
        return self.get(id)

    def deliveries(
        self, id: str, tenant: str | None, limit: int, after: int = 0
    ) -> tuple[builtins.list[Delivery], str]:
        """The log, newest first, and where to read on."""
        with self._state.read() as db:
            _find(db, id, tenant)
            rows = db.execute(
                "SELECT * FROM delivery WHERE webhook = ? AND (? = 0 OR number < ?) ORDER BY number DESC LIMIT ?",
                (id, after, after, limit + 1),
            ).fetchall()
        return [_delivery(row) for row in rows[:limit]], str(rows[limit - 1]["number"]) if len(rows) > limit else ""


def _find(db: sqlite3.Connection, id: str, tenant: str | None) -> sqlite3.Row:
    row: sqlite3.Row | None = db.execute("SELECT * FROM webhook WHERE id = ?", (id,)).fetchone()
    if row is None or (tenant is not None and row["tenant"] != tenant):
        raise NotFoundError("no such webhook")
    return row


def _webhook(row: sqlite3.Row) -> Webhook:
    created = datetime.fromtimestamp(row["created"], UTC)
    return Webhook(row["id"], row["key"], row["tenant"], row["url"], bool(row["with_text"]), created, row["problem"])


def _delivery(row: sqlite3.Row) -> Delivery:
    moment = datetime.fromtimestamp(row["time"], UTC)
    return Delivery(row["number"], moment, row["items"], row["status"], row["seconds"], row["error"])
