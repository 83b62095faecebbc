"""Sessions of the inspector: a browser that has shown a key once holds a random id, never the key."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from eunoe.model.arguments import to_micros, utc_now
from eunoe.server.state import ServerState

_ID_BYTES: Final = 32
_SECOND: Final = 1_000_000
_IDLE: Final = 12 * 3600 * _SECOND
_LONGEST: Final = 7 * 24 * 3600 * _SECOND
_TOUCH: Final = 60 * _SECOND
"""How coarse the time of the last use is: a read must not become a write each time."""
_MAX_PER_KEY: Final = 100


class Sessions:
    """The sessions of one server. Each ends with its key, when it is idle for 12 hours, and after 7 days."""

    def __init__(self, state: ServerState, owner_token: str) -> None:
        self._state = state
        self._secret = hmac.digest(owner_token.encode(), b"session", "sha256")

    def start(self, key_id: str) -> str:
        """Return the id of a new session; only its hash is kept."""
        id, now = secrets.token_urlsafe(_ID_BYTES), to_micros(utc_now())
        with self._state.write() as db:
            db.execute("DELETE FROM session WHERE used < ? OR started < ?", (now - _IDLE, now - _LONGEST))
            db.execute("INSERT INTO session VALUES (?, ?, ?, ?)", (self._hash(id), key_id, now, now))
            newest = "SELECT hash FROM session WHERE key = ? ORDER BY used DESC, started DESC LIMIT ?"
            db.execute(f"DELETE FROM session WHERE key = ? AND hash NOT IN ({newest})", (key_id, key_id, _MAX_PER_KEY))
        return id

    def find_key(self, id: str) -> str | None:
        """The id of the key that a session belongs to, if it has not ended."""
        hash, now = self._hash(id), to_micros(utc_now())
        with self._state.read() as db:
            row = db.execute("SELECT key, started, used FROM session WHERE hash = ?", (hash,)).fetchone()
        if row is None or now - row["used"] > _IDLE or now - row["started"] > _LONGEST:
            return None
        if now - row["used"] > _TOUCH:
            self._state.write_later("UPDATE session SET used = ? WHERE hash = ?", (now, hash))
        return str(row["key"])

    def end(self, id: str) -> None:
        with self._state.write() as db:
            db.execute("DELETE FROM session WHERE hash = ?", (self._hash(id),))

    def _hash(self, id: str) -> bytes:
        """Made with the owner's token, so that a new token ends all sessions."""
        return hmac.new(self._secret, id.encode(errors="replace"), hashlib.sha256).digest()
