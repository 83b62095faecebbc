"""From what a request carries to who calls, and the memory that they may use."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from eunoe.errors import EunoeError, InputError
from eunoe.files import create_once
from eunoe.memory import AsyncMemory, Change, Memory
from eunoe.model.arguments import to_micros, utc_now
from eunoe.server.audit import Audit, AuditTrail, Via
from eunoe.server.config import Addresses
from eunoe.server.keys import OWNER, Key, Keys
from eunoe.server.oauth import ACCESS_PREFIX, OAuth
from eunoe.server.state import ServerState

_MINUTE: Final = 60.0
_BURST_SECONDS: Final = 10.0
"""So many seconds' worth may come at once."""
_MAX_BUCKETS: Final = 10_000


class Allowance(NamedTuple):
    """What is left of a limit."""

    limit: int
    remaining: int
    wait: float
    """Seconds until the next one is allowed; 0 if it is allowed now."""


class RateLimit:
    """So many a minute for each name. The names that were not heard of for longest are dropped first."""

    def __init__(
        self, per_minute: int, *, burst: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_minute / _MINUTE
        self._burst = float(burst or max(1, round(self._per_second * _BURST_SECONDS)))
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> Allowance:
        """Use one up, if there is one."""
        tokens, now = self._tokens(name)
        allowance = self._allowance(tokens)
        self._keep(name, tokens - 1 if not allowance.wait else tokens, now)
        return allowance

    def look(self, name: str) -> Allowance:
        """What there is, with nothing used up."""
        return self._allowance(self._tokens(name)[0])

    def _tokens(self, name: str) -> tuple[float, float]:
        now = self._clock()
        tokens, before = self._buckets.get(name, (self._burst, now))
        return min(self._burst, tokens + (now - before) * self._per_second), now

    def _allowance(self, tokens: float) -> Allowance:
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._per_second
        return Allowance(int(self._burst), max(0, int(tokens) - 1), wait)

    def _keep(self, name: str, tokens: float, now: float) -> None:
        self._buckets[name] = (tokens, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)


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


_NAME = "eunoe_session"


def find_session_id(request: Request, addresses: Addresses) -> str:
    return request.cookies.get(_cookie_name(request, addresses), "")


def set_session_id(response: Response, request: Request, addresses: Addresses, id: str) -> None:
    """Set the cookie; an empty id removes it."""
    is_secure = addresses.is_secure(_host(request))
    name = _cookie_name(request, addresses)
    age = None if id else 0
    response.set_cookie(name, id, max_age=age, path="/", secure=is_secure, httponly=True, samesite="strict")


def _cookie_name(request: Request, addresses: Addresses) -> str:
    """Cookies know no ports: with the port in its name two servers on one machine do not overwrite each other's."""
    host = _host(request)
    if addresses.is_secure(host):
        return f"__Host-{_NAME}"
    port = host.rpartition(":")[2]
    return f"{_NAME}_{port}" if port.isdecimal() else _NAME


def _host(request: Request) -> str:
    return request.headers.get("host", "")


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
        oauth: OAuth | None = None,
        copies: Callable[[Change], None] | None = None,
    ) -> None:
        self._memory = memory
        self._keys = keys
        self._sessions = sessions
        self._audit = audit
        self._owner_token = owner_token.encode()
        self._oauth = oauth
        self._copies = copies
        self._memories: dict[tuple[str, ...], tuple[Key, AsyncMemory]] = {}

    def find_caller(self, token: str, attempt: Attempt = _NOWHERE) -> Caller | None:
        """The caller with a key, or with an access token that is meant for the path."""
        if self._oauth and token.startswith(ACCESS_PREFIX):
            granted = self._oauth.find_key(token, attempt.path)
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
