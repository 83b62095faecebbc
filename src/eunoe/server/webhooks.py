"""Webhooks: addresses that are told what memory learns, what there is to tell, and the log of what was sent."""

from __future__ import annotations

import base64
import builtins
import hashlib
import hmac
import ipaddress
import secrets
import socket
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic, time
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from pydantic_core import to_json

from eunoe.errors import EunoeError, InputError, NotFoundError
from eunoe.memory import Memory
from eunoe.model.arguments import parse_time, utc_now
from eunoe.model.atom import Atom
from eunoe.model.json import json_value
from eunoe.net.http import HttpClient, HttpError
from eunoe.server.jobs import MAX_ATTEMPTS, Job, Progress
from eunoe.server.state import ServerState, insert
from eunoe.work.thread import WorkThread

MAX_WEBHOOKS: Final = 100
"""Of one tenant."""
_MAX_DELIVERIES: Final = 1000
"""Kept for each webhook."""
_OVERLAP: Final = timedelta(seconds=5)
"""So far back each look goes again: a writer's clock, or the end of its transaction, may be a little behind."""
_PAGE: Final = 100
_MAX_PAGES: Final = 50
"""Of one look; what is older than that is not news."""
_NAMING_FIELDS: Final = ("id", "scope", "kind", "label", "recorded", "supersedes")
"""What tells which memory is meant, without its words."""
_TIMEOUT_SECONDS: Final = 10.0
_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_INSIDE: Final = "the webhook's host is inside this network: only the owner of the store may name one"
JOB_KIND: Final = "webhook"
_LOOK_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 10.0
_MAX_ITEMS: Final = 100
"""In one request."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address, and how far it has been told."""

    id: str
    key: str
    """The id of the key that made it: it is told what that key may read."""
    tenant: str
    url: str
    with_text: bool
    """Whether the words are sent, or only which memories there are."""
    created: datetime
    problem: str
    """Why nothing is sent any more; empty if it works."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to tell an address."""

    number: int
    time: datetime
    items: int
    status: int
    """Of the answer; 0 if there was none."""
    seconds: float
    error: str


class Webhooks:
    """The webhooks of one server, in its own records."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def create(self, key: str, tenant: str, url: str, with_text: bool) -> tuple[Webhook, str]:
        """Make a webhook; return it and the secret that its requests are signed with, which is shown this once."""
        id, secret = secrets.token_hex(8), f"whsec_{secrets.token_urlsafe(32)}"
        with self._state.write() as db:
            count = db.execute("SELECT count(*) FROM webhook WHERE tenant = ?", (tenant,)).fetchone()[0]
            if count >= MAX_WEBHOOKS:
                raise InputError(f"there are {count} webhooks already: delete one first")
            place, now = f"{utc_now().isoformat()}||", time()
            row = {"key": key, "tenant": tenant, "url": url, "with_text": with_text, "cursor": place, "created": now}
            insert(db, "webhook", id=id, secret=secret, **row)
        return self.get(id), secret

    def list(self, tenant: str | None = None) -> list[Webhook]:
        """All of a tenant, oldest first; without a tenant all there are."""
        with self._state.read() as db:
            rows = db.execute("SELECT * FROM webhook WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created", (tenant,))
            return [_webhook(row) for row in rows]

    def get(self, id: str, tenant: str | None = None) -> Webhook:
        return _webhook(self._row(id, tenant))

    def secret(self, id: str) -> str:
        return str(self._row(id)["secret"])

    def cursor(self, id: str) -> str:
        return str(self._row(id)["cursor"])

    def delete(self, id: str, tenant: str | None = None) -> None:
        self._row(id, tenant)
        with self._state.write() as db:
            db.execute("DELETE FROM webhook WHERE id = ?", (id,))

    def stop(self, id: str, problem: str) -> None:
        """Send nothing more until somebody resumes it."""
        with self._state.write() as db:
            db.execute("UPDATE webhook SET problem = ? WHERE id = ?", (problem, id))

    def resume(self, id: str, tenant: str | None = None) -> Webhook:
        """Go on where it stopped."""
        self._row(id, tenant)
        self.stop(id, "")
        return self.get(id)

    def note_delivery(
        self, id: str, items: int, status: int, seconds: float, error: str = "", cursor: str = ""
    ) -> None:
        """Write an attempt down; with a cursor, that everything up to there has been told."""
        with self._state.write() as db:
            last = db.execute("SELECT max(number) FROM delivery WHERE webhook = ?", (id,)).fetchone()[0] or 0
            row = (id, last + 1, time(), items, status, seconds, error)
            db.execute("INSERT INTO delivery VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            db.execute("DELETE FROM delivery WHERE webhook = ? AND number <= ?", (id, last + 1 - _MAX_DELIVERIES))
            if cursor:
                db.execute("UPDATE webhook SET cursor = ?, problem = '' WHERE id = ?", (cursor, id))

    def deliveries(
        self, id: str, tenant: str | None, limit: int, after: int = 0
    ) -> tuple[builtins.list[Delivery], str]:
        """The log, newest first, and where to read on."""
        self._row(id, tenant)
        query = "SELECT * FROM delivery WHERE webhook = ?1 AND (?2 = 0 OR number < ?2) ORDER BY number DESC LIMIT ?3"
        with self._state.read() as db:
            rows = db.execute(query, (id, after, limit + 1)).fetchall()
        found = [
            Delivery(
                row["number"],
                datetime.fromtimestamp(row["time"], UTC),
                row["items"],
                row["status"],
                row["seconds"],
                row["error"],
            )
            for row in rows[:limit]
        ]
        return found, str(found[-1].number) if len(rows) > limit else ""

    def _row(self, id: str, tenant: str | None = None) -> sqlite3.Row:
        with self._state.read() as db:
            row: sqlite3.Row | None = db.execute("SELECT * FROM webhook WHERE id = ?", (id,)).fetchone()
        if row is None or (tenant is not None and row["tenant"] != tenant):
            raise NotFoundError("no such webhook")
        return row


def _webhook(row: sqlite3.Row) -> Webhook:
    created = datetime.fromtimestamp(row["created"], UTC)
    return Webhook(row["id"], row["key"], row["tenant"], row["url"], bool(row["with_text"]), created, row["problem"])


class Event(NamedTuple):
    """Something that was learned, and the place in the feed right behind it."""

    cursor: str
    item: Atom

    def json(self, with_text: bool = True) -> dict[str, Any]:
        value: dict[str, Any] = json_value(self.item)
        return value if with_text else {name: value[name] for name in _NAMING_FIELDS}


@dataclass
class Feed:
    """News of a memory, within its bounds, from a place on: read from the store itself, whoever wrote them."""

    memory: Memory
    start: datetime
    """Nothing from before is told."""
    since: datetime = field(init=False)
    _seen: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.since = self.start

    @classmethod
    def from_cursor(cls, memory: Memory, cursor: str) -> Feed:
        """Go on behind the event with this cursor; without one, from now on."""
        if not cursor:
            return cls(memory, utc_now())
        moment, _, place = cursor.partition("|")
        scope, _, id = place.partition("|")
        try:
            since = parse_time(moment)
        except InputError:
            raise InputError("Last-Event-ID is not one of this feed: leave it out to begin now") from None
        feed = cls(memory, since)
        feed._seen[scope, id] = since
        return feed

    def has_news(self) -> bool:
        newest = self.memory.recent(since=self.since, limit=1, retired=True).items
        return bool(newest) and (str(newest[0].scope), newest[0].id) not in self._seen

    def read(self) -> list[Event]:
        """What was learned since the last look, oldest first."""
        first, found, after = max(self.start, self.since - _OVERLAP), list[Event](), ""
        for _ in range(_MAX_PAGES):
            page = self.memory.recent(since=first, limit=_PAGE, after=after, retired=True)
            for item in page.items:
                if isinstance(item, Atom) and item.recorded and (str(item.scope), item.id) not in self._seen:
                    found.append(Event(f"{item.recorded.isoformat()}|{item.scope}|{item.id}", item))
                    self._seen[str(item.scope), item.id] = item.recorded
                    self.since = max(self.since, item.recorded)
            if not (after := page.next):
                break
        horizon = self.since - _OVERLAP
        self._seen = {place: moment for place, moment in self._seen.items() if moment >= horizon}
        return found[::-1]


class DeliveryError(EunoeError):
    """A webhook could not be told."""


def check_url(url: str, allow_private: bool) -> SplitResult:
    """Return the parts of a webhook's URL; refuse what can be none."""
    try:
        parts = urlsplit(url)
        has_more = parts.username or parts.password or parts.fragment or parts.port == 0
    except ValueError:
        raise InputError("url cannot be read: it looks like https://example.org/hook") from None
    if not parts.hostname or has_more or parts.scheme not in ("https", "http") or not url.isascii() or " " in url:
        raise InputError("url must look like https://example.org/hook, with no user, password or fragment")
    if parts.scheme == "http" and not allow_private:
        raise InputError("url must begin with https://")
    if not allow_private and _names_this_network(parts.hostname):
        raise InputError(f"url is refused: {_INSIDE}")
    return parts


def find_address(url: SplitResult, allow_private: bool) -> str:
    """Resolve the host once. Addresses of this machine or its network are refused: a tenant has no business there."""
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise DeliveryError("the host of the webhook is not known") from None
    ips = [str(info[4][0]) for info in found]
    if not allow_private and not all(map(_is_public, ips)):
        raise DeliveryError(_INSIDE)
    return ips[0]


def _names_this_network(host: str) -> bool:
    """Whether a host is written as an address inside; other names are looked up when something is sent."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    with suppress(OSError):  # resolvers also take 2130706433, 0x7f.1 and 0177.0.0.1
        name = socket.inet_ntoa(socket.inet_aton(name))
    try:
        return not _is_public(name)
    except ValueError:
        return False


def _is_public(ip: str) -> bool:
    """Whether an address is one machine of the internet, and no other way to write one inside, as NAT64 has it."""
    address = ipaddress.ip_address(ip)
    is_unicast = address in _GLOBAL_UNICAST if address.version == 6 else not address.is_multicast
    return address.is_global and is_unicast


class WebhookSender:
    """Finds webhooks with news and tells them. The cursor of a webhook follows what was delivered."""

    def __init__(self, webhooks: Webhooks, find_memory: Callable[[str], Memory | None]) -> None:
        self._webhooks = webhooks
        self._find_memory = find_memory
        self._looker = WorkThread[str](self._look, "eunoe-webhooks")
        self._add_job: Callable[[Webhook], object] = lambda webhook: None

    def start(self, add_job: Callable[[Webhook], object]) -> None:
        """Look for news now and then, and have a job deliver it."""
        self._add_job = add_job
        self._looker.put("news", _LOOK_SECONDS)

    def close(self) -> None:
        self._looker.close(_CLOSE_SECONDS)

    def _look(self, what: str) -> None:
        try:
            for webhook in self._find_due():
                self._add_job(webhook)
        finally:
            self._looker.put(what, _LOOK_SECONDS)

    def _find_due(self) -> Iterator[Webhook]:
        """Webhooks that work and have news."""
        for webhook in self._webhooks.list():
            if webhook.problem:
                continue
            memory = self._find_memory(webhook.key)
            if memory is None:
                self._webhooks.stop(webhook.id, "the key that made it has ended")
            elif Feed.from_cursor(memory, self._webhooks.cursor(webhook.id)).has_news():
                yield webhook

    def deliver(self, job: Job, progress: Progress) -> Mapping[str, Any] | None:
        """Tell one webhook everything that it does not know yet."""
        webhook = self._webhooks.get(job.options["webhook"])
        memory = self._find_memory(webhook.key)
        if webhook.problem or memory is None:
            return None
        news, told = Feed.from_cursor(memory, self._webhooks.cursor(webhook.id)).read(), 0
        for start in range(0, len(news), _MAX_ITEMS):
            part = news[start : start + _MAX_ITEMS]
            # It may be forgotten meanwhile.
            events = [
                event for event in part if event.item.scope and memory.get_many(event.item.scope, [event.item.id])
            ]
            if not events:
                continue
            try:
                self._tell(webhook, events)
            except DeliveryError:
                if job.attempts >= MAX_ATTEMPTS:
                    reason = "it could not be told for too often: resume it when it answers again"
                    self._webhooks.stop(webhook.id, reason)
                raise
            told += len(events)
            progress(told)
        return {"items": told} if told else None

    def _tell(self, webhook: Webhook, events: Sequence[Event]) -> None:
        """POST to an address that was checked, signed as the Standard Webhooks say."""
        id, moment = f"{webhook.id}-{events[-1].cursor.partition('|')[0]}", str(int(time()))
        body = to_json({"type": "learned", "items": [event.json(webhook.with_text) for event in events]})
        headers = {
            "Content-Type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": moment,
            "webhook-signature": sign(self._webhooks.secret(webhook.id), id, moment, body),
        }
        began, status, error = monotonic(), 0, ""
        try:
            is_owners = webhook.tenant == ""
            url = check_url(webhook.url, is_owners)
            ip = find_address(url, is_owners)
            client = HttpClient(f"{url.scheme}://{url.netloc}", timeout=_TIMEOUT_SECONDS, resolve=lambda host, port: ip)
            path = url.path or "/"
            with client.open("POST", f"{path}?{url.query}" if url.query else path, body, headers=headers) as answer:
                status = answer.status
        except HttpError as problem:
            status = problem.status
            error = "" if status else f"the webhook cannot be reached: {type(problem.__cause__).__name__}"
        except EunoeError as problem:
            error = str(problem)
        if status and not 200 <= status < 300:
            error = f"the webhook answered {status}"
        cursor = "" if error else events[-1].cursor
        self._webhooks.note_delivery(webhook.id, len(events), status, monotonic() - began, error, cursor)
        if error:
            raise DeliveryError(error)


def sign(secret: str, id: str, moment: str, body: bytes) -> str:
    signed = f"{id}.{moment}.".encode() + body
    digest = hmac.new(secret.removeprefix("whsec_").encode(), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
