"""Attempts to get in. An address from which too many failed has to wait, before anything is looked up for it."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from eunoe.errors import EunoeError
from eunoe.server.access import Access, Attempt, Caller
from eunoe.server.limits import Allowance, RateLimit

_MAX_KNOWN: Final = 10_000
_IPV6_NETWORK_BITS: Final = 64
"""Whoever has one IPv6 address has all of its network."""


class LoginError(EunoeError):
    """A key or a session was refused."""

    def __init__(self, detail: str, allowance: Allowance | None = None) -> None:
        super().__init__(detail)
        self.allowance = allowance
        """Set if too many have failed: when the next one is looked at."""


class Logins:
    """Checks keys and sessions. One that was right before passes even where others fail: nobody locks another out."""

    def __init__(self, access: Access, failures_per_minute: int) -> None:
        self._access = access
        self._failures = RateLimit(failures_per_minute, burst=failures_per_minute) if failures_per_minute else None
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def by_token(self, token: str, attempt: Attempt) -> Caller:
        """The caller with a key, or with an access token for the path."""
        refusal = "the key is unknown, has ended or was revoked"
        return self._check(token, attempt.address, lambda: self._access.find_caller(token, attempt), refusal)

    def by_session(self, id: str, attempt: Attempt) -> Caller:
        refusal = "the session has ended: open the inspector's link again"
        return self._check(id, attempt.address, lambda: self._access.find_session(id, attempt), refusal)

    def _check(self, secret: str, address: str, find: Callable[[], Caller | None], refusal: str) -> Caller:
        name, mark = _network(address), hashlib.sha256(secret.encode(errors="replace")).digest()
        if self._failures and mark not in self._known:
            allowance = self._failures.look(name)
            if allowance.wait:
                raise LoginError("too many keys from this address were wrong", allowance)
        caller = find()
        if caller is None:
            self._known.pop(mark, None)
            if self._failures:
                self._failures.take(name)
            raise LoginError(refusal)
        self._remember(mark)
        return caller

    def _remember(self, mark: bytes) -> None:
        self._known[mark] = None
        self._known.move_to_end(mark)
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)


def _network(address: str) -> str:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and not parsed.ipv4_mapped:
        return str(int(parsed) >> (128 - _IPV6_NETWORK_BITS))
    return str(parsed)
