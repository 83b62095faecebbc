"""Records and stores, made past the engine."""

from __future__ import annotations

from itertools import count
from typing import Any

from eunoe.model.arguments import parse_time
from eunoe.model.atom import Record
from eunoe.model.scope import Scope, ScopeLike
from eunoe.records.identity import topic_of
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import StreamState

NOON = parse_time("2024-05-07T12:00")
_numbers = count(1)


def make_record(**fields: Any) -> Record:
    """A record with an id, an identity and a text of its own; a memory key may stand in its metadata."""
    number = next(_numbers)
    record = Record(
        kind="fact", id=f"r{number}", identity=f"identity {number}".encode(), text=f"text {number}", recorded=NOON
    )
    record = record._replace(**fields)
    return record._replace(topic=topic_of(record.kind, record.metadata, record.people))


def insert(store: Store, scope: ScopeLike, *records: Record) -> list[Record]:
    """Put records into a stream, in a step of their own."""

    def write(store: Writing) -> list[Record]:
        return store.insert(store.advance(store.create_stream(Scope.of(scope)).id), records)

    return store.write((), write)


def stream_of(store: Store, scope: ScopeLike) -> StreamState:
    stream = store.read((), lambda store: store.stream(Scope.of(scope)))
    assert stream is not None
    return stream


def items_of(store: Store, scope: ScopeLike, **query: Any) -> list[Record]:
    """All records of a scope, closed ones too."""

    def find(store: Reading) -> list[Record]:
        stream = store.stream(Scope.of(scope))
        return store.select(ItemQuery(stream.id, **query)) if stream else []

    return store.read((), find)
