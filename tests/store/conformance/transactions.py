"""Promises about blocks: whole or not at all, one snapshot, one writer at a time, and durable."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest
from tests.store.conformance.samples import (
    ANNA,
    BEN,
    NOW,
    contents,
    delete_records,
    in_thread,
    insert_facts,
    new_fact,
    seqs_of,
    table_records,
    tombstone,
)
from tests.support.steps import Steps

from eunoe.errors import StoreBusyError, StoreError
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import AccessCount, UsageRecord


class _Stop(Exception):
    """Raised in the middle of a block."""


class TransactionConformance:
    def test_a_block_that_raises_has_never_happened(self, store: Steps) -> None:
        (fact,) = insert_facts(store, ANNA)
        with store.writing():
            _write_everything(store, fact, "first")
        before = contents(store)
        with pytest.raises(_Stop):
            _run_and_stop(store.writing(), _write_everything, store, fact, "second")
        with pytest.raises(_Stop):
            _run_and_stop(store.writing(), lambda: store.delete(fact.stream, [fact.seq], 9))
        with pytest.raises(_Stop):
            _run_and_stop(store.reading(), lambda: store.counts())
        assert contents(store) == before
        insert_facts(store, ANNA)

    def test_a_failed_statement_takes_its_whole_block_along(self, store: Steps) -> None:
        (fact,) = insert_facts(store, ANNA)
        before = contents(store)

        def insert_again() -> None:
            with store.writing():
                stream = store.create_stream(ANNA)
                store.insert(stream, [fact._replace(id="new", identity=b"new")])
                store.insert(stream, [fact])

        with pytest.raises(StoreError):
            insert_again()
        assert contents(store) == before

    def test_reading_is_one_snapshot_as_of_the_moment_it_began(self, store: Steps) -> None:
        with store.reading():
            in_thread(insert_facts, store, ANNA)
            assert store.streams() == []
        with store.reading():
            before = store.streams(), store.select(ItemQuery())
            in_thread(insert_facts, store, ANNA)
            in_thread(insert_facts, store, BEN)
            assert (store.streams(), store.select(ItemQuery())) == before

    def test_a_step_reads_what_it_wrote_and_nobody_else_does_before_it_ends(self, store: Steps) -> None:
        with store.writing():
            store.create_stream(ANNA)
            assert len(store.streams()) == 1
            assert in_thread(_scopes, store) == []
        assert _scopes(store) == [ANNA]

    def test_a_step_that_writes_neither_begins_another_one_nor_begins_in_one(self, store: Steps) -> None:
        for outer, inner in ((store.write, store.write), (store.write, store.read), (store.read, store.write)):
            with pytest.raises(StoreError):
                outer((), lambda _, inner=inner: inner((), lambda _: None))
        insert_facts(store, ANNA)

    def test_what_a_step_is_given_ends_with_it(self, store: Steps) -> None:
        for run in (store.read, store.write):
            kept = run((), lambda given: given)
            with pytest.raises(StoreError):
                kept.counts()

    def test_writers_wait_for_each_other(self, store: Steps) -> None:
        started, order = threading.Event(), []

        def write_second() -> None:
            started.set()
            with store.writing():
                order.append("second")

        with ThreadPoolExecutor(1) as thread:
            with store.writing():
                second = thread.submit(write_second)
                started.wait()
                order.append("first")
            second.result()
        assert order == ["first", "second"]

    def test_a_writer_waits_no_longer_than_it_may(self, store: Steps) -> None:
        def write_second() -> None:
            with pytest.raises(StoreBusyError), store.writing(timeout=0.01):
                pass

        with store.writing():
            in_thread(write_second)
        insert_facts(store, ANNA)

    def test_threads_write_and_read_at_once(self, store: Steps) -> None:
        def work(_: int) -> list[int]:
            numbers: list[int] = []
            for _ in range(25):
                numbers += seqs_of(insert_facts(store, ANNA, 2))
                with store.reading():
                    assert seqs_of(store.select(ItemQuery(seqs=numbers[-2:]))) == numbers[-2:]
            return numbers

        with ThreadPoolExecutor(4) as threads:
            written = [number for part in threads.map(work, range(4)) for number in part]
        with store.reading():
            (stream,), records = store.streams(), store.select(ItemQuery())
        assert seqs_of(records) == sorted(set(written))
        assert stream.version == len({record.version for record in records}) == 100

    def test_every_version_is_a_whole_block(self, store: Steps) -> None:
        """A reader that follows changes ends with what a fresh reader sees."""

        def write() -> None:
            for _ in range(40):
                delete_records(store, insert_facts(store, ANNA, 2)[:1])

        followed: set[int] = set()
        version = 0
        with ThreadPoolExecutor(1) as thread:
            writer = thread.submit(write)
            is_last = False
            while not is_last:
                is_last = writer.done()
                with store.reading():
                    for stream in store.streams():
                        followed.update(seqs_of(store.index_rows(stream.id, version, None)))
                        followed.difference_update(store.removed(stream.id, version))
                        version = stream.version
                    assert followed == set(seqs_of(store.select(ItemQuery())))
            writer.result()
        assert len(followed) == 40

    def test_what_was_written_is_there_when_opened_again(self, store: Steps, other: Steps) -> None:
        (fact,) = insert_facts(store, ANNA)
        with store.writing():
            _write_everything(store, fact, "first")
        before = contents(store)
        store.close()
        assert contents(other) == before

    def test_two_openings_see_each_other_at_once(self, store: Steps, other: Steps) -> None:
        for writer, reader in ((store, other), (other, store)):
            records = insert_facts(writer, ANNA, 2)
            with reader.reading():
                assert reader.select(ItemQuery(seqs=seqs_of(records))) == records

    def test_a_closed_store_says_so(self, store: Steps) -> None:
        store.close()
        store.close()
        for run in (store.read, store.write):
            with pytest.raises(StoreError):
                run((), lambda _: None)


def _run_and_stop(block: AbstractContextManager[None], function: Callable[..., object], *arguments: object) -> None:
    with block:
        function(*arguments)
        raise _Stop


def _write_everything(store: Steps, fact: Record, word: str) -> None:
    """Use every method that writes; other words write other values."""
    stream = store.advance(store.create_stream(Scope(session=word)).id, 2)
    store.insert(stream, [new_fact(0, stream)])
    store.update([fact._replace(text=word)])
    store.add_tombstones(fact.stream, [tombstone("stays"), tombstone(word)])
    store.remove_tombstones(fact.stream, [word.encode()])
    store.put_vectors(store.create_model(word, 2).number, [(fact.seq, b"1111")])
    store.drop_model(store.create_model(f"not {word}", 2).number)
    store.adopt_model(store.create_model(word, 2).number)
    store.set_value("name", word)
    for record in table_records(fact, word):
        store.save([record])
    store.add_access([AccessCount(fact.seq, 1, NOW)])
    store.add_usage([UsageRecord(word, word, 1)])
    store.drop(UsageRecord, operation="none")


def _scopes(store: Steps) -> list[Scope]:
    scopes: list[Scope] = store.read((), lambda reading: [stream.scope for stream in reading.streams()])
    return scopes
