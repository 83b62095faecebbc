"""Many processes and threads on one file: no error, no loss, and every write seen by all at once."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.store.conformance import insert_facts

import eunoe
from eunoe.store.sqlite import SqliteStore

ANNA = "user=anna"


def start_together(children):
    for child in children:
        assert child.read() == {"ready": True}
    for child in children:
        child.tell()


def list_texts(memory, scope=ANNA, **filters):
    return [item.text for item in memory.list(scope, limit=2000, **filters).items]


def test_four_processes_write_and_read_one_file(path, start):
    rounds = 15
    names = ["ann", "bob", "cid", "dee"]
    children = [start("crowd", path, name, rounds) for name in names]
    start_together(children)
    written = [child.read()["mine"] for child in children]
    assert [child.end() for child in children] == [0, 0, 0, 0]
    with eunoe.open(path, embedder="none") as memory:
        stored = [item.id for item in memory.list(ANNA, kinds=["message"], limit=1000).items]
        assert sorted(stored) == sorted(id for part in written for id in part)
        assert len(stored) == len(names) * rounds * 2
        for name in names:
            assert list_texts(memory, {"user": name}) == [f"{name} keeps {number}" for number in range(rounds)]
            messages = [text for text in list_texts(memory, kinds=["message"]) if text.startswith(name)]
            assert messages == [f"{name} says {name}{number}{part}" for number in range(rounds) for part in "ab"]
        assert sorted(list_texts(memory, kinds=["fact"])) == sorted(
            f"everyone knows {number}" for number in range(rounds)
        )


def test_what_one_process_acknowledged_another_reads_at_once(path, start):
    with eunoe.open(path, embedder="none") as memory:
        other = start("ping", path)
        assert other.read() == {"ready": True}
        for number in range(20):
            memory.observe(ANNA, f"number {number} was said")
            assert other.ask(f"number {number} was said") == {"listed": True, "recalled": True}
            kept = memory.remember(ANNA, f"number {number} is kept")
            assert other.ask(f"number {number} is kept") == {"listed": True, "recalled": True}
            memory.forget(ANNA, kept.id)
            assert other.ask(f"number {number} is kept") == {"listed": False, "recalled": False}


@pytest.mark.parametrize("attempt", range(2))
def test_processes_making_the_same_new_file_at_once(path, start, attempt):
    children = [start("create", path) for _ in range(3)]
    start_together(children)
    outcomes = [child.read()["done"] for child in children]
    assert sorted(outcomes) == [["duplicate"] * 2, ["duplicate"] * 2, ["stored"] * 2]
    for child in children:
        child.tell()
    assert [child.end() for child in children] == [0, 0, 0]
    with eunoe.open(path, embedder="none") as memory:
        assert list_texts(memory) == ["one", "two"]


@pytest.mark.parametrize("kind", ["id", "time", "place"])
def test_the_same_messages_from_two_processes_are_stored_once(path, start, kind):
    children = [start("replay", path, kind) for _ in range(2)]
    start_together(children)
    outcomes = [child.read()["outcomes"] for child in children]
    assert sorted(outcomes) == [["duplicate"] * 40, ["stored"] * 40]
    with eunoe.open(path, embedder="none") as memory:
        assert list_texts(memory) == [f"message {number % 5}" for number in range(40)]


def test_threads_share_one_memory(memory):
    def work(name):
        for number in range(15):
            memory.observe(ANNA, {"content": f"{name} {number}", "id": f"{name}{number}"})
            assert memory.get(ANNA, f"{name}{number}").text == f"{name} {number}"
            assert memory.recall(ANNA, f"{name} {number}", limit=1)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, ["ann", "bob", "cid", "dee", "eve", "fay"]))
    assert len(list_texts(memory)) == 90


def test_many_verbs_at_once_on_one_event_loop(path):
    async def main():
        async with eunoe.open_async(path, embedder="none") as memory:
            receipts = await asyncio.gather(*(memory.remember(ANNA, f"fact {number}") for number in range(60)))
            assert {receipt.outcome for receipt in receipts} == {"stored"}
            again = await asyncio.gather(*(memory.remember(ANNA, f"fact {number}") for number in range(60)))
            assert [receipt.id for receipt in again] == [receipt.id for receipt in receipts]
            page = await memory.list(ANNA, limit=100)
            assert {item.id for item in page.items} == {receipt.id for receipt in receipts}

    asyncio.run(main())


def test_two_updates_of_one_atom_do_not_both_win(memory):
    kept = memory.remember(ANNA, "Anna lives in Paris.")

    def move(city):
        try:
            return memory.update(ANNA, kept.id, f"Anna lives in {city}.").outcome
        except eunoe.errors.ConflictError:
            return "conflict"

    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(move, ["Rome", "Turin", "Bern", "Lyon"]))
    assert sorted(outcomes) == ["conflict", "conflict", "conflict", "superseded"]
    assert len(memory.history(ANNA, kept.id)) == 2
    assert len(list_texts(memory)) == 1


def test_searching_the_raw_file_keeps_sqlite_locks(path, start):
    """POSIX drops a process's locks on a file when it closes any handle of it. If that happened here, another process
    would take the store for unused when it ends, delete the log, and later writes of ours would be lost."""
    with eunoe.open(path, embedder="none") as memory, eunoe.open(path, embedder="none") as second:
        kept = memory.remember(ANNA, "a secret that is to be forgotten")
        second.remember(ANNA, "something that stays")
        assert memory.forget(ANNA, kept.id, verify=True).verified
        with eunoe.open(path, embedder="none"):
            pass
        child = start("replay", path, "id")
        start_together([child])
        child.end()
        assert path.with_name("memory.db-wal").exists()
        memory.remember(ANNA, "written after the other process ended")
        connection = sqlite3.connect(path)
        found = connection.execute("SELECT count(*) FROM items WHERE text LIKE 'written after%'").fetchone()
        connection.close()
        assert found == (1,)


def test_a_second_store_in_the_process_may_close_first(path, start):
    first, second = SqliteStore(path), SqliteStore(path)
    insert_facts(first, "user=anna")
    second.find_traces(["the words that nobody ever said"])
    second.close()
    first.find_traces(["the words that nobody ever said"])
    insert_facts(first, "user=anna")
    first.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_reader_holds_up_no_writer_while_something_is_forgotten(path, start, monkeypatch):
    """The scrub waits for the reader; writers of this process and of another one do not."""
    waits = threading.Event()
    checkpoint = SqliteStore._checkpoint

    def note_waiting(store, mode):
        result = checkpoint(store, mode)
        if result[1] != result[2]:
            waits.set()
        return result

    with eunoe.open(path, embedder="none", form=False) as memory, ThreadPoolExecutor(1) as thread:
        secret = memory.remember("user=anna", "Anna keeps the key under the third stone.")
        reader = start("hold", path)
        assert reader.read() == {"items": 1}
        monkeypatch.setattr(SqliteStore, "_checkpoint", note_waiting)
        report = thread.submit(memory.forget, "user=anna", secret.id, verify=True)
        assert waits.wait(60)
        written = [memory.remember("user=anna", f"Anna has {number} keys.").outcome for number in range(20)]
        other = start("create", path)
        assert other.read() == {"ready": True}
        other.tell()
        assert other.read() == {"done": ["stored", "stored"]}
        assert not report.done()
        other.tell()
        assert other.end() == 0
        reader.tell()
        assert reader.end() == 0
        assert written == ["stored"] * 20
        assert report.result().verified


def test_what_a_reader_kept_from_being_scrubbed_is_scrubbed_when_the_store_is_closed(path, start):
    text = "Anna keeps the key under the third stone."
    other = start("ping", path)  # as long as it lives, closing leaves the log
    assert other.read() == {"ready": True}
    with eunoe.open(path, embedder="none", form=False) as memory:
        secret = memory.remember("user=anna", text)
        reader = start("hold", path)
        assert reader.read() == {"items": 1}
        memory._engine.store._timeout = 0
        report = memory.forget("user=anna", secret.id)
        assert "not yet wiped" in report.traces[0]
        reader.tell()
        assert reader.end() == 0
    for file in (path, path.with_name(f"{path.name}-wal")):
        assert text.encode() not in file.read_bytes()
