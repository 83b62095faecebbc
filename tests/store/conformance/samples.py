"""Records for the conformance suite, and what several of its tests do with them."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final, TypeVar

from eunoe.model.atom import Record
from eunoe.model.scope import Scope, ScopeLike
from eunoe.store import schema
from eunoe.store.contract import IndexRow, ItemQuery, Reading, Store, Writing
from eunoe.store.schema import TABLES, Lease, StreamState, Tombstone

Opener = Callable[[], Store]
T = TypeVar("T")

ANNA: Final = Scope(user="anna")
BEN: Final = Scope(user="ben")
NOW: Final = datetime(2024, 5, 7, 18, 30, tzinfo=UTC)

_numbers = count(1)


def new_fact(number: int, stream: StreamState, **fields: Any) -> Record:
    """A fact that is told from others by a number, with whatever else is given."""
    name = f"number {number}"
    fact = Record("fact", f"id {name}", name.encode(), f"text {name}", NOW, stream=stream.id, version=stream.version)
    return fact._replace(**fields)


def insert_facts(store: Store, scope: ScopeLike, count: int = 1, **fields: Any) -> list[Record]:
    """Insert facts in one step, as the engine does."""

    def insert(store: Writing) -> list[Record]:
        stream = store.advance(store.create_stream(Scope.of(scope)).id)
        return store.insert(stream, [new_fact(next(_numbers), stream, **fields) for _ in range(count)])

    return store.write((), insert)


def delete_records(store: Store, records: Sequence[Record]) -> int:
    """Delete records of one stream in one step; return the version at which they went."""

    def delete(store: Writing) -> int:
        version = store.advance(records[0].stream).version
        store.delete(records[0].stream, seqs_of(records), version)
        return version

    return store.write((), delete)


def seqs_of(records: Iterable[Record | IndexRow]) -> list[int]:
    return [record.seq for record in records]


def tombstone(name: str, session: str = "", position: int | None = None) -> Tombstone:
    return Tombstone(name.encode(), f"content of {name}".encode(), session.encode(), position)


def table_records(fact: Record, word: str = "first") -> list[Any]:
    """A record for every table, with keys that follow from the fact and values that follow from the word."""
    stream, number = fact.stream, len(word)
    lease = Lease(word, NOW, number, NOW, f"error {word}")
    return [
        schema.SettingsRecord(stream, word, {"ä": [number, {"deep": None}]}),
        schema.SessionState(stream, 3, number, 2.5, NOW, (word, "Änna")),
        schema.Job(stream, 5, 9, lease),
        schema.LeaseRecord(stream, "chunk 1", {"first": word}, lease),
        schema.SummaryState(stream, 3, number, True, lease),
        schema.RevisionRecord(stream, 2, 1, word, (word, "ö"), "hand", NOW),
        schema.Absorption(stream, fact.id, number),
        schema.StreamLink(stream, stream),
        schema.PassageGraphRecord(fact.seq, word.encode(), word, "{}"),
        schema.KeptIndexPart(stream, 1, word.encode()),
        schema.AccessCount(fact.seq, number, NOW),
        schema.UsageRecord("form", fact.id, number, cost=0.5),
        schema.CallRecord(fact.seq, "form", word, "user=anna", NOW, number, 3, 4, 0.5, ""),
        schema.IncognitoMark(fact.identity),
    ]


def contents(store: Store) -> tuple[object, ...]:
    """All that a store holds, but for its size."""

    def read(store: Reading) -> tuple[object, ...]:
        streams = store.streams()
        return (
            [(stream, store.select(ItemQuery(stream.id)), store.tombstones(stream.id)) for stream in streams],
            [store.load(table) for table in TABLES],
            store.counts()._replace(bytes=0),
            store.get_value("name"),
        )

    return store.read((), read)


def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments).result()
