"""Keys: who may call a server, for which tenant and scopes, and what they may do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from eunoe.errors import AccessError, InputError, NotFoundError
from eunoe.model.arguments import (
    RIGHTS,
    Right,
    check_choices,
    check_id,
    from_micros,
    parse_time,
    show,
    to_micros,
    utc_now,
)
from eunoe.model.scope import Scope, Scopes, parse_scopes
from eunoe.server.state import ServerState, insert

_PREFIX: Final = "eun"
_ID_BYTES: Final = 5
_SECRET_BYTES: Final = 32
"""So many random bytes cannot be guessed: their plain hash is enough."""
_NO_HASH: Final = bytes(32)
_NO_TIME: Final = timedelta()
_MAX_OVERLAP: Final = timedelta(days=30)
_COARSE: Final = timedelta(minutes=1)
"""How exact the time of the last use is: not every request has to write it."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a key is bound to. The secret itself is not kept."""

    id: str
    name: str
    tenant: str = ""
    """Empty for whoever has the whole store."""
    scopes: tuple[Scope, ...] = ()
    """Within the tenant; empty means all of it."""
    rights: tuple[Right, ...] = RIGHTS
    created: datetime | None = None
    expires: datetime | None = None
    revoked: datetime | None = None
    used: datetime | None = field(default=None, compare=False)
    """When it was last used, to the minute."""

    @property
    def is_valid(self) -> bool:
        return self.revoked is None and (self.expires is None or self.expires > utc_now())

    def covers(self, other: Key) -> bool:
        """Whether another key can do no more than this one."""
        is_within = not self.scopes or bool(other.scopes)
        for scope in other.scopes if self.scopes else ():
            is_within = is_within and any(mine.items() <= scope.items() for mine in self.scopes)
        is_tenant = not self.tenant or self.tenant == other.tenant
        return is_within and is_tenant and set(other.rights) <= set(self.rights)


OWNER: Final = Key("owner", "owner of this store")


class Keys:
    """The keys of one server. `by` is who asks: they see and change only keys that can do no more than their own."""

    def __init__(self, state: ServerState) -> None:
        self.state = state
        self._touched: dict[str, datetime] = {}

    def create(
        self,
        name: str,
        *,
        tenant: str = "",
        scopes: Scopes = (),
        rights: Iterable[Right] = RIGHTS,
        expires: datetime | None = None,
        by: Key = OWNER,
    ) -> tuple[Key, str]:
        """Make a key; return it and its text, which is shown this once."""
        _check_admin(by)
        now = utc_now()
        id = base64.b32encode(secrets.token_bytes(_ID_BYTES)).decode().lower()
        bound = tuple(parse_scopes(scopes)) if scopes not in ((), []) else ()  # an empty text is a mistake, not all
        if any("tenant" in scope for scope in bound):
            raise InputError("a key's scopes are within its tenant: name the tenant as such, not in a scope")
        chosen = check_choices(rights, "rights", RIGHTS)
        tenant = Scope(tenant=check_id(tenant, "tenant"))["tenant"] if tenant else ""
        ordered = tuple(right for right in RIGHTS if right in chosen)
        key = Key(id, check_id(name, "name"), tenant, bound, ordered, now, expires)
        if expires and expires <= now:
            raise InputError("expires is in the past: such a key could never be used")
        if not by.covers(key):
            raise AccessError("a key cannot make one that can do more: keep to its tenant, scopes and rights")
        if by.expires and (expires is None or expires > by.expires):
            raise AccessError(f"a key cannot make one that lasts longer: it ends at {by.expires.isoformat()}")
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        with self.state.write() as db:
            insert(
                db,
                "key",
                id=id,
                name=key.name,
                tenant=key.tenant,
                scopes=json.dumps([scope.text for scope in bound]),
                rights=json.dumps(key.rights),
                created=to_micros(now),
                expires=to_micros(expires) if expires else None,
                hash=_hash(secret),
            )
        return key, f"{_PREFIX}_{id}_{secret}"

    def list(self, by: Key = OWNER) -> list[Key]:
        """All keys, newest first, also those that have ended."""
        _check_admin(by)
        with self.state.read() as db:
            keys = [_key(row) for row in db.execute("SELECT * FROM key ORDER BY created DESC, id")]
        return [key for key in keys if by.covers(key)]

    def rotate(self, id: str, *, overlap: timedelta = _NO_TIME, by: Key = OWNER) -> tuple[Key, str]:
        """Give a key a new secret. The old one ends at once, with all sessions and grants, or after the overlap."""
        if not _NO_TIME <= overlap <= _MAX_OVERLAP:
            raise InputError(f"overlap must be from 0 to {_MAX_OVERLAP.days} days")
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        with self.state.write() as db:
            key = _check_found(db, id, by)
            change = "old_hash = hash, old_expires = ?" if overlap else "old_hash = NULL, old_expires = ?"
            until = to_micros(utc_now() + overlap) if overlap else None
            db.execute(f"UPDATE key SET {change}, hash = ? WHERE id = ?", (until, _hash(secret), id))
            if not overlap:
                _end_all(db, id)
        return key, f"{_PREFIX}_{id}_{secret}"

    def revoke(self, id: str, *, by: Key = OWNER) -> Key:
        """End a key for good, and its sessions and grants."""
        with self.state.write() as db:
            key = _check_found(db, id, by)
            db.execute("UPDATE key SET revoked = ? WHERE id = ?", (to_micros(utc_now()), id))
            _end_all(db, id)
        return key

    def find(self, id: str) -> Key | None:
        """A key that is valid, by its id."""
        if id == OWNER.id:
            return OWNER
        row = self._find_row(id)
        return self._used(_key(row)) if row else None

    def verify(self, text: str) -> Key | None:
        """The key that a text is, if it is a valid one. An unknown id takes as long as a wrong secret."""
        prefix, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        row, hash = self._find_row(id), _hash(secret)
        is_new = hmac.compare_digest(hash, row["hash"] if row else _NO_HASH)
        is_old = hmac.compare_digest(hash, (row["old_hash"] if row else None) or _NO_HASH)
        if row is None or prefix != _PREFIX or not (is_new or (is_old and row["old_expires"] > to_micros(utc_now()))):
            return None
        return self._used(_key(row))

    def _find_row(self, id: str) -> sqlite3.Row | None:
        with self.state.read() as db:
            row: sqlite3.Row | None = db.execute("SELECT * FROM key WHERE id = ?", (id,)).fetchone()
        return row

    def _used(self, key: Key) -> Key | None:
        """Note that a key is used, if it is valid."""
        if not key.is_valid:
            return None
        now = utc_now()
        last = self._touched.get(key.id) or key.used
        if last is None or now - last >= _COARSE:
            self._touched[key.id] = now
            self.state.write_later("UPDATE key SET used = ? WHERE id = ?", (to_micros(now), key.id))
        return key


def _check_found(db: sqlite3.Connection, id: str, by: Key) -> Key:
    """A key that is out of reach is told in the same words as one that does not exist."""
    _check_admin(by)
    row = db.execute("SELECT * FROM key WHERE id = ? AND revoked IS NULL", (id,)).fetchone()
    key = _key(row) if row else None
    if key is None or not by.covers(key):
        raise NotFoundError("no such key, or it was revoked")
    return key


def _end_all(db: sqlite3.Connection, id: str) -> None:
    """End what was let in with a key."""
    for table in ("session", "oauth_grant"):
        db.execute(f"DELETE FROM {table} WHERE key = ?", (id,))


def _check_admin(by: Key) -> None:
    if "admin" not in by.rights:
        raise AccessError("the right 'admin' is missing: keys are made and seen by a key that has it")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def _key(row: sqlite3.Row) -> Key:
    scopes = tuple(Scope.stored(text) for text in json.loads(row["scopes"]))
    times = (from_micros(row[name]) if row[name] else None for name in ("created", "expires", "revoked", "used"))
    return Key(row["id"], row["name"], row["tenant"], scopes, tuple(json.loads(row["rights"])), *times)


_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_EXAMPLES: Final = "30d, 12h, 45m, 30s"
_DURATION: Final = re.compile(r"(\d{1,6})([smhdw])")


def parse_duration(text: str, name: str) -> timedelta:
    """
    >>> parse_duration("30d", "expires")
    datetime.timedelta(days=30)
    """
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise InputError(f"cannot read {name} {show(text)}: write {_EXAMPLES} or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def parse_end(text: str, name: str) -> datetime:
    """The moment a duration from now on ends, or one that is given."""
    try:
        if _DURATION.fullmatch(text.strip()):
            return utc_now() + parse_duration(text, name)
        return parse_time(text, name)
    except OverflowError:
        raise InputError(f"{name} {show(text)} is too far away") from None
    except InputError:
        raise InputError(f"cannot read {name} {show(text)}: write {_EXAMPLES}, or a time such as 2030-12-31") from None
