"""Memory keys: the one atom that holds a key is found whoever wrote it, however large the stream is."""

from __future__ import annotations

import random

import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.ledger import succession
from eunoe.ledger.succession import Namesakes, key_of
from eunoe.store.conformance import put, row
from eunoe.store.sqlite import SqliteStore

ANNA = "user=anna"


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

    def counted(self, stream, kind, text, since):
        found = bearing(self, stream, kind, text, since)
        if kind == "fact":
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
    close, calls = succession.close, []

    def close_one(*given):
        calls.append(given)
        if len(calls) > 1:
            raise InputError("the second cannot be closed")
        close(*given)

    with monkeypatch.context() as broken:
        broken.setattr(succession, "close", close_one)
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


def test_what_is_kept_of_the_keys_has_no_words_and_an_end(path, monkeypatch):
    monkeypatch.setattr(succession, "_MOST_STREAMS", 2)
    monkeypatch.setattr(succession, "_MOST_KEYS", 3)
    store = SqliteStore(path)
    with store.writing():
        for name, count in (("a", 1), ("b", 1), ("c", 1), ("d", 4)):
            rows = [Namesakes(store, store.make_stream(f"user={name}")) for _ in range(2)]
            for number in range(count):
                rows[0].add(_row(store, name, f"secret {number}"))
            held = store.derived[succession.MEMORY_KEY]
            assert len(held) <= 2
        assert "secret" not in str([keys.ids for keys in held.values()])
        Namesakes(store, store.make_stream("user=d"))
        assert sum(map(len, held.values())) <= 3
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
    metadata = choose.choice(["", '{"memory_key": "Home"}', '{"memory_key": " home "}', '{"memory_key": "car"}'])
    what = choose.random()
    if one is None or what < 0.5:
        new = store.reserve(1)
        fields = {"seq": new, "version": version, "id": f"id-{step}-{new}", "key": f"{step}-{new}".encode()}
        store.insert([_row(store, "anna", "")._replace(**fields, metadata=metadata)])
    elif what < 0.7:
        store.replace([one._replace(version=version, metadata=metadata)])
    elif what < 0.85:
        store.replace([one._replace(version=version, retired=step)])
    else:
        store.delete(stream.id, [one.seq], version)


def _compare(store, choose):
    stream = store.stream(ANNA)
    key = choose.choice(["home", "car"])
    found = Namesakes(store, stream).of(_row(store, "anna", key))
    assert found == [row for row in store.books.latest(stream.id, "fact", 1000) if key_of(row) == key]
