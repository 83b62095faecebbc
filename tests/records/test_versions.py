"""Memory keys: the one atom that holds a key is found whoever wrote it, however large the stream is."""

from __future__ import annotations

import json
import random

import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.records import forgetting, versions
from eunoe.records.versions import Namesakes, add_support, key_of
from eunoe.store.conformance import put, row
from eunoe.store.sqlite import SqliteStore

ANNA = "user=anna"
PEOPLE = ["", '["Anna"]', '["anna", "Ben"]', '["Carl"]']


def keyed(memory, text, key="home", **fields):
    return memory.remember(ANNA, text, metadata={"memory_key": key}, **fields)


def living(memory, key="home"):
    items = memory.list(ANNA, limit=1000).items
    return [item.text for item in items if item.metadata.get("memory_key") == key]


@pytest.fixture
def read(monkeypatch):
    """How many atoms were looked at for their keys, each time."""
    counts = []
    bearing = SqliteStore.bearing

    def counted(self, *given):
        found = bearing(self, *given)
        counts.append(len(found))
        return found

    monkeypatch.setattr(SqliteStore, "bearing", counted)
    return counts


def test_only_what_changed_is_looked_at(memory, read):
    memory.remember_many(ANNA, [{"text": f"fact {n}", "metadata": {"memory_key": f"key {n}"}} for n in range(50)])
    for city in ("Rome", "Turin", "Bern", "Lyon"):
        keyed(memory, f"Anna lives in {city}.")
    assert read == [0, 50, 1, 1, 1]
    assert living(memory) == ["Anna lives in Lyon."]


def test_two_that_write_in_turn_close_what_the_other_wrote(path):
    with eunoe.open(path, embedder="none") as one, eunoe.open(path, embedder="none") as two:
        last = keyed(one, "number 0")
        for number in range(1, 9):
            receipt = keyed(two if number % 2 else one, f"number {number}")
            assert (receipt.outcome, receipt.closed) == ("superseded", last.id)
            last = receipt
        assert living(one) == living(two) == ["number 8"]


def test_two_processes_that_write_at_once_leave_one_value(path, start):
    children = [start("keyed", path, name) for name in ("ann", "bob")]
    for child in children:
        assert child.read() == {"ready": True}
    for child in children:
        child.tell()
    assert [child.read() for child in children] == [{"done": 30}, {"done": 30}]
    assert [child.end() for child in children] == [0, 0]
    with eunoe.open(path, embedder="none") as memory:
        (last,) = [item for item in memory.list(ANNA, limit=100).items if item.metadata["memory_key"] == "home"]
        assert len(memory.history(ANNA, last.id)) == 60


def test_what_a_write_closed_that_was_rolled_back_is_found_again(memory, monkeypatch):
    rome = keyed(memory, "Anna lives in Rome.")
    close, calls = versions.close_into, []

    def close_one(*given):
        calls.append(given)
        if len(calls) > 1:
            raise InputError("the second cannot be closed")
        close(*given)

    with monkeypatch.context() as broken:
        broken.setattr(versions, "close", close_one)
        with pytest.raises(InputError):
            memory.remember_many(
                ANNA, [{"text": city, "metadata": {"memory_key": "home"}} for city in ("Turin", "Bern")]
            )
    assert living(memory) == ["Anna lives in Rome."]
    assert keyed(memory, "Anna lives in Lyon.").closed == rome.id


def test_what_forgetting_opens_again_is_found(memory):
    rome = keyed(memory, "Anna lives in Rome.", time="2024-01-01", source=["m1"])
    memory.observe(ANNA, {"content": "I live in Rome.", "id": "m1"})
    memory.observe(ANNA, {"content": "I live in Turin.", "id": "m2"})
    keyed(memory, "Anna lives in Turin.", time="2024-02-01", source=["m2"])
    memory.forget(ANNA, "m2")
    assert living(memory) == ["Anna lives in Rome."]
    assert keyed(memory, "Anna lives in Bern.").closed == rome.id


def test_what_is_kept_of_the_keys_has_an_end(path, monkeypatch):
    monkeypatch.setattr(versions, "_MOST_STREAMS", 2)
    monkeypatch.setattr(versions, "_MOST_KEYS", 3)
    store = SqliteStore(path)
    for name, count in (("a", 1), ("b", 1), ("c", 1), ("d", 4)):
        for number in range(count):
            (one,) = put(store, f"user={name}", metadata=f'{{"memory_key": "key {number}"}}')
        with store.writing():
            assert Namesakes(store, store.make_stream(f"user={name}")).of(one) == [one]
        assert len(store.marks) <= 2
        assert sum(len(marks.rows) for marks in store.marks.values()) <= 3
    assert not store.marks, "the one with four was too many by itself"
    store.close()


def _held(memory):
    """The numbers of the rows that are kept for their keys."""
    marks = memory._engine.store.marks
    return sorted(seq for one in marks.values() for rows in one.rows.values() for seq in rows)


def test_what_is_kept_of_the_keys_is_numbers(memory):
    keyed(memory, "Anna is ill.", "illness", id="anna-is-ill", people=["Anna"])
    (marks,) = memory._engine.store.marks.values()
    ((mark, rows),) = marks.rows.items()
    ((seq, names),) = rows.items()
    assert [type(number) for number in (mark, seq, *names)] == [int, int, int]


def test_nothing_is_kept_of_the_key_of_what_was_forgotten(memory):
    keyed(memory, "Anna is ill.", "illness", id="anna-is-ill")
    keyed(memory, "Anna lives in Rome.")
    rome = _held(memory)[1]
    assert memory.forget(ANNA, "anna-is-ill", verify=True).verified
    assert _held(memory) == [rome]
    assert memory.forget(ANNA, everything=True, verify=True).verified
    assert [marks.rows for marks in memory._engine.store.marks.values()] == [{}]


def test_a_key_that_was_left_behind_is_a_trace(memory, monkeypatch):
    monkeypatch.setattr(forgetting, "unmark", lambda *given: None)
    keyed(memory, "Anna is ill.", "illness", id="anna-is-ill")
    report = memory.forget(ANNA, "anna-is-ill", verify=True)
    assert report.traces == ("memory keys of user=anna",)


def test_what_another_forgot_is_dropped_with_the_next_key(path):
    with eunoe.open(path, embedder="none") as one, eunoe.open(path, embedder="none") as two:
        keyed(one, "Anna is ill.", "illness", id="anna-is-ill")
        keyed(one, "Anna lives in Rome.")
        ill, rome = _held(one)
        two.forget(ANNA, "anna-is-ill")
        keyed(one, "Anna lives in Bern.")
        assert ill not in _held(one)
        assert rome in _held(one), "it was closed, not forgotten"


def test_only_atoms_about_the_same_people_are_read(memory, monkeypatch):
    people = [f"person {number}" for number in range(30)]
    for name in people:
        keyed(memory, f"{name} lives in Rome.", people=[name])
    keyed(memory, "It is warm there.", people=["nobody else"])
    by_seq, read = SqliteStore.by_seq, []
    monkeypatch.setattr(SqliteStore, "by_seq", lambda self, seqs: read.append(len(seqs)) or by_seq(self, seqs))
    receipt = keyed(memory, "Person 7 lives in Bern.", people=["Person 7", "a stranger"])
    assert receipt.outcome == "superseded"
    assert read == [1]
    assert len(living(memory)) == 31
    keyed(memory, "Everybody lives in Oslo.")
    assert living(memory) == ["Everybody lives in Oslo."]


def test_a_name_that_a_step_adds_counts_in_that_step(path):
    store = SqliteStore(path)
    (home,) = put(store, ANNA, people='["Anna"]', metadata='{"memory_key": "home"}')
    with store.writing():
        namesakes = Namesakes(store, store.stream(ANNA))
        bens = home._replace(people='["Ben"]')
        assert namesakes.of(bens) == []
        both = add_support(store, store.stream(ANNA), home, (), ["Ben"])
        namesakes.add(both)
        assert namesakes.of(bens) == [both]
    store.close()


def _row(store, name, key):
    return row(1, store.make_stream(f"user={name}"), metadata=f'{{"memory_key": "{key}"}}')


@pytest.mark.parametrize("seed", range(5))
def test_what_is_found_is_what_a_pass_over_the_stream_finds(path, seed):
    """Whatever two hands did before, failed steps among it."""
    choose = random.Random(seed)
    stores = [SqliteStore(path), SqliteStore(path)]
    put(stores[0], ANNA, 3)
    for step in range(60):
        store = choose.choice(stores)
        try:
            with store.writing():
                _change(store, choose, step)
                _compare(store, choose)
                if choose.random() < 0.3:
                    raise InputError("the step fails")
        except InputError:
            pass
    for store in stores:
        store.close()


def _change(store, choose, step):
    stream = store.stream(ANNA)
    atoms = store.books.latest(stream.id, "fact", 1000)
    one = choose.choice(atoms) if atoms else None
    version = store.advance(stream.id).version
    people = choose.choice(PEOPLE)
    metadata = choose.choice(["", '{"memory_key": "Home"}', '{"memory_key": " home "}', '{"memory_key": "car"}'])
    what = choose.random()
    if one is None or what < 0.5:
        new = store.reserve(1)
        fields = {"seq": new, "version": version, "id": f"id-{step}-{new}", "key": f"{step}-{new}".encode()}
        store.insert([_row(store, "anna", "")._replace(**fields, people=people, metadata=metadata)])
    elif what < 0.7:
        store.replace([one._replace(version=version, people=people, metadata=metadata)])
    elif what < 0.85:
        store.replace([one._replace(version=version, retired=step)])
    else:
        store.delete(stream.id, [one.seq], version)


def _compare(store, choose):
    stream = store.stream(ANNA)
    key = choose.choice(["home", "car"])
    asked = _row(store, "anna", key)._replace(people=choose.choice(PEOPLE))
    held = [row for row in store.books.latest(stream.id, "fact", 1000) if key_of(row) == key]
    assert Namesakes(store, stream).of(asked) == [row for row in held if _about_same(asked.people, row.people)]


def _about_same(one, two):
    return not one or not two or any(name in two.lower() for name in json.loads(one.lower()))
