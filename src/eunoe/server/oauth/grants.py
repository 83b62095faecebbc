"""Grants: that a client may act as a key. Codes and tokens are kept as hashes; one used twice ends its grant."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import sqlite3
from dataclasses import dataclass, replace
from typing import Final, Literal

from eunoe.model.arguments import Right, to_micros, utc_now
from eunoe.server.keys import Key, Keys
from eunoe.server.oauth.errors import OAuthError
from eunoe.server.oauth.requests import AuthorizationRequest
from eunoe.server.oauth.resources import Resources
from eunoe.server.state import ServerState

ACCESS_PREFIX: Final = "euna_"
_PREFIXES: Final = {"access": ACCESS_PREFIX, "refresh": "eunr_", "code": "eunc_"}
_SECRET_BYTES: Final = 32
_SECOND: Final = 1_000_000
_CODE_SECONDS: Final = 120
ACCESS_SECONDS: Final = 3600
_REFRESH_SECONDS: Final = 30 * 24 * 3600
"""From the last use on: a client that is not used for so long has to ask again."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a client gets for a code or a refresh token."""

    access: str
    refresh: str
    rights: tuple[Right, ...]


class Grants:
    """The grants of one server. Each ends with its key."""

    def __init__(self, state: ServerState, keys: Keys, resources: Resources, owner_token: str) -> None:
        self._state = state
        self._keys = keys
        self._resources = resources
        self._secret = hmac.digest(owner_token.encode(), b"oauth grant", "sha256")

    def create_code(self, request: AuthorizationRequest, rights: tuple[Right, ...]) -> str:
        """Note that a person agreed, and return the code that the client exchanges for tokens."""
        code, id, now = _secret("code"), secrets.token_hex(8), _now()
        with self._state.write() as db:
            _clean(db, now)
            ends = now + _CODE_SECONDS * _SECOND
            grant = (id, request.client, request.key, json.dumps(rights), request.resource, now, ends)
            db.execute("INSERT INTO oauth_grant VALUES (?, ?, ?, ?, ?, ?, ?)", grant)
            proof = (self._hash(code), id, request.redirect_uri, request.challenge, ends)
            db.execute("INSERT INTO oauth_code VALUES (?, ?, ?, ?, ?, 0)", proof)
            db.execute("UPDATE oauth_client SET used = ? WHERE id = ?", (now, request.client))
        return code

    def redeem_code(self, code: str, client: str, redirect_uri: str, verifier: str, resource: str) -> Tokens:
        """Exchange a code for tokens, once."""
        tokens = None
        with self._state.write() as db:
            row = self._find(db, "oauth_code", code, client)
            is_same = hmac.compare_digest(_challenge(verifier), row["challenge"])
            if row["is_used"]:
                db.execute("DELETE FROM oauth_grant WHERE id = ?", (row["grant_id"],))
            elif is_same and row["redirect_uri"] == redirect_uri and row["expires"] > _now():
                self._check_resource(row, resource)
                tokens = self._issue(db, row, tuple(json.loads(row["grant_rights"])))
            db.execute("UPDATE oauth_code SET is_used = 1 WHERE hash = ?", (row["hash"],))
        if tokens is None:
            raise _refused()
        return tokens

    def refresh(self, token: str, client: str, rights: tuple[Right, ...] | None, resource: str) -> Tokens:
        """Exchange a refresh token for new tokens, once. Used again it was stolen from somebody: the grant ends."""
        tokens = None
        with self._state.write() as db:
            row = self._find(db, "oauth_token", token, client, "refresh")
            if row["is_used"]:
                db.execute("DELETE FROM oauth_grant WHERE id = ?", (row["grant_id"],))
            elif row["expires"] > _now():
                self._check_resource(row, resource)
                granted = tuple(json.loads(row["grant_rights"]))
                if not set(rights or granted) <= set(granted):
                    raise OAuthError("invalid_scope", "more was asked for than was granted")
                db.execute("UPDATE oauth_token SET is_used = 1 WHERE hash = ?", (row["hash"],))
                tokens = self._issue(db, row, rights or granted)
        if tokens is None:
            raise _refused()
        return tokens

    def find_key(self, token: str, path: str) -> Key | None:
        """What an access token may do for a path: no more than its key, and no more than was granted."""
        with self._state.read() as db:
            row = db.execute(f"{_SELECT.format('oauth_token')} AND kind = 'access'", (self._hash(token),)).fetchone()
        if row is None or row["expires"] <= _now() or not self._resources.covers(row["resource"], path):
            return None
        key = self._keys.find(row["key"])
        rights = [right for right in json.loads(row["rights"]) if key and right in key.rights]
        return replace(key, rights=tuple(rights)) if key and rights else None

    def revoke(self, token: str, client: str) -> str:
        """End the grant that a token belongs to; return the id of its key, or nothing."""
        with self._state.write() as db:
            row = db.execute(_SELECT.format("oauth_token"), (self._hash(token),)).fetchone()
            if row is None or row["client"] != client:
                return ""
            db.execute("DELETE FROM oauth_grant WHERE id = ?", (row["grant_id"],))
        return str(row["key"])

    def _find(self, db: sqlite3.Connection, table: str, secret: str, client: str, kind: str = "") -> sqlite3.Row:
        row: sqlite3.Row | None = db.execute(_SELECT.format(table), (self._hash(secret),)).fetchone()
        if row is None or row["client"] != client or (kind and row["kind"] != kind):
            raise _refused()
        return row

    def _check_resource(self, row: sqlite3.Row, resource: str) -> None:
        if resource and self._resources.check(resource) != row["resource"]:
            raise OAuthError("invalid_target", "another resource was asked for than was granted")

    def _issue(self, db: sqlite3.Connection, row: sqlite3.Row, rights: tuple[Right, ...]) -> Tokens:
        access, refresh, now = _secret("access"), _secret("refresh"), _now()
        ends = now + _REFRESH_SECONDS * _SECOND
        _clean(db, now)
        for kind, text, expires in (("access", access, now + ACCESS_SECONDS * _SECOND), ("refresh", refresh, ends)):
            values = (self._hash(text), row["grant_id"], kind, json.dumps(rights), expires)
            db.execute("INSERT INTO oauth_token VALUES (?, ?, ?, ?, ?, 0)", values)
        db.execute("UPDATE oauth_grant SET expires = ? WHERE id = ?", (ends, row["grant_id"]))
        db.execute("UPDATE oauth_client SET used = ? WHERE id = ?", (now, row["client"]))
        return Tokens(access, refresh, rights)

    def _hash(self, secret: str) -> bytes:
        """Made with the owner's token, so that a new token ends all grants."""
        return hmac.new(self._secret, secret.encode(errors="replace"), hashlib.sha256).digest()


_SELECT: Final = """
SELECT each.*, oauth_grant.client, oauth_grant.key, oauth_grant.resource, oauth_grant.rights AS grant_rights
FROM {} AS each JOIN oauth_grant ON oauth_grant.id = each.grant_id WHERE each.hash = ?
"""


def _clean(db: sqlite3.Connection, now: int) -> None:
    for table in ("oauth_token", "oauth_grant"):
        db.execute(f"DELETE FROM {table} WHERE expires < ?", (now,))


def _refused() -> OAuthError:
    return OAuthError("invalid_grant", "the code or token is unknown, was used before or has ended")


def _secret(kind: Literal["access", "refresh", "code"]) -> str:
    return _PREFIXES[kind] + secrets.token_urlsafe(_SECRET_BYTES)


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode(errors="replace")).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _now() -> int:
    return to_micros(utc_now())
