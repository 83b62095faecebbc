"""Access counts: what was recalled is counted, in batches, and never at a reader's expense."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

from tests.support.records import make_record
from tests.support.steps import Steps, steps_of

import eunoe
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.records import counters as counting
from eunoe.records.counters import AccessLog
from eunoe.store.schema import AccessCount
from eunoe.store.sqlite import SqliteStore

ANNA = "user=anna"


def filled(memory, size):
    receipts = memory.remember_many(ANNA, [f"Fact number {number} is about tea." for number in range(size)])
    return [receipt.id for receipt in receipts]


def access_log(memory):
    return memory._engine.access


def test_recalling_is_counted_and_the_count_lasts(path):
    with eunoe.open(path, embedder="none") as memory:
        [id] = filled(memory, 1)
        memory.recall(ANNA, "tea")
        memory.recall(ANNA, "tea")
    with eunoe.open(path, embedder="none") as memory:
        count = memory.admin.access_counts(ANNA, [id])[id]
    assert count.times == 2
    assert count.last is not None


def test_a_recall_writes_nothing_itself(memory, path):
    filled(memory, 3)
    memory.recall(ANNA, "tea")
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT count(*) FROM access_counts").fetchone() == (0,)
    other.close()
    assert len(access_log(memory)) == 3
    memory.flush()
    assert len(access_log(memory)) == 0


def test_many_waiting_counts_are_written_behind_the_reply(memory):
    ids = filled(memory, 300)
    memory.recall(ANNA, "tea", limit=300)
    memory._engine._threads.submit(int).result()
    memory._engine._threads.shutdown()
    assert len(access_log(memory)) == 0
    with steps_of(memory).reading():
        assert len(steps_of(memory).load(AccessCount)) == len(ids)


def test_a_hit_that_was_not_read_from_the_store_is_passed_over(path):
    store = Steps(SqliteStore(path))
    log = AccessLog(store)
    log.note([Hit(make_record(text="made by hand"), Scope.of(ANNA), 0.5, tuple)])
    assert len(log) == 0
    store.close()


def test_a_store_that_is_held_by_another_leaves_the_counts_waiting(path, monkeypatch):
    monkeypatch.setattr("eunoe.store.sqlite._LOCK_SECONDS", 0)
    store = Steps(SqliteStore(path, timeout=0.05))
    with eunoe.open(path, embedder="none") as memory:
        [id] = filled(memory, 1)
        hits = memory.recall(ANNA, "tea")
        log = AccessLog(store)
        log.note(hits)
        with steps_of(memory).writing():
            log.save()
        assert len(log) == 1
        assert not log.is_due()
        log.save()
        assert len(log) == 0
        assert memory.admin.access_counts(ANNA, [id])[id].times == 2
    store.close()


def test_waiting_counts_do_not_grow_without_end(memory, monkeypatch):
    monkeypatch.setattr("eunoe.records.counters._MAX_UNSAVED", 5)
    filled(memory, 8)
    memory.recall(ANNA, "tea", limit=8)
    memory.recall(ANNA, "tea", limit=8)
    assert len(access_log(memory)) == 5


def test_threads_lose_no_count(memory):
    [id] = filled(memory, 1)
    hits = memory.recall(ANNA, "tea")
    log = access_log(memory)
    with ThreadPoolExecutor(8) as pool:
        for number in range(200):
            pool.submit(log.note, hits)
            if number % 20 == 0:
                pool.submit(log.save)
    assert memory.admin.access_counts(ANNA, [id])[id].times == 201


def test_counts_of_what_was_forgotten_go_with_it(memory):
    [id] = filled(memory, 1)
    memory.recall(ANNA, "tea")
    memory.forget(ANNA, id)
    access_log(memory).save()
    with steps_of(memory).reading():
        assert steps_of(memory).load(AccessCount) == []


def test_a_look_up_by_several_questions_counts_each_hit_once(memory):
    ids = filled(memory, 2)
    assert len(memory.look_up(ANNA, ["tea", "a fact about tea"], limit=5)) == 2
    assert {count.times for count in memory.admin.access_counts(ANNA, ids).values()} == {1}


def test_counts_make_nobody_wait_for_another_writer(memory, path, monkeypatch):
    filled(memory, 1)
    memory.recall(ANNA, "tea")
    monkeypatch.setattr(counting, "_TIMEOUT_SECONDS", 0.01)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(access_log(memory).save)
        try:
            asked.result(timeout=30)
        finally:
            other.close()
    assert len(access_log(memory)) == 1
