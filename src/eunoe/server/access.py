"""From what a request carries to who calls, and the memory that they may use."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from eunoe.memory import AsyncMemory, Memory
from eunoe.server.keys import OWNER, Key, Keys

_TOKEN_BYTES: Final = 32
_MAX_CALLERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and the memory that can do no more than they may."""

    key: Key
    async_memory: AsyncMemory

    @property
    def memory(self) -> Memory:
        return self.async_memory.blocking

    @property
    def rights(self) -> frozenset[str]:
        return frozenset(self.key.rights)


class Access:
    """Finds the caller for a token."""

    def __init__(self, memory: AsyncMemory, keys: Keys, owner_token: str) -> None:
        self._memory = memory
        self._keys = keys
        self._owner = Caller(OWNER, memory)
        self._owner_token = owner_token
        self._callers: dict[str, Caller] = {}

    def find_caller(self, token: str) -> Caller | None:
        if hmac.compare_digest(token.encode(errors="replace"), self._owner_token.encode()):
            return self._owner
        key = self._keys.verify(token)
        return self.caller(key) if key else None

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
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(_TOKEN_BYTES))
    except FileExistsError:
        pass
    return path.read_text().strip()
