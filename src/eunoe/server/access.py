"""From what a request carries to who calls, and the memory that they may use."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from eunoe.errors import InputError
from eunoe.memory import AsyncMemory, Memory
from eunoe.server.keys import OWNER, Key, Keys
from eunoe.server.sessions import Sessions

Via = Literal["http", "mcp", "inspector", "oauth"]
_TOKEN_BYTES: Final = 32
_MAX_CALLERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, by which way, and the memory that can do no more than they may."""

    key: Key
    async_memory: AsyncMemory
    via: Via = "http"

    @property
    def memory(self) -> Memory:
        return self.async_memory.blocking

    @property
    def rights(self) -> frozenset[str]:
        return frozenset(self.key.rights)


class Access:
    """Finds the caller for a token, or for a session of the inspector."""

    def __init__(self, memory: AsyncMemory, keys: Keys, sessions: Sessions, owner_token: str) -> None:
        self._memory = memory
        self._keys = keys
        self._sessions = sessions
        self._owner = Caller(OWNER, memory)
        self._owner_token = owner_token.encode()
        self._callers: dict[str, Caller] = {}

    def find_caller(self, token: str, path: str = "") -> Caller | None:
        """The caller with a key, or with an access token that is meant for a path."""
        key = self._keys.verify(token)
        if hmac.compare_digest(token.encode(errors="replace"), self._owner_token):
            return self._owner
        return self.caller(key) if key else None

    def find_session(self, id: str) -> Caller | None:
        """The caller that a session of the inspector belongs to."""
        key_id = self._sessions.find_key(id)
        key = self._keys.find(key_id) if key_id else None
        return replace(self.caller(key), via="inspector") if key else None

    def caller(self, key: Key) -> Caller:
        """The caller with this key; made anew when the key has changed."""
        if key == OWNER:
            return self._owner
        known = self._callers.get(key.id)
        if known is None or known.key != key:
            if len(self._callers) >= _MAX_CALLERS:
                self._callers.clear()
            memory = self._memory.restricted(tenant=key.tenant, scopes=key.scopes, rights=key.rights)
            known = self._callers[key.id] = Caller(key, memory)
        return known


def load_owner_token(path: Path) -> str:
    """The token of whoever owns the store, made at the first start; nobody else can read its file."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(_TOKEN_BYTES))
        with suppress(FileExistsError):  # another process was faster: its token counts
            os.link(draft, path)
        draft.unlink()
    path.chmod(0o600)
    token = path.read_text().strip()
    if len(token) < _TOKEN_BYTES:
        raise InputError(f"{path} holds no token that is long enough: delete it, and the next start makes another")
    return token
