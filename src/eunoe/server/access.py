"""From what a request carries to who calls, and the memory that they may use."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from eunoe.errors import InputError
from eunoe.files import create_once
from eunoe.memory import AsyncMemory, Change, Memory
from eunoe.server.audit import Audit, AuditTrail, Via
from eunoe.server.keys import OWNER, Key, Keys
from eunoe.server.oauth.grants import ACCESS_PREFIX, Grants
from eunoe.server.sessions import Sessions

_TOKEN_BYTES: Final = 32
_MAX_MEMORIES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that wants to get in: where it comes from, and what it asks for."""

    address: str = ""
    path: str = ""
    request_id: str = ""
    server_address: str = ""
    is_forwarded: bool = False
    """Whether it came by the public address: a proxy on this machine passed it on, from wherever."""

    @property
    def is_local(self) -> bool:
        """Whether it comes from the machine that the server runs on. The owner's token is good only there."""
        if self.is_forwarded:
            return False
        if not self.address or self.address == self.server_address:
            return True
        try:
            parsed = ip_address(self.address)
        except ValueError:
            return False
        return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


_NOWHERE: Final = Attempt()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and the memory that can do no more than they may and tells the audit log what it is made to do."""

    key: Key
    async_memory: AsyncMemory
    trail: AuditTrail

    @property
    def memory(self) -> Memory:
        return self.async_memory.blocking

    @property
    def rights(self) -> frozenset[str]:
        return frozenset(self.key.rights)


class Access:
    """Finds the caller for a token, or for a session of the inspector."""

    def __init__(
        self,
        memory: AsyncMemory,
        keys: Keys,
        sessions: Sessions,
        audit: Audit,
        owner_token: str,
        grants: Grants | None = None,
        copies: Callable[[Change], None] | None = None,
    ) -> None:
        self._memory = memory
        self._keys = keys
        self._sessions = sessions
        self._audit = audit
        self._owner_token = owner_token.encode()
        self._grants = grants
        self._copies = copies
        self._memories: dict[tuple[str, ...], tuple[Key, AsyncMemory]] = {}

    def find_caller(self, token: str, attempt: Attempt = _NOWHERE) -> Caller | None:
        """The caller with a key, or with an access token that is meant for the path."""
        if self._grants and token.startswith(ACCESS_PREFIX):
            granted = self._grants.find_key(token, attempt.path)
            return self._caller(granted, "oauth", attempt) if granted else None
        key = self._keys.verify(token)
        if hmac.compare_digest(token.encode(errors="replace"), self._owner_token) and attempt.is_local:
            key = OWNER
        via: Via = "mcp" if attempt.path.startswith("/mcp") else "http"
        return self._caller(key, via, attempt) if key else None

    def find_session(self, id: str, attempt: Attempt = _NOWHERE) -> Caller | None:
        """The caller that a session of the inspector belongs to."""
        key_id = self._sessions.find_key(id)
        key = self._keys.find(key_id) if key_id else None
        return self._caller(key, "inspector", attempt) if key else None

    def memory(self, key: Key) -> AsyncMemory:
        """The memory as the holder of a key may use it; made anew when the key has changed."""
        if key is OWNER:
            return self._memory
        place = (key.id, *key.rights)  # a client that was let in may have fewer rights than the key it uses
        known, memory = self._memories.get(place, (None, self._memory))
        if known != key:
            if len(self._memories) >= _MAX_MEMORIES:
                self._memories.clear()
            memory = self._memory.restricted(tenant=key.tenant, scopes=key.scopes, rights=key.rights)
            self._memories[place] = key, memory
        return memory

    def _caller(self, key: Key, via: Via, attempt: Attempt) -> Caller:
        trail = AuditTrail(self._audit, key, via, attempt.request_id)
        watched = self.memory(key).watched(trail)
        return Caller(key, watched.watched(self._copies) if self._copies else watched, trail)


def load_owner_token(path: Path) -> str:
    """The token of whoever owns the store, made at the first start; nobody else can read its file."""
    if not path.exists():  # if another process is faster, its token counts
        create_once(path, secrets.token_urlsafe(_TOKEN_BYTES).encode())
    path.chmod(0o600)
    token = path.read_text().strip()
    if len(token) < _TOKEN_BYTES:
        raise InputError(f"{path} holds no token that is long enough: delete it, and the next start makes another")
    return token
