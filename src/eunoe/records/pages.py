"""Pages of what a store holds: of one scope in the order of its numbers, of many with what was learned last first."""

from collections.abc import Sequence, Set
from datetime import datetime
from operator import attrgetter
from typing import Final

from eunoe.errors import InputError
from eunoe.model.bounds import NO_BOUNDS, Bounds
from eunoe.model.record import Item, Record
from eunoe.model.report import Page
from eunoe.model.scope import Scope
from eunoe.model.time import from_micros, to_micros
from eunoe.model.validation import show
from eunoe.records.damage import damage_notes
from eunoe.records.near_scopes import near_scope_notes
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery

_MAX_CURSOR_DIGITS: Final = 18
_MOMENT: Final = attrgetter("recorded", "seq")


def list_page(
    store: Store, scope: Scope, query: ItemQuery, labels: Set[str], after: str, bounds: Bounds = NO_BOUNDS
) -> Page[Item]:
    """What a scope holds of a query, from a cursor on; with one of these labels, if there are any."""
    cursor, limit, records = parse_cursor(after), query.limit or 1, list[Record]()
    with store.reading():
        stream = store.stream(scope)
        notes = () if stream and stream.version else near_scope_notes(store, [scope], bounds)
        notes += damage_notes(store.damage(stream.id) if stream else ())
        while stream and len(records) <= limit:
            own = query._replace(stream=stream.id, limit=limit + 1, skip_damaged=True)
            page = store.select(_from_number(own, cursor))
            records += [record for record in page if not labels or record.label in labels]
            if len(page) <= limit:
                break
            cursor = page[-1].seq
    next_page = str(records[limit - 1].seq) if len(records) > limit else ""
    return Page(tuple(record.item(scope) for record in records[:limit]), next_page, notes)


def _from_number(query: ItemQuery, cursor: int | None) -> ItemQuery:
    if cursor is None:
        return query
    return query._replace(until=cursor - 1) if query.order == "newest" else query._replace(after=cursor)


def recent_page(store: Store, scopes: Sequence[Scope] | None, query: ItemQuery, after: str) -> Page[Item]:
    """The atoms of a query in all scopes, or in those that have the keys of one of these, the latest first, from a
    cursor on."""
    limit = query.limit or 1
    query = query._replace(order="latest", limit=limit + 1, skip_damaged=True)
    if after != "":
        query = query._replace(older_than=_parse_moment(after))
    with store.reading():
        records = store.select(query) if scopes is None else _select_latest(store, scopes, query)
        streams = store.streams(ids=list({record.stream for record in records}))
        damage = [each for stream in streams for each in store.noticed(stream.id)]
    owners = {stream.id: stream.scope for stream in streams}
    shown = records[:limit]
    next_page = f"{to_micros(shown[-1].recorded)}:{shown[-1].seq}" if len(records) > limit else ""
    return Page(tuple(record.item(owners[record.stream]) for record in shown), next_page, damage_notes(damage))


def _select_latest(store: Store, scopes: Sequence[Scope], query: ItemQuery) -> list[Record]:
    """The latest of several streams. Those whose last atom comes too early are not read, nor what others hold."""
    found, limit = list[Record](), query.limit or 1
    for stream, moment in store.last_recorded(scopes, query.older_than[0] if query.older_than else query.before):
        if len(found) == limit:
            if moment < found[-1].recorded:
                break
            query = query._replace(since=found[-1].recorded)
        found = sorted(found + store.select(query._replace(stream=stream)), key=_MOMENT, reverse=True)[:limit]
    return found


def parse_cursor(after: str) -> int | None:
    """The number that a page ended with; None where it is the first one."""
    if after == "":
        return None
    if not _is_number(after):
        raise InputError(f"cannot read on after {show(after)}: pass the `next` of the page before")
    return int(after)


def _parse_moment(after: str) -> tuple[datetime, int]:
    micros, _, seq = after.partition(":") if isinstance(after, str) else ("", "", "")
    try:
        if _is_number(micros.removeprefix("-")) and _is_number(seq):
            return from_micros(int(micros)), int(seq)
    except OverflowError:
        pass
    raise InputError(f"cannot read on after {show(after)}: pass the `next` of the page before")


def _is_number(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _MAX_CURSOR_DIGITS
