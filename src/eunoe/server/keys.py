"""Keys: who may call a server, for which tenant and scopes, and what they may do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from eunoe.errors import InputError, NotFoundError
from eunoe.model.choices import RIGHTS, Right
from eunoe.model.scope import Scope, Scopes, parse_scopes
from eunoe.model.time import utc_now
from eunoe.model.validation import check_choices, check_id, check_name
from eunoe.server.state import ServerState

_PREFIX: Final = "eun"
_ID_BYTES: Final = 5
_SECRET_BYTES: Final = 32
"""So many random bytes cannot be guessed: their plain hash is enough."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a key is bound to. The secret itself is not kept."""

    id: str
    name: str
    tenant: str = ""
    """Empty only for the owner of the store."""
    scopes: tuple[Scope, ...] = ()
    """Within the tenant; empty means all of it."""
    rights: tuple[Right, ...] = RIGHTS
    created: datetime | None = None
    expires: datetime | None = None
    revoked: datetime | None = None

    @property
    def is_valid(self) -> bool:
        return self.revoked is None and (self.expires is None or self.expires > utc_now())


OWNER: Final = Key("owner", "owner of this store")


class Keys:
    """The keys of one server."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def create(
        self,
        name: str,
        *,
        tenant: str,
        scopes: Scopes = (),
        rights: Iterable[Right] = RIGHTS,
        expires: datetime | None = None,
    ) -> tuple[Key, str]:
        """Make a key; return it and its text, which is shown this once."""
        bound = tuple(parse_scopes(scopes)) if scopes else ()
        chosen = tuple(check_choices(rights, "rights", RIGHTS))
        if not chosen:
            raise InputError(f"rights is empty: name some of {', '.join(RIGHTS)}")
        Scope(tenant=check_id(tenant, "tenant"))
        id = base64.b32encode(secrets.token_bytes(_ID_BYTES)).decode().lower()
        key = Key(id, check_name(name, "name"), tenant, bound, chosen, utc_now(), expires)
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        with self._state.write() as db:
            row = _row(key) | {"hash": _hash(secret)}
            db.execute(f"INSERT INTO key ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
        return key, f"{_PREFIX}_{id}_{secret}"

    def list(self) -> list[Key]:
        """All keys, newest first."""
        with self._state.read() as db:
            return [_key(row) for row in db.execute("SELECT * FROM key ORDER BY created DESC, id")]

    def rotate(self, id: str) -> tuple[Key, str]:
        """Give a key a new secret; the old one ends at once."""
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        with self._state.write() as db:
            changed = db.execute("UPDATE key SET hash = ? WHERE id = ? AND revoked IS NULL", (_hash(secret), id))
            if not changed.rowcount:
                raise NotFoundError("no such key, or it was revoked")
            key = _key(db.execute("SELECT * FROM key WHERE id = ?", (id,)).fetchone())
        return key, f"{_PREFIX}_{id}_{secret}"

    def revoke(self, id: str) -> None:
        with self._state.write() as db:
            now = utc_now().isoformat()
            if not db.execute("UPDATE key SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, id)).rowcount:
                raise NotFoundError("no such key, or it was revoked")

    def verify(self, text: str) -> Key | None:
        """The key that a text is, if it is a valid one. An unknown id takes as long as a wrong secret."""
        prefix, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        with self._state.read() as db:
            row = db.execute("SELECT * FROM key WHERE id = ?", (id,)).fetchone()
        is_same = hmac.compare_digest(_hash(secret), row["hash"] if row else bytes(32))
        key = _key(row) if row else None
        return key if key and is_same and prefix == _PREFIX and key.is_valid else None


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def _row(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "tenant": key.tenant,
        "scopes": json.dumps([scope.text for scope in key.scopes]),
        "rights": json.dumps(key.rights),
        "created": key.created.isoformat() if key.created else None,
        "expires": key.expires.isoformat() if key.expires else None,
        "revoked": key.revoked.isoformat() if key.revoked else None,
    }


def _key(row: sqlite3.Row) -> Key:
    times = {
        name: datetime.fromisoformat(row[name]) if row[name] else None for name in ("created", "expires", "revoked")
    }
    scopes = tuple(Scope.stored(text) for text in json.loads(row["scopes"]))
    return Key(row["id"], row["name"], row["tenant"], scopes, tuple(json.loads(row["rights"])), **times)
