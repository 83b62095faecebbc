"""Every record comes back from a SQLite file as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NamedTuple, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.steps import Steps

from eunoe.model.arguments import KINDS, Kind
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.store.codec import Table, TimeOrNever, find_damaged, row_checksum
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import TABLES, Lease
from eunoe.store.temporary import TemporaryStore

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
BLOBS = st.binary(max_size=20)
LISTS = st.lists(TEXTS, max_size=3).map(tuple)
TIMES = st.datetimes(timezones=st.just(UTC)) | st.sampled_from(
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXTS, values, max_size=3),
    max_leaves=6,
)
LEASE_START = datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)  # the moment before is kept as never
VALUES: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: INTEGERS,
    float: st.floats(allow_nan=False),
    bytes: BLOBS,
    bool: st.booleans(),
    Kind: st.sampled_from(KINDS),
    int | None: st.none() | INTEGERS,
    bytes | None: st.none() | BLOBS,
    datetime: TIMES,
    datetime | None: st.none() | TIMES,
    TimeOrNever: st.none() | TIMES.map(lambda time: max(time, LEASE_START)),
    tuple[str, ...]: LISTS,
    tuple[tuple[str, ...], ...]: st.lists(LISTS.filter(bool), max_size=3).map(tuple),
    Mapping[str, Any]: st.dictionaries(TEXTS, JSON, max_size=3),
}


def records_of(table: type[Any]) -> st.SearchStrategy[Any]:
    """Records with any values, and often with the default."""
    hints = get_type_hints(table, include_extras=True)
    fields = {}
    for name in table._fields:
        values = records_of(Lease) if hints[name] is Lease else VALUES[hints[name]]
        has_default = name in table._field_defaults
        fields[name] = values | st.just(table._field_defaults[name]) if has_default else values
    return st.builds(table, **fields)


@pytest.fixture(scope="module")
def store():
    store = Steps(TemporaryStore())
    yield store
    store.close()


def type_of_json(value: object) -> object:
    """Its types all the way down: 1, 1.0 and True are equal and not the same."""
    if isinstance(value, Mapping):
        return {key: type_of_json(each) for key, each in value.items()}
    return [type_of_json(each) for each in value] if isinstance(value, list | tuple) else type(value)


def assert_same(found: list[Any], written: list[Any]) -> None:
    assert found == written
    assert list(map(type_of_json, found)) == list(map(type_of_json, written))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
@given(data=st.data())
def test_records_of_every_table_survive(store, table, data):
    def key(record):
        return tuple(getattr(record, name) for name in TABLES[table].key)

    written = data.draw(st.lists(records_of(table), min_size=1, max_size=4, unique_by=key))
    with store.writing():
        store.drop(table)
        store.save(written)
        assert_same(store.load(table), sorted(written, key=key))


@given(records=st.lists(records_of(Record), min_size=1, max_size=4, unique_by=(lambda r: r.id, lambda r: r.identity)))
def test_messages_and_atoms_survive(store, records):
    with store.writing():
        stream = store.advance(store.create_stream(Scope(user="anna")).id)
        store.delete(stream.id, [record.seq for record in store.select(ItemQuery())], stream.version)
        placed = [record._replace(stream=stream.id, version=stream.version) for record in records]
        inserted = store.insert(stream, placed)
        assert [record._replace(seq=0) for record in inserted] == [record._replace(seq=0) for record in placed]
        assert_same(store.select(ItemQuery(stream.id)), inserted)
        changed = [
            record._replace(id=str(record.seq), identity=b"%d" % record.seq, seq=record.seq) for record in inserted
        ]
        store.update(changed)
        assert_same(store.select(ItemQuery(stream.id)), changed)


@given(data=st.data(), table=st.sampled_from([Record, *TABLES]))
def test_nothing_is_encoded_differently_in_company(data, table):
    codec = Table("any", table, ())
    records = data.draw(st.lists(records_of(table), max_size=4))
    rows = codec.encode(records)
    assert rows == [row for record in records for row in codec.encode([record])]
    assert codec.decode(rows) == [found for row in rows for found in codec.decode([row])]


@given(records=st.lists(records_of(Record), min_size=1, max_size=4))
def test_columns_are_encoded_as_rows_are(records):
    items = Table("items", Record, ("seq",))
    fields = dict(zip(Record._fields, zip(*records, strict=True), strict=True))
    columns = [items.encode_column[name](fields[name]) for name in items.values]
    assert list(zip(*columns, strict=True)) == [row[:-1] for row in items.encode(records)]


def test_a_checksum_is_the_same_for_ever():
    row = ("NUL \0 and emoji 🌊", "", None, 0, -1, 2**62, -(2**63), 0.5, 1e300, b"", b"\x00\xff" * 9)
    assert row_checksum(row) == 918178646


@given(data=st.data(), table=st.sampled_from([Record, *TABLES]))
def test_every_flipped_bit_of_a_value_is_told(data, table):
    codec = Table("any", table, ())
    [row] = codec.encode([data.draw(records_of(table))])
    assert find_damaged([row]) == []
    place = data.draw(st.sampled_from(range(len(row))))
    value = row[place]
    if isinstance(value, int):
        changed = value ^ 1 << data.draw(st.integers(0, 62))
    elif isinstance(value, str | bytes) and value:
        content = bytearray(value.encode() if isinstance(value, str) else value)
        content[data.draw(st.sampled_from(range(len(content))))] ^= 1 << data.draw(st.integers(0, 7))
        changed = content.decode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(content)
    else:
        changed = "something else"
    assert find_damaged([(*row[:place], changed, *row[place + 1 :])])


class Word(str):
    """A text that a database takes for a plain one."""

    __slots__ = ()


def test_a_kind_of_text_has_the_checksum_of_a_plain_one():
    assert row_checksum((Word("one"), Choice.FIRST)) == row_checksum(("one", 1))


class Choice(IntEnum):
    FIRST = 1


class Odd(NamedTuple):
    field: frozenset[str]


def test_an_unknown_type_of_field_is_refused():
    with pytest.raises(KeyError):
        Table("odd", Odd, ("field",))
