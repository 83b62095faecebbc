"""The audit log: who changed how much of what, when and by which way. It holds no memories and none of their ids."""

from __future__ import annotations

import json
import logging
import sqlite3
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from eunoe.errors import AccessError, InputError
from eunoe.memory import Change
from eunoe.model.arguments import from_micros, to_micros, utc_now
from eunoe.model.scope import Scope
from eunoe.server.keys import Key
from eunoe.server.state import ServerState, insert

Via = Literal["http", "mcp", "inspector", "oauth", "cli"]
AuditOutcome = Literal["done", "refused", "failed"]
_CLEANING_INTERVAL: Final = timedelta(hours=1)
_NO_END: Final = 2**63 - 1
_MAX_SCOPES: Final = 20
"""Of one entry: a forgetting may name thousands."""
_PLAIN: Final = ("action", "key", "tenant", "count", "outcome", "via", "request_id")
_log = logging.getLogger("eunoe.server")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change, or one that was refused."""

    action: str
    """The verb, or the name of the route."""
    key: str
    """The id of the key with which it was asked for."""
    tenant: str = ""
    scopes: tuple[Scope, ...] = ()
    count: int = 0
    """How many items it changed."""
    outcome: AuditOutcome = "done"
    via: Via = "http"
    request_id: str = ""
    time: datetime = field(default_factory=utc_now)
    id: int = 0
    """Counted within the tenant: it says nothing about others."""


class Audit:
    """The log of one server, shared by all its processes."""

    def __init__(self, state: ServerState, days: int = 365) -> None:
        self._state = state
        self._kept = timedelta(days=days)
        self._cleaned: datetime | None = None

    def write(self, entry: AuditEntry) -> None:
        """Add an entry. What it tells of has happened already: a failure is logged, and changes nothing."""
        row: dict[str, Any] = {name: getattr(entry, name) for name in _PLAIN}
        row["time"] = to_micros(entry.time)
        row["scopes"] = json.dumps([scope.text for scope in entry.scopes[:_MAX_SCOPES]])
        try:
            with self._state.write(is_durable=False) as db:
                last = db.execute("SELECT max(number) FROM audit WHERE tenant = ?", (entry.tenant,)).fetchone()[0]
                insert(db, "audit", number=(last or 0) + 1, **row)
                now = utc_now()
                if self._cleaned is None or now - self._cleaned > _CLEANING_INTERVAL:
                    self._cleaned = now
                    db.execute("DELETE FROM audit WHERE time < ?", (to_micros(now - self._kept),))
        except sqlite3.Error as error:
            _log.error("the audit log lacks a %s by %s: %s", entry.action, entry.key, error)

    def list(self, by: Key, *, limit: int = 100, after: str = "") -> tuple[list[AuditEntry], str]:
        """A page of entries, newest first, and the cursor of the next one. A tenant sees its own."""
        if "admin" not in by.rights:
            raise AccessError("the right 'admin' is missing: the audit log is for keys that have it")
        if by.scopes:
            raise AccessError("the audit log is about a whole tenant: use a key without scopes")
        if after and not (after.isascii() and after.isdecimal()):
            raise InputError("after is no cursor: pass the `next` of the page before")
        place, owner = ("number", "tenant = ?") if by.tenant else ("id", "? = ''")
        last = min(int(after or _NO_END), _NO_END)
        with self._state.read() as db:
            query = f"SELECT * FROM audit WHERE {owner} AND {place} < ? ORDER BY {place} DESC LIMIT ?"
            rows = db.execute(query, (by.tenant, last, limit + 1)).fetchall()
        entries = [
            AuditEntry(
                scopes=tuple(Scope.stored(text) for text in json.loads(row["scopes"])),
                time=from_micros(row["time"]),
                id=row[place],
                **{name: row[name] for name in _PLAIN},
            )
            for row in rows[:limit]
        ]
        return entries, str(entries[-1].id) if len(rows) > limit else ""


class AuditTrail:
    """The entries of one request. Its memory writes them, so that no route can forget to."""

    def __init__(self, audit: Audit, key: Key, via: Via, request_id: str = "") -> None:
        self._audit = audit
        self._key = key
        self._via: Via = via
        self._request_id = request_id
        self.is_empty = True

    def __call__(self, change: Change) -> None:
        """Note what a memory was made to change."""
        outcome: AuditOutcome = "done"
        if change.error:
            outcome = "refused" if isinstance(change.error, AccessError) else "failed"
        self.note(change.verb, change.scopes, change.count, outcome)

    def note(self, action: str, scopes: tuple[Scope, ...] = (), count: int = 0, outcome: AuditOutcome = "done") -> None:
        tenants = {scope.pairs.get("tenant", "") for scope in scopes}
        tenant = self._key.tenant or (tenants.pop() if len(tenants) == 1 else "")
        self.is_empty = False
        self._audit.write(AuditEntry(action, self._key.id, tenant, scopes, count, outcome, self._via, self._request_id))
