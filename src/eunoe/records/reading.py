"""Reading by id and page by page, near scopes, and views that are kept until their scope changes."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from hashlib import blake2b
from itertools import combinations
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from eunoe.errors import ConflictError, InputError
from eunoe.model.arguments import MAX_INTEGER, from_micros, show, to_micros
from eunoe.model.atom import NO_BOUNDS, Atom, Bounds, Item, Record
from eunoe.model.result import Page
from eunoe.model.scope import ALIASES, Scope
from eunoe.records.atoms import find_record
from eunoe.records.streams import check_undamaged, damage_notes, stream_notes
from eunoe.records.versions import all_versions, find_by_id, has_gaps
from eunoe.store.contract import ItemQuery, Reading, Store, streams_of
from eunoe.store.schema import CURSOR_KEY, StreamState


def find_item(store: Store, scope: Scope, id: str) -> Item:
    def find(store: Reading) -> Item:
        own = store.stream(scope.alone)
        if own and (record := find_by_id(store, own.id, id)):
            return record.item(own.scope)
        stream = find_owner(store, scope, id)
        return find_record(store, stream, id).item(stream.scope if stream else scope)

    return store.read([scope], find)


def find_owner(store: Reading, scope: Scope, id: str) -> StreamState | None:
    """The stream that an id is looked for in: the scope's own, or the one within that has it."""
    if scope.within and (records := find_records(store, scope, [id])):
        return store.streams(ids=[records[0].stream])[0]
    return store.stream(scope.alone)


def find_place(store: Store, scope: Scope, ids: Sequence[str]) -> Scope | None:
    """The scope within a user's that has one of these ids: told to whoever would change it in the wrong one."""
    if "user" not in scope.pairs:
        return None

    def find(store: Reading) -> Scope | None:
        records = find_records(store, scope.everything, ids[:1])
        return store.streams(ids=[records[0].stream])[0].scope if records else None

    return store.read([scope], find)


def find_items(store: Store, scope: Scope, ids: Sequence[str]) -> list[Item]:
    """Those that are there, in the order of their ids."""

    def find(store: Reading) -> list[Item]:
        streams = {stream.id: stream for stream in streams_of(store, scope)}
        records = find_records(store, scope, ids)
        if len(records) < len({*ids}):
            for stream in streams.values():
                check_undamaged(store, stream)
        items = {record.id: record.item(streams[record.stream].scope) for record in records}
        return [items[id] for id in ids if id in items]

    return store.read([scope], find)


def find_records(store: Reading, scope: Scope, ids: Sequence[str]) -> list[Record]:
    """The records that have these ids in a scope. Within it, what the scope itself has comes first."""
    own = store.stream(scope.alone)
    records = store.select(ItemQuery(own.id, ids=ids)) if own and ids else []
    missing = set(ids) - {record.id for record in records}
    if not scope.within or not missing:
        return records
    streams = {stream.id: stream.scope.text for stream in store.streams_within(scope)}
    found = store.select(ItemQuery(streams=[*streams], ids=sorted(missing)))
    if len({record.id for record in found}) < len(found):
        id, count = Counter(record.id for record in found).most_common(1)[0]
        named = " and ".join(sorted(streams[record.stream] for record in found if record.id == id)[:2])
        raise ConflictError(f"{count} scopes have a memory {show(id)}, such as {named}: name the one that you mean")
    return records + found


def find_history(store: Store, scope: Scope, id: str) -> list[Atom]:
    """All versions of an atom, oldest first."""

    def find(store: Reading) -> list[Atom]:
        stream = find_owner(store, scope, id)
        record = find_record(store, stream, id)
        versions = all_versions(store, stream, record) if stream else []
        if stream and has_gaps(versions):
            check_undamaged(store, stream)
        owner = stream.scope if stream else scope
        return [item for version in versions if isinstance(item := version.item(owner), Atom)]

    return store.read([scope], find)


_ROUNDS: Final = 4
_HALF_BYTES: Final = 4
_DIGITS: Final = 16


def seal_number(store: Reading, seq: int) -> str:
    """The number as a text that says nothing about it."""
    key, (left, right) = _key(store), divmod(seq, 1 << 32)
    for turn in range(_ROUNDS):
        left, right = right, left ^ _mix(key, turn, right)
    return f"{left << 32 | right:0{_DIGITS}x}"


def open_number(store: Reading, text: str) -> int:
    """The number that `seal_number` made the text of."""
    key, (left, right) = _key(store), divmod(int(text, 16), 1 << 32)
    for turn in reversed(range(_ROUNDS)):
        left, right = right ^ _mix(key, turn, left), left
    number = left << 32 | right
    if number > MAX_INTEGER:  # somebody made it up
        raise bad_cursor(text)
    return number


def parse_cursor(store: Reading, after: str) -> int | None:
    """The number that a page ended with; None where it is the first one."""
    if after == "":
        return None
    if not is_sealed(after):
        raise bad_cursor(after)
    return open_number(store, after)


def is_sealed(text: object) -> bool:
    return isinstance(text, str) and len(text) == _DIGITS and set(text) <= set("0123456789abcdef")


def bad_cursor(after: object) -> InputError:
    return InputError(f"cannot read on after {show(after)}: pass the `next` of the page before")


def _key(store: Reading) -> bytes:
    return (store.get_value(CURSOR_KEY) or "").encode()


def _mix(key: bytes, turn: int, half: int) -> int:
    return int.from_bytes(blake2b(half.to_bytes(_HALF_BYTES), key=key, salt=bytes([turn]), digest_size=4).digest())


_MAX_STREAMS: Final = 5000
"""Streams that are looked at for longer scopes: an empty answer must not cost more the more others remember."""
_MAX_KEYS: Final = 6
_MAX_NAMED: Final = 3
_IMPERSONAL_KEYS: Final = frozenset({"agent", "app", "project", "shard"})
"""Their values name no person and may be shown to whoever did not name them."""


def near_scope_notes(store: Reading, scopes: Sequence[Scope], bounds: Bounds, is_one: bool = False) -> tuple[str, ...]:
    """A note for each scope that holds nothing while a near one within the bounds does. Some verbs take one alone."""
    notes = []
    for scope in scopes:
        if not any(_holds_items(store, stream) for stream in streams_of(store, scope)):
            near = list(_near_scopes(store, scope.alone, bounds))
            if near:
                named = ", ".join(dict.fromkeys(_masked_text(each, scope) for each in near[:_MAX_NAMED]))
                can_widen = not (is_one or scope.within or "user" in scope.pairs)
                hint = f", or write {scope}/*" if can_widen and any(map(scope.everything.covers, near)) else ""
                notes.append(
                    f"{scope.alone} holds nothing, but {named} does: name every key of the scope you mean{hint}"
                )
    return tuple(notes)


def _masked_text(near: Scope, asked: Scope) -> str:
    """A near scope as it may be shown: who else there is, is nobody's business."""
    known = _IMPERSONAL_KEYS | asked.pairs.keys()
    return "/".join(f"{key}={value}" if key in known else f"{key}=..." for key, value in near.pairs.items())


def _near_scopes(store: Reading, scope: Scope, bounds: Bounds) -> Iterator[Scope]:
    """Those with more keys, then those with fewer, then those with keys as other memories call them. What is out of
    bounds is not even looked for."""
    parts, tenant = scope.text.split("/"), scope.pairs.get("tenant", "")
    longer = store.streams(limit=_MAX_STREAMS, containing=parts, tenant=tenant)
    others = filter(bounds.covers, [*_shorter_scopes(scope), *_aliased_scopes(scope)])
    seen = {scope}
    for stream in (*filter(lambda each: bounds.covers(each.scope), longer), *map(store.stream, others)):
        if stream is None or stream.scope in seen:
            continue
        is_near = scope.is_near(stream.scope) or not ALIASES.keys().isdisjoint(stream.scope.pairs)
        if is_near and _holds_items(store, stream):
            seen.add(stream.scope)
            yield stream.scope


def _shorter_scopes(scope: Scope) -> Iterator[Scope]:
    keys = list(scope.pairs)[:_MAX_KEYS]
    for size in range(len(keys) - 1, 0, -1):
        for chosen in combinations(keys, size):
            yield scope.only(chosen)


def _aliased_scopes(scope: Scope) -> Iterator[Scope]:
    """The scope with one of its keys as an older store may have it."""
    for alias, key in ALIASES.items():
        if key in scope.pairs:
            yield Scope.of_pairs({alias if name == key else name: value for name, value in scope.pairs.items()})


def _holds_items(store: Reading, stream: StreamState | None) -> bool:
    return bool(stream and stream.version and store.select(ItemQuery(stream.id, limit=1)))


_MAX_DIGITS: Final = 18
_MOMENT: Final = attrgetter("recorded", "seq")
_READ_AT_ONCE: Final = 500
"""Records that are read at a time where few of them may be wanted."""


class Choice(NamedTuple):
    """Which records of a list are wanted, beyond what a store is asked for."""

    labels: Set[str] = frozenset()
    """One of these, if there are any."""
    where: Callable[[Mapping[str, Any]], bool] | None = None
    """What their metadata has to fulfil."""

    def fits(self, record: Record) -> bool:
        return (not self.labels or record.label in self.labels) and (self.where is None or self.where(record.metadata))


def list_page(
    store: Store, scope: Scope, query: ItemQuery, choice: Choice, after: str, bounds: Bounds = NO_BOUNDS
) -> Page[Item]:
    """What a scope holds of a query, from a cursor on."""
    limit = query.limit or 1

    def read(store: Reading) -> Page[Item]:
        cursor = parse_cursor(store, after)
        streams = streams_of(store, scope)
        notes = () if any(stream.version for stream in streams) else near_scope_notes(store, [scope], bounds)
        own = _from_number(query._replace(limit=limit + 1, skip_damaged=True), cursor)
        own = (
            own._replace(stream=streams[0].id)
            if len(streams) == 1
            else own._replace(streams=[each.id for each in streams])
        )
        is_simple = choice == Choice() and not (query.offset and len(streams) > 1)
        records = store.select(own) if is_simple else _choose(store, own, choice)
        notes += stream_notes(store, streams)
        next_page = seal_number(store, records[limit - 1].seq) if len(records) > limit else ""
        shown = records[:limit]
        if len(streams) > 1 and query.open and query.known_at is None:
            shown = _without_outdated(store, shown, [stream.id for stream in streams])
        owners = {stream.id: stream.scope for stream in streams}
        return Page(tuple(record.item(owners[record.stream]) for record in shown), next_page, notes)

    return store.read([scope], read)


def _without_outdated(store: Reading, records: Sequence[Record], streams: Sequence[int]) -> list[Record]:
    """Without the open atoms that another stream held in the same words and has closed since."""
    identities = [record.identity for record in records if record.kind != "message"]
    twins = store.select(ItemQuery(streams=streams, identities=identities, skip_damaged=True)) if identities else []
    ends: dict[bytes, datetime] = {}
    for twin in twins:
        if twin.retired is not None:
            ends[twin.identity] = max(twin.retired, ends.get(twin.identity, twin.retired))
    return [record for record in records if ends.get(record.identity, record.recorded) <= record.recorded]


def _choose(store: Reading, query: ItemQuery, choice: Choice) -> list[Record]:
    """The records of a query that are wanted; its limit and offset count no others."""
    limit, records, size = query.limit or 1, list[Record](), max(query.limit or 1, _READ_AT_ONCE)
    wanted = query.offset + limit
    page = query._replace(limit=size, offset=0)
    while len(records) < wanted:
        read = store.select(page)
        records += filter(choice.fits, read)
        if len(read) < size:
            break
        page = _from_number(page, read[-1].seq)
    return records[query.offset : wanted]


def _from_number(query: ItemQuery, cursor: int | None) -> ItemQuery:
    if cursor is None:
        return query
    return query._replace(until=cursor - 1) if query.order == "newest" else query._replace(after=cursor)


def recent_page(
    store: Store, scopes: Sequence[Scope] | None, query: ItemQuery, after: str, bounds: Bounds = NO_BOUNDS
) -> Page[Item]:
    """The atoms of a query in the whole store, or in what these scopes mean, the latest first, from a cursor on."""
    limit = query.limit or 1
    wanted = query._replace(order="latest", limit=limit + 1, skip_damaged=True)

    def read(store: Reading) -> Page[Item]:
        query = wanted._replace(older_than=_parse_moment(store, after)) if after != "" else wanted
        records = store.select(query) if scopes is None else _select_latest(store, scopes, query)
        streams = store.streams(ids=list({record.stream for record in records}))
        notes = damage_notes(each for stream in streams for each in store.noticed(stream.id))
        notes = notes if records or after or not scopes else near_scope_notes(store, scopes, bounds)
        shown, has_more = records[:limit], len(records) > limit
        next_page = f"{to_micros(shown[-1].recorded)}:{seal_number(store, shown[-1].seq)}" if has_more else ""
        owners = {stream.id: stream.scope for stream in streams}
        return Page(tuple(record.item(owners[record.stream]) for record in shown), next_page, notes)

    return store.read(scopes or (), read)


def _select_latest(store: Reading, scopes: Sequence[Scope], query: ItemQuery) -> list[Record]:
    """The latest of several streams. Those whose last atom comes too early are not read, nor what others hold."""
    found, limit = list[Record](), query.limit or 1
    streams = {stream.id for scope in scopes for stream in streams_of(store, scope)}
    for stream, moment in store.last_recorded([*streams], query.older_than[0] if query.older_than else query.before):
        if len(found) == limit:
            if moment < found[-1].recorded:
                break
            query = query._replace(since=found[-1].recorded)
        found = sorted(found + store.select(query._replace(stream=stream)), key=_MOMENT, reverse=True)[:limit]
    return found


def _parse_moment(store: Reading, after: str) -> tuple[datetime, int]:
    micros, _, seq = after.partition(":") if isinstance(after, str) else ("", "", "")
    digits = micros.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS and is_sealed(seq)):
        raise bad_cursor(after)
    try:
        return from_micros(int(micros)), open_number(store, seq)
    except OverflowError:
        raise bad_cursor(after) from None


T = TypeVar("T")

_MAX_VIEWS: Final = 256
"""Those that were used last stay."""
_NO_STREAM: Final = -1


class _View(NamedTuple):
    version: int
    """The stream's version before it was built."""
    value: Any


class ViewCache:
    """Views by scope and name. One that was built in bounds is not shown outside them. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._views: OrderedDict[tuple[str, Bounds, str], _View] = OrderedDict()
        self._lock = threading.Lock()
        self._generation = 0

    def view(self, scope: Scope, bounds: Bounds, name: str, build: Callable[[], T]) -> T:
        """What `build` makes of the scope as it stands, or what it made before, if nothing was written since."""
        key, generation, version = (scope.text, bounds, name), self._generation, self._version(scope)
        with self._lock:
            known = self._views.get(key)
            if known and known.version == version:
                self._views.move_to_end(key)
                value: T = known.value
                return value
        value = build()
        with self._lock:
            if generation == self._generation:  # otherwise it may hold what was forgotten meanwhile
                self._views[key] = _View(version, value)
                if len(self._views) > _MAX_VIEWS:
                    self._views.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._lock:
            self._generation += 1
            self._views.clear()

    def _version(self, scope: Scope) -> int:
        stream = self._store.read([scope], lambda store: store.stream(scope))
        return stream.version if stream else _NO_STREAM
