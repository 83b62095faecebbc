"""Pages of what a store holds: of one scope in the order of its numbers, of many with what was learned last first."""

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from eunoe.model.arguments import from_micros, to_micros
from eunoe.model.atom import NO_BOUNDS, Bounds, Item, Record
from eunoe.model.result import Page
from eunoe.model.scope import Scope
from eunoe.records.cursors import bad_cursor, is_sealed, open_number, parse_cursor, seal_number
from eunoe.records.damage import damage_notes, stream_notes
from eunoe.records.near_scopes import near_scope_notes
from eunoe.store.contract import Store, streams_of
from eunoe.store.query import ItemQuery

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
    with store.reading():
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


def _without_outdated(store: Store, records: Sequence[Record], streams: Sequence[int]) -> list[Record]:
    """Without the open atoms that another stream held in the same words and has closed since."""
    identities = [record.identity for record in records if record.kind != "message"]
    twins = store.select(ItemQuery(streams=streams, identities=identities, skip_damaged=True)) if identities else []
    ends: dict[bytes, datetime] = {}
    for twin in twins:
        if twin.retired is not None:
            ends[twin.identity] = max(twin.retired, ends.get(twin.identity, twin.retired))
    return [record for record in records if ends.get(record.identity, record.recorded) <= record.recorded]


def _choose(store: Store, query: ItemQuery, choice: Choice) -> list[Record]:
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
    query = query._replace(order="latest", limit=limit + 1, skip_damaged=True)
    with store.reading():
        if after != "":
            query = query._replace(older_than=_parse_moment(store, after))
        records = store.select(query) if scopes is None else _select_latest(store, scopes, query)
        streams = store.streams(ids=list({record.stream for record in records}))
        notes = damage_notes(each for stream in streams for each in store.noticed(stream.id))
        notes = notes if records or after or not scopes else near_scope_notes(store, scopes, bounds)
        shown, has_more = records[:limit], len(records) > limit
        next_page = f"{to_micros(shown[-1].recorded)}:{seal_number(store, shown[-1].seq)}" if has_more else ""
    owners = {stream.id: stream.scope for stream in streams}
    return Page(tuple(record.item(owners[record.stream]) for record in shown), next_page, notes)


def _select_latest(store: Store, scopes: Sequence[Scope], query: ItemQuery) -> list[Record]:
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


def _parse_moment(store: Store, after: str) -> tuple[datetime, int]:
    micros, _, seq = after.partition(":") if isinstance(after, str) else ("", "", "")
    digits = micros.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS and is_sealed(seq)):
        raise bad_cursor(after)
    try:
        return from_micros(int(micros)), open_number(store, seq)
    except OverflowError:
        raise bad_cursor(after) from None
