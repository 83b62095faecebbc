"""Clients that registered themselves. None has a secret: what a client may do is proven by PKCE, code by code."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from eunoe.model.arguments import to_micros, utc_now
from eunoe.server.oauth.errors import OAuthError
from eunoe.server.state import ServerState

_MAX_CLIENTS: Final = 1000
_MAX_NAME_CHARACTERS: Final = 100
_MAX_URI_CHARACTERS: Final = 1000
_MAX_URIS: Final = 10
_UNUSED: Final = timedelta(days=1)
"""So long one is kept that nobody let in."""
_IDLE: Final = timedelta(days=90)
_LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_APP_SCHEMES: Final = frozenset({"claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"})
_DOMAIN_SCHEME: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
"""The scheme of an application on the same device, as RFC 8252 wants it: com.example.app."""


@dataclass(frozen=True, slots=True)
class Client:
    """An application, as it describes itself."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


class Clients:
    """The clients of one server. Their number is bounded; those that nobody uses go."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def register(self, name: object, redirect_uris: object) -> Client:
        client = Client(secrets.token_urlsafe(16), _check_name(name), _check_redirect_uris(redirect_uris))
        with self._state.write() as db:
            _clean(db)
            row = (client.id, client.name, json.dumps(client.redirect_uris), to_micros(utc_now()), None)
            db.execute("INSERT INTO oauth_client VALUES (?, ?, ?, ?, ?)", row)
        return client

    def find(self, id: str) -> Client | None:
        with self._state.read() as db:
            row = db.execute("SELECT id, name, redirect_uris FROM oauth_client WHERE id = ?", (id,)).fetchone()
        return Client(row["id"], row["name"], tuple(json.loads(row["redirect_uris"]))) if row else None


def _clean(db: sqlite3.Connection) -> None:
    """Make room: what nobody let in goes after a day, or as soon as there are too many."""
    now = utc_now()
    lonely = "NOT EXISTS (SELECT 1 FROM oauth_grant WHERE client = oauth_client.id)"
    times = (to_micros(now - _UNUSED), to_micros(now - _IDLE))
    db.execute(f"DELETE FROM oauth_client WHERE {lonely} AND created < ? AND (used IS NULL OR used < ?)", times)
    count = db.execute("SELECT count(*) FROM oauth_client").fetchone()[0]
    oldest = f"SELECT id FROM oauth_client WHERE {lonely} ORDER BY created LIMIT ?"
    db.execute(f"DELETE FROM oauth_client WHERE id IN ({oldest})", (max(0, count - _MAX_CLIENTS + 1),))
    if db.execute("SELECT count(*) FROM oauth_client").fetchone()[0] >= _MAX_CLIENTS:
        raise OAuthError("temporarily_unavailable", "there are too many clients: revoke some of their keys")


def _check_name(name: object) -> str:
    shown = name.strip() if isinstance(name, str) else ""
    if len(shown) > _MAX_NAME_CHARACTERS or not shown.isprintable():
        raise OAuthError("invalid_client_metadata", f"client_name: at most {_MAX_NAME_CHARACTERS} printable characters")
    return shown or "An application without a name"


def _check_redirect_uris(uris: Any) -> tuple[str, ...]:
    if not isinstance(uris, Sequence) or isinstance(uris, str) or not 0 < len(uris) <= _MAX_URIS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris: a list of one to {_MAX_URIS} addresses")
    for uri in uris:
        if not isinstance(uri, str) or len(uri) > _MAX_URI_CHARACTERS or not _is_safe(uri):
            raise OAuthError(
                "invalid_redirect_uri", "redirect_uris: https, http on loopback, or the scheme of an application"
            )
    return tuple(uris)


def _is_safe(uri: str) -> bool:
    """Whether a browser may be sent there with a code: it must run no script, and nobody on the way may read it."""
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not uri.isascii() or not uri.isprintable() or set(uri) & set(" \"'<>\\;,") or "#" in uri:
        return False
    if not host or parts.username is not None:
        return False
    if parts.scheme == "http":
        return host in _LOOPBACK_HOSTS
    return parts.scheme in ("https", *_APP_SCHEMES) or bool(_DOMAIN_SCHEME.fullmatch(parts.scheme))
