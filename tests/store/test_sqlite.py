"""The SQLite store keeps the contract, and what only it promises."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eunoe.errors import StoreBusyError, StoreError
from eunoe.store.conformance import Opener, StoreConformance, put
from eunoe.store.location import TemporaryStore
from eunoe.store.migrations import APPLICATION_ID, MIGRATIONS
from eunoe.store.sqlite import SqliteStore


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        return lambda: SqliteStore(tmp_path / "memory.db")


class TestTemporaryStore(StoreConformance):
    lasting = False

    @pytest.fixture
    def opener(self) -> Opener:
        return TemporaryStore


def test_a_temporary_store_is_gone_when_closed():
    store = TemporaryStore()
    put(store, "user=anna")
    folder = store.path.parent
    assert store.path.exists()
    store.close()
    assert not folder.exists()


def test_a_closed_store_is_one_file(tmp_path):
    store = SqliteStore(tmp_path / "memory.db")
    put(store, "user=anna", 10)
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


def test_the_file_is_stamped_and_durable(tmp_path):
    store = SqliteStore(tmp_path / "memory.db")
    with store.reading():
        pragmas = {
            name: store._one(f"PRAGMA {name}")[0]
            for name in ("application_id", "user_version", "journal_mode", "synchronous", "secure_delete")
        }
    store.close()
    assert pragmas == {
        "application_id": APPLICATION_ID,
        "user_version": len(MIGRATIONS),
        "journal_mode": "wal",
        "synchronous": 2,
        "secure_delete": 1,
    }


def test_a_writer_that_holds_on_too_long_is_named(tmp_path):
    store = SqliteStore(tmp_path / "memory.db", patience=0)
    store._connection().execute("PRAGMA busy_timeout = 0")
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="another writer"):
        put(store, "user=anna")
    holder.execute("ROLLBACK")
    put(store, "user=anna")
    holder.close()
    store.close()


def test_readers_do_not_wait_for_a_writer(tmp_path):
    store = SqliteStore(tmp_path / "memory.db", patience=0)
    put(store, "user=anna")
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with store.reading():
        assert store.counts().streams == 1
    holder.close()
    store.close()


def test_scrub_says_when_another_reader_keeps_old_words(tmp_path):
    store = SqliteStore(tmp_path / "memory.db", patience=0)
    store._connection().execute("PRAGMA busy_timeout = 0")
    put(store, "user=anna")
    reader = sqlite3.connect(store.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM items").fetchone()
    put(store, "user=anna")
    with pytest.raises(StoreBusyError, match="keeps reading"):
        store.scrub()
    reader.close()
    store.scrub()
    assert store.path.with_name("memory.db-wal").stat().st_size == 0
    store.close()


def _use(store: SqliteStore) -> str:
    try:
        put(store, "user=anna")
    except StoreError as error:
        return str(error)
    return "no error"


def test_a_forked_child_is_told_to_open_its_own(tmp_path):
    store = SqliteStore(tmp_path / "memory.db")
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(_use(store)))
    child.start()
    assert "forked" in ours.recv()
    child.join()
    put(store, "user=anna")
    store.close()


def test_connections_of_threads_that_ended_are_closed(tmp_path):
    store = SqliteStore(tmp_path / "memory.db")
    for _ in range(20):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(put, store, "user=anna").result()
    assert len(store._connections) < 5
    store.close()


def plans(store: SqliteStore, work: Callable[[], object]) -> list[str]:
    """How SQLite goes about what is read meanwhile."""
    statements: list[str] = []
    with store.reading():
        connection = store._connection()
        connection.set_trace_callback(statements.append)
        work()
        connection.set_trace_callback(None)
        return [row[-1] for sql in statements for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]


def test_what_a_stream_waits_for_is_found_without_a_look_at_the_others(tmp_path):
    store = SqliteStore(tmp_path / "memory.db")
    anna, ben = put(store, "user=anna", pending=1)[0].stream, put(store, "user=ben", pending=1)[0].stream
    here = plans(store, lambda: store.waiting(9, [anna, ben]))
    assert [plan.endswith("USING INDEX items_waiting (stream=?)") for plan in here] == [True, True]
    (everywhere,) = plans(store, lambda: store.waiting(9))
    assert everywhere.endswith("USING INDEX items_pending")
    store.close()
