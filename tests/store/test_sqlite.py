"""The SQLite store keeps the contract, and what only it promises."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.store.conformance import Opener, StoreConformance, insert_facts
from tests.support.steps import Steps

from eunoe.errors import StoreBusyError, StoreError
from eunoe.store.contract import ItemQuery, Reading, Writing
from eunoe.store.schema import APPLICATION_ID, SCHEMA, SummaryState
from eunoe.store.sqlite import SqliteStore
from eunoe.store.temporary import TemporaryStore

ANNA, BEN = "user=anna", "user=ben"


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        return lambda: SqliteStore(tmp_path / "memory.db")


class TestTemporaryStore(StoreConformance):
    is_lasting = False

    @pytest.fixture
    def opener(self) -> Opener:
        return TemporaryStore


@pytest.fixture
def store(path: Path):
    store = Steps(SqliteStore(path))
    yield store
    store.close()


@pytest.fixture
def impatient(path: Path):
    """A store that does not wait for others."""
    store = Steps(SqliteStore(path, timeout=0))
    store._connection().execute("PRAGMA busy_timeout = 0")
    yield store
    store.close()


def test_a_temporary_store_has_no_name():
    store = Steps(TemporaryStore())
    insert_facts(store, ANNA)
    assert not store.path.parent.exists()
    with store.reading():
        assert store.counts().bytes > 4096
    store.close()


def test_many_threads_take_turns_with_a_temporary_store():
    store = Steps(TemporaryStore())
    with ThreadPoolExecutor(50) as threads:
        list(threads.map(lambda number: insert_facts(store, f"user={number}"), range(200)))
    with store.reading():
        assert store.counts().streams == 200
    store.close()


def test_traces_are_found_in_a_store_without_a_name():
    store = Steps(TemporaryStore())
    with store.writing():
        store.set_value("note", "the key lies under the third stone")
    assert store.find_traces(["the key lies under the third stone"])
    with store.writing():
        store.set_value("note", "")
    assert store.find_traces(["the key lies under the third stone"])
    store.scrub()
    assert not store.find_traces(["the key lies under the third stone"])
    store.close()


def test_a_closed_store_is_one_file(store, tmp_path):
    insert_facts(store, ANNA, 10)
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


def test_the_file_is_stamped_and_durable(store):
    expected = {
        "application_id": APPLICATION_ID,
        "user_version": SCHEMA,
        "journal_mode": "wal",
        "synchronous": 2,
        "secure_delete": 1,
    }
    with store.reading():
        assert {name: store.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in expected} == expected


def test_a_writer_that_holds_on_too_long_is_named(impatient, path):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="another writer"):
        insert_facts(impatient, ANNA)
    holder.execute("ROLLBACK")
    insert_facts(impatient, ANNA)
    holder.close()


def test_readers_do_not_wait_for_a_writer(impatient, path):
    insert_facts(impatient, ANNA)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with impatient.reading():
        assert impatient.counts().streams == 1
    holder.close()


def test_scrub_says_when_another_reader_keeps_old_words(impatient, path):
    insert_facts(impatient, ANNA)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM items").fetchone()
    insert_facts(impatient, ANNA)
    with pytest.raises(StoreBusyError, match="keeps reading"):
        impatient.scrub()
    reader.close()
    impatient.scrub()
    assert path.with_name("memory.db-wal").stat().st_size == 0


def test_scrub_waits_for_another_thread_no_longer_than_it_may(store):
    with ThreadPoolExecutor(1) as thread, store.writing(), pytest.raises(StoreBusyError, match="another thread"):
        thread.submit(store.scrub, 0).result()


def _error_of_use(store: SqliteStore) -> str:
    try:
        insert_facts(store, ANNA)
    except StoreError as error:
        return str(error)
    return "no error"


def test_a_forked_child_is_told_to_open_its_own(store):
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(_error_of_use(store)))
    child.start()
    assert "forked" in ours.recv()
    child.join()
    insert_facts(store, ANNA)


def test_a_child_forked_in_the_middle_of_a_step_cannot_go_on_with_it(store):
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def fork(writing: Writing) -> None:
        def count() -> None:
            try:
                theirs.send(str(writing.counts()))
            except StoreError as error:
                theirs.send(str(error))

        child = context.Process(target=count)
        child.start()
        assert "forked" in ours.recv()
        child.join()
        writing.set_value("name", "parent")

    store.write((), fork)
    assert store.read((), lambda reading: reading.get_value("name")) == "parent"


def test_a_step_of_a_store_that_was_closed_meanwhile_says_so(path):
    store = SqliteStore(path)

    def close_and_count(reading: Reading) -> None:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(store.close).result()
        reading.counts()

    with pytest.raises(StoreError, match="was closed: open it again"):
        store.read((), close_and_count)


def test_a_store_opened_and_used_by_threads_that_end_keeps_its_log(tmp_path):
    """The last connection takes the log with it, while the next thread may be opening it."""
    for number in range(20):
        with ThreadPoolExecutor(1) as thread:
            store = thread.submit(SqliteStore, tmp_path / f"{number}.db").result()
        log = (tmp_path / f"{number}.db-wal").stat()
        for _ in range(2):
            with ThreadPoolExecutor(1) as thread:
                thread.submit(insert_facts, store, "user=anna").result()
        assert os.path.samestat((tmp_path / f"{number}.db-wal").stat(), log)
        store.close()


def test_connections_of_threads_that_ended_are_closed(store):
    for _ in range(20):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(insert_facts, store, ANNA).result()
    assert len(store._connections) < 5


def query_plans(store: SqliteStore, *queries: ItemQuery) -> list[str]:
    """How SQLite goes about each query."""
    statements: list[str] = []
    with store.reading():
        connection = store.connection
        connection.set_trace_callback(statements.append)
        for query in queries:
            store.select(query)
        connection.set_trace_callback(None)
        plans = [connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall() for sql in statements]
    return [" | ".join(row[-1] for row in plan) for plan in plans]


def test_what_a_stream_waits_for_is_found_without_a_look_at_the_others(store):
    anna, ben = (insert_facts(store, scope, pending=True)[0].stream for scope in (ANNA, BEN))
    here = query_plans(store, ItemQuery(anna, pending=True), ItemQuery(ben, pending=True, order="newest", limit=9))
    assert here == ["SEARCH i USING INDEX items_stream_pending (place=? AND stream=?)"] * 2
    assert query_plans(store, ItemQuery(pending=True, limit=9)) == ["SCAN i USING INDEX items_pending"]


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        (ItemQuery(seqs=[1, 2]), "sqlite_autoindex_items_1 (place=? AND seq=?)"),
        (ItemQuery(1, ids=["a"]), "items_id (place=? AND stream=? AND id=?)"),
        (ItemQuery(1, ids=["a", "b", "c"]), "items_id (place=? AND stream=? AND id=?)"),
        (ItemQuery(1, identities=[b"a"], open=True, limit=9), "items_identity (place=? AND stream=? AND identity=?)"),
        (ItemQuery(1, topics=[b"a"], open=True, order="newest"), "items_topic (place=? AND stream=? AND topic=?)"),
        (
            ItemQuery(1, topics=[b"a", b"b"], open=True, order="newest"),
            "items_topic (place=? AND stream=? AND topic=?)",
        ),
        (ItemQuery(1, topic_start=b"a", open=True), "items_topic (place=? AND stream=? AND topic>? AND topic<?)"),
        (
            ItemQuery(1, session="a", order="position", limit=9),
            "items_log (place=? AND stream=? AND session=? AND position>?)",
        ),
        (
            ItemQuery(1, kinds=("fact",), open=True, order="newest", limit=9),
            "items_atoms (place=? AND stream=? AND kind=?)",
        ),
        (ItemQuery(1, after=5, limit=9), "items_stream (place=? AND stream=? AND seq>?)"),
    ],
)
def test_a_query_reads_only_what_it_asks_for(store, query, plan):
    (found,) = query_plans(store, query)
    search, _, sorting = found.partition(" | ")
    assert search.startswith("SEARCH i USING ")
    assert search.endswith(plan)
    # What is unique needs no index to be in order, and the few of some ids or topics are sorted quickly.
    assert not sorting or query.ids or query.identities or query.topics or query.topic_start


def test_summaries_to_rebuild_are_found_by_their_index(store):
    statements: list[str] = []
    with store.reading():
        connection = store.connection
        connection.set_trace_callback(statements.append)
        store.load(SummaryState, rebuild=True)
        connection.set_trace_callback(None)
        (plan,) = connection.execute(f"EXPLAIN QUERY PLAN {statements[0]}").fetchall()
    assert plan[-1].endswith("USING INDEX summaries_rebuild")
