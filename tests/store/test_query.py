"""A query finds what the same conditions find in Python."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.steps import Steps

from eunoe.model.arguments import KINDS
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.store import statements
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import Absorption, PassageGraphRecord
from eunoe.store.statements import MAX_PARAMETERS, where_clauses
from eunoe.store.temporary import TemporaryStore

NOW = datetime(2024, 5, 7, tzinfo=UTC)
SIZE = 60
HOURS = [NOW + timedelta(hours=hour) for hour in range(6)]


class Stock:
    """A store with records of every sort, and what it holds besides."""

    def __init__(self) -> None:
        self.store = Steps(TemporaryStore())
        with self.store.writing():
            streams = [self.store.advance(self.store.create_stream(Scope(user=name)).id) for name in "ab"]
            self.records = [
                record
                for number in range(SIZE)
                for record in self.store.insert(streams[number % 2], [self._record(number)])
            ]
            self.model = self.store.create_model("model", 2).number
            self.embedded = {record.seq for record in self.records if record.seq % 3}
            self.graphs = {record.seq for record in self.records if record.seq % 4}
            self.absorbed = {(record.stream, record.id) for record in self.records if record.seq % 5 == 0}
            self.store.put_vectors(self.model, [(seq, b"1234") for seq in self.embedded])
            self.store.save([PassageGraphRecord(seq, b"", "", "") for seq in self.graphs])
            self.store.save([Absorption(stream, id, 1) for stream, id in self.absorbed])
        self.records.sort(key=lambda record: record.seq)

    def _record(self, number: int) -> Record:
        kind = KINDS[number % 3]
        return Record(
            kind=kind,
            id=f"id {number // 2}",
            identity=f"identity {number // 6}".encode(),
            text="text",
            recorded=HOURS[number % 5],
            in_review=number % 8 == 0,
            label=LABELS[number % 3],
            pending=number % 7 == 0,
            session="s" * (number % 4 % 3),
            retired=HOURS[number % 6] if number % 6 > 1 else None,
            position=(number * 7) % SIZE if kind == "message" else None,
            supports=(("a",),) if number % 4 == 0 else (),
            metadata={"a": number} if number % 5 == 0 else {},
            topic=b"topic" if number % 9 == 0 else None,
            superseded_by=f"id {number // 4}" if number % 6 > 3 else "",
        )

    def matches(self, query: ItemQuery, record: Record) -> bool:
        checks = {
            "stream": lambda value: record.stream == value,
            "streams": lambda value: record.stream in value,
            "kinds": lambda value: record.kind in value,
            "labels": lambda value: record.label in value,
            "ids": lambda value: record.id in value,
            "identities": lambda value: record.identity in value,
            "superseded_by": lambda value: bool(record.superseded_by) and record.superseded_by in value,
            "archived": lambda value: not value or (record.retired is not None and not record.superseded_by),
            "metadata_parts": lambda value: all(any(part in self._json(record) for part in parts) for parts in value),
            "topics": lambda value: record.topic in value,
            "topic_start": lambda value: record.topic is not None and record.topic.startswith(value),
            "seqs": lambda value: record.seq in value,
            "after": lambda value: record.seq > value,
            "until": lambda value: record.seq <= value,
            "session": lambda value: record.position is not None and record.session == value,
            "open": lambda value: not value or self._is_open(record, query.known_at),
            "known_at": lambda value: record.recorded <= value,
            "since": lambda value: record.recorded >= value,
            "before": lambda value: record.recorded < value,
            "older_than": lambda value: (record.recorded, record.seq) < value,
            "reviewed": lambda value: not record.in_review or not value,
            "in_review": lambda value: record.in_review or not value,
            "supported": lambda value: bool(record.supports) or not value,
            "described": lambda value: bool(record.metadata) or not value,
            "pending": lambda value: record.pending or not value,
            "unabsorbed": lambda value: (record.stream, record.id) not in self.absorbed or not value,
            "without_graph": lambda value: record.seq not in self.graphs or not value,
            "without_vector": lambda value: value != self.model or record.seq not in self.embedded,
        }
        assert {*checks, "order", "limit", "offset", "skip_damaged"} == set(ItemQuery._fields)
        return all(getattr(query, name) is None or check(getattr(query, name)) for name, check in checks.items())

    @staticmethod
    def _json(record: Record) -> str:
        return json.dumps(record.metadata, separators=(",", ":")) if record.metadata else ""

    @staticmethod
    def _is_open(record: Record, known_at: datetime | None) -> bool:
        return record.retired is None or (known_at is not None and record.retired > known_at)

    def select(self, query: ItemQuery) -> list[Record]:
        found = [record for record in self.records if self.matches(query, record)]
        if query.order == "newest":
            found.reverse()
        if query.order == "latest":
            found.sort(key=lambda record: (record.recorded, record.seq), reverse=True)
        if query.order == "position":
            found.sort(key=lambda record: (record.position is None, -(record.position or 0), -record.seq))
        found = found[query.offset :]
        return found if query.limit is None else found[: query.limit]


@pytest.fixture(scope="module")
def stock():
    yield STOCK
    STOCK.store.close()


def optional(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | st.none() | values


def lists(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return optional(st.lists(values, max_size=25))


LABELS = ("", "plan", "correction")
STOCK = Stock()
SEQS = st.sampled_from([record.seq for record in STOCK.records]) | st.integers(-1, SIZE)
STREAMS = st.sampled_from(sorted({record.stream for record in STOCK.records})) | st.integers(0, 3)

QUERIES = st.builds(
    ItemQuery,
    stream=optional(STREAMS),
    streams=optional(st.lists(STREAMS, max_size=3)),
    kinds=lists(st.sampled_from(KINDS)),
    labels=lists(st.sampled_from(LABELS)),
    ids=lists(st.integers(0, SIZE).map(lambda number: f"id {number}")),
    identities=lists(st.integers(0, SIZE // 6).map(lambda number: f"identity {number}".encode())),
    superseded_by=lists(st.integers(0, SIZE).map(lambda number: f"id {number}")),
    archived=st.booleans(),
    metadata_parts=st.lists(
        st.lists(st.sampled_from(['"a":', '"a":1', "5}", "x"]), min_size=1, max_size=2), max_size=2
    ),
    topics=lists(st.sampled_from([b"topic", b"other"])),
    topic_start=st.none() | st.sampled_from([b"to", b"topic", b"topics"]),
    seqs=lists(SEQS),
    after=optional(SEQS),
    until=optional(SEQS),
    session=optional(st.sampled_from(["", "s", "ss", "x"])),
    open=st.booleans(),
    known_at=optional(st.sampled_from(HOURS)),
    since=optional(st.sampled_from(HOURS)),
    before=optional(st.sampled_from(HOURS)),
    older_than=optional(st.tuples(st.sampled_from(HOURS), SEQS)),
    reviewed=st.booleans(),
    in_review=st.booleans(),
    supported=st.booleans(),
    described=st.booleans(),
    pending=st.booleans(),
    unabsorbed=st.booleans(),
    without_graph=st.booleans(),
    without_vector=optional(st.sampled_from([1, -1])),
    order=st.sampled_from(["seq", "newest", "latest", "position"]),
    limit=optional(st.integers(0, 5)),
    offset=st.just(0) | st.integers(0, 5),
    skip_damaged=st.booleans(),
)


@given(query=QUERIES)
def test_select_and_count_agree_with_python(stock, query):
    if query.streams or query.seqs:  # with an offset, a list must fit one statement, and be of one place
        query = query._replace(offset=0)
    with stock.store.reading():
        assert stock.store.select(query) == stock.select(query)
        assert stock.store.count(query) == len(stock.select(query._replace(limit=None, offset=0)))


@given(query=QUERIES, size=st.integers(1, 4))
def test_lists_that_take_several_statements_find_the_same(stock, query, size):
    query = query._replace(offset=0)  # with one, a list must fit one statement
    with pytest.MonkeyPatch.context() as patch, stock.store.reading():
        patch.setattr(statements, "MAX_PARAMETERS", size)
        assert stock.store.select(query) == stock.select(query)
        assert stock.store.count(query) == len(stock.select(query._replace(limit=None, offset=0)))


@pytest.mark.parametrize("count", [0, 1, MAX_PARAMETERS, MAX_PARAMETERS + 1, 7 * MAX_PARAMETERS])
def test_no_list_in_a_statement_is_too_long(count):
    clauses = where_clauses([("a = ?", (5,)), ("b IN ({})", range(count)), ("c IS NULL", ())])
    assert [len(values) - 1 for _, values in clauses] == [
        min(MAX_PARAMETERS, count - start) for start in range(0, count, MAX_PARAMETERS)
    ]
    assert [value for _, values in clauses for value in values[1:]] == list(range(count))
    assert all(clause.count("?") == len(values) for clause, values in clauses)


def test_no_condition_finds_everything():
    assert where_clauses([]) == [("1 = 1", [])]
