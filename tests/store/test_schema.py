"""The schema is written once, for SQLite and for PostgreSQL, and all of one owner lies in one place."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from tests.store.conformance import insert_facts

from eunoe.model.scope import Scope
from eunoe.store.schema import ALL_TABLES, POSTGRESQL, SEQ_BITS, SQLITE, STREAM_BITS, Dialect, ddl, place_of
from eunoe.store.sqlite import SqliteStore


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRESQL], ids=["sqlite", "postgresql"])
def test_a_place_stands_first_in_every_key_of_what_belongs_to_a_stream(dialect: Dialect) -> None:
    statements = list(ddl(dialect))
    made = {match[1] for text in statements if (match := re.match(r"CREATE TABLE (\w+)", text))}
    assert made == {table.name for table in ALL_TABLES}
    of_streams = {table.name for table in ALL_TABLES if table.place}
    for text in statements:
        table = re.search(r"(?:TABLE|ON) (\w+)", text)
        assert table
        keys = re.findall(r"PRIMARY KEY \((\w+)", text) + re.findall(r"UNIQUE INDEX \w+ ON \w+ \((\w+)", text)
        if table[1] in of_streams:
            assert keys in ([], ["place"]), text


def test_both_dialects_make_the_same_columns_and_indexes() -> None:
    types = re.compile(r' (INTEGER|REAL|BLOB|TEXT|bigint|double precision|bytea|text COLLATE "C")(?=[ ,])')
    names = [[types.sub("", text) for text in ddl(dialect)] for dialect in (SQLITE, POSTGRESQL)]
    assert [text.removesuffix(" WITHOUT ROWID") for text in names[0]] == names[1]
    with closing(sqlite3.connect(":memory:")) as connection:
        for text in ddl(SQLITE):
            connection.execute(text)


def test_a_user_and_their_sessions_have_the_same_place_whatever_else_is_named() -> None:
    anna = place_of(Scope(user="anna"))
    assert anna == place_of(Scope(user="anna", session="7", agent="cook"))
    assert anna != place_of(Scope(user="anna", tenant="acme"))
    assert place_of(Scope(project="a", session="1")) == place_of(Scope(project="a", session="2"))
    assert place_of(Scope(project="a")) != place_of(Scope(project="b"))


def test_every_number_tells_where_it_lies(tmp_path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    for scope in ("user=anna", "session=1/user=anna", "user=ben"):
        for number, record in enumerate(insert_facts(store, scope, 3), 1):
            assert record.stream >> STREAM_BITS == place_of(Scope.of(scope))
            assert (record.seq >> SEQ_BITS, record.seq & (1 << SEQ_BITS) - 1) == (record.stream, number)
    store.close()
