"""Memory keys: the one atom that holds a key is found whoever wrote it, however large the stream is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.records import NOON, insert, make_record
from tests.support.steps import Steps, steps_of

import eunoe
from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.model.arguments import parse_time
from eunoe.model.atom import Record
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.records import versions
from eunoe.records.identity import memory_key
from eunoe.records.versions import add_support, find_same_topic
from eunoe.store.contract import ItemQuery, Store
from eunoe.store.sql import SqlReading
from eunoe.store.sqlite import SqliteStore

ANNA = Scope(user="anna")
PEOPLE = [(), ("Anna",), ("anna", "Ben"), ("Carl",)]


def remember_keyed(memory: Memory, text: str, key: str = "home", **fields: Any) -> Receipt:
    return memory.remember(ANNA, text, metadata={"memory_key": key}, **fields)


def open_texts(memory: Memory, key: str = "home") -> list[str]:
    items = memory.list(ANNA, limit=1000).items
    return [item.text for item in items if item.metadata.get("memory_key") == key]


@pytest.fixture
def read_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many atoms were read for their topic, each time."""
    counts: list[int] = []
    select = SqlReading.select

    def counted(self: SqlReading, query: ItemQuery) -> list[Record]:
        records = select(self, query)
        if query.topics is not None or query.topic_start is not None:
            counts.append(len(records))
        return records

    monkeypatch.setattr(SqlReading, "select", counted)
    return counts


def test_only_atoms_with_the_same_key_are_read(memory: Memory, read_counts: list[int]) -> None:
    many = [{"text": f"fact {n}", "metadata": {"memory_key": f"key {n}"}} for n in range(50)]
    memory.remember_many(ANNA, many)
    read_counts.clear()
    for city in ("Rome", "Turin", "Bern", "Lyon"):
        remember_keyed(memory, f"Anna lives in {city}.")
    assert read_counts == [0, 1, 1, 1]
    assert open_texts(memory) == ["Anna lives in Lyon."]


def test_only_atoms_about_the_same_people_are_read(memory: Memory, read_counts: list[int]) -> None:
    for number in range(50):
        remember_keyed(memory, f"person {number} lives in Rome.", people=[f"Person {number}"])
    remember_keyed(memory, "Two live in Rome.", people=["Ada", "Ben"])
    read_counts.clear()
    assert remember_keyed(memory, "PERSON 7 lives in Turin.", people=["person 7"]).outcome == "superseded"
    assert read_counts == [2]  # the old one, and the one about two people
    assert remember_keyed(memory, "Ben lives in Turin.", people=["Ben"]).outcome == "superseded"
    assert remember_keyed(memory, "Everybody lives in Lyon.").outcome == "superseded"
    assert read_counts == [2, 1, 51]
    assert open_texts(memory) == ["Everybody lives in Lyon."]


def test_an_atom_about_a_further_person_is_found_by_both(memory: Memory) -> None:
    """Who is added to an atom later supersedes it like the one it was about before."""
    with steps_of(memory).writing():
        store = steps_of(memory)
        stream = store.advance(store.create_stream(Scope.of(ANNA)).id)
        (record,) = store.insert(stream, [make_record(people=("Ada",), metadata={"memory_key": "home"})])
        add_support(store, stream, record, (), people=["Ben"])
    assert remember_keyed(memory, "Ben lives in Turin.", people=["Ben"]).closed == record.id


def test_two_that_write_in_turn_close_what_the_other_wrote(path: Path) -> None:
    with eunoe.open(path, embedder="none") as one, eunoe.open(path, embedder="none") as two:
        last = remember_keyed(one, "number 0")
        for number in range(1, 9):
            receipt = remember_keyed(two if number % 2 else one, f"number {number}")
            assert (receipt.outcome, receipt.closed) == ("superseded", last.id)
            last = receipt
        assert open_texts(one) == open_texts(two) == ["number 8"]


def test_two_processes_that_write_at_once_leave_one_value(path: Path, start: Callable[..., Any]) -> None:
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


def test_what_a_write_closed_that_was_rolled_back_is_found_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rome = remember_keyed(memory, "Anna lives in Rome.")
    close_into, calls = versions.close_into, []

    def close_one(*given: Any) -> None:
        calls.append(given)
        if len(calls) > 1:
            raise InputError("the second cannot be closed")
        close_into(*given)

    with monkeypatch.context() as broken:
        broken.setattr(versions, "close_into", close_one)
        with pytest.raises(InputError):
            memory.remember_many(
                ANNA, [{"text": city, "metadata": {"memory_key": "home"}} for city in ("Turin", "Bern")]
            )
    assert open_texts(memory) == ["Anna lives in Rome."]
    assert remember_keyed(memory, "Anna lives in Lyon.").closed == rome.id


def test_what_forgetting_opens_again_is_found(memory: Memory) -> None:
    rome = remember_keyed(memory, "Anna lives in Rome.", time="2024-01-01", source=["m1"])
    memory.observe(ANNA, {"content": "I live in Rome.", "id": "m1"})
    memory.observe(ANNA, {"content": "I live in Turin.", "id": "m2"})
    remember_keyed(memory, "Anna lives in Turin.", time="2024-02-01", source=["m2"])
    memory.forget(ANNA, "m2")
    assert open_texts(memory) == ["Anna lives in Rome."]
    assert remember_keyed(memory, "Anna lives in Bern.").closed == rome.id


def remember_cities(memory: Memory, *cities: tuple[str, dict[str, str]]) -> list[str]:
    """Where Anna lived, one after the other, each on a message of its own, which is named like the city."""
    for city, times in cities:
        memory.observe(ANNA, {"content": f"It is about {city}.", "id": city, "time": times.get("time")})
        remember_keyed(memory, f"Anna lives in {city}.", source=[city], id=f"in {city}", **times)
    return [f"in {city}" for city, _ in cities]


def test_what_goes_from_the_middle_of_a_history_leaves_the_rest_in_line(memory: Memory) -> None:
    cities = [(city, {"valid_from": f"202{year}-01-01"}) for year, city in enumerate(("Rome", "Turin", "Bern", "Lyon"))]
    rome, _, _, lyon = remember_cities(memory, *cities)
    memory.forget(ANNA, ["Turin", "Bern"])
    assert open_texts(memory) == ["Anna lives in Lyon."]
    for id in (rome, lyon):
        before, after = memory.history(ANNA, id)
        assert (before.id, before.superseded_by, before.supersedes) == (rome, lyon, "")
        assert (after.id, after.superseded_by, after.supersedes) == (lyon, "", rome)
        assert before.valid_to == after.valid_from == parse_time("2023-01-01")
    assert [hit.id for hit in memory.recall(ANNA, "Anna lives", as_of="2022-06-01", kinds=["fact"])] == [rome]


def test_what_was_over_before_the_next_began_stays_over_when_that_is_forgotten(memory: Memory) -> None:
    rome, _, bern = remember_cities(
        memory,
        ("Rome", {"valid_from": "2020-01-01", "valid_to": "2020-06-01"}),
        ("Turin", {"valid_from": "2021-01-01", "valid_to": "2021-06-01"}),
        ("Bern", {"valid_from": "2022-01-01"}),
    )
    memory.forget(ANNA, "Turin")
    assert memory.get(ANNA, rome).valid_to == parse_time("2020-06-01")
    assert memory.get(ANNA, rome).superseded_by == bern
    memory.forget(ANNA, "Bern")
    left = memory.get(ANNA, rome)
    assert (left.superseded_by, left.retired, left.valid_to) == ("", None, parse_time("2020-06-01"))
    assert memory.recall(ANNA, "Anna lives", as_of="2023-01-01", kinds=["fact"]) == []


def test_what_comes_late_ends_where_the_newer_one_began_to_hold(memory: Memory) -> None:
    remember_keyed(memory, "Anna lives in Rome.", time="2024-05-01", valid_from="2024-01-01")
    paris = remember_keyed(memory, "Anna lives in Paris.", valid_from="2020-01-01")
    oslo = remember_keyed(memory, "Anna lives in Oslo.", valid_from="2010-01-01", valid_to="2012-01-01")
    assert memory.get(ANNA, paris.id).valid_to == parse_time("2024-01-01")
    assert memory.get(ANNA, oslo.id).valid_to == parse_time("2012-01-01")


def test_late_words_that_stand_in_the_history_rest_on_both_messages(memory: Memory) -> None:
    rome, _ = remember_cities(memory, ("Rome", {"time": "2024-01-01"}), ("Turin", {"time": "2024-03-01"}))
    memory.observe(ANNA, {"content": "Rome it was.", "id": "late", "time": "2024-02-01"})
    late = remember_keyed(memory, "Anna lives in Rome.", time="2024-02-01", source=["late"], people=["Anna"])
    assert (late.outcome, late.id) == ("duplicate", rome)
    assert memory.get(ANNA, rome).people == ("Anna",)
    memory.forget(ANNA, "Rome")
    assert [atom.id for atom in memory.history(ANNA, rome)] == [rome, "in Turin"]
    memory.forget(ANNA, "late")
    assert [atom.id for atom in memory.history(ANNA, "in Turin")] == ["in Turin"]


def test_nothing_of_a_forgotten_key_stays_in_the_file(memory: Memory, path: Path) -> None:
    remember_keyed(memory, "Anna is ill.", "secret illness", id="anna-is-ill")
    remember_keyed(memory, "Anna lives in Rome.")
    assert memory.forget(ANNA, "anna-is-ill", verify=True).verified
    assert b"secret illness" not in b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert open_texts(memory) == ["Anna lives in Rome."]


def test_only_atoms_about_the_same_people_are_closed(memory: Memory) -> None:
    for number in range(30):
        remember_keyed(memory, f"person {number} lives in Rome.", people=[f"person {number}"])
    remember_keyed(memory, "It is warm there.", people=["nobody else"])
    receipt = remember_keyed(memory, "Person 7 lives in Bern.", people=["Person 7", "a stranger"])
    assert receipt.outcome == "superseded"
    assert len(open_texts(memory)) == 31
    remember_keyed(memory, "Everybody lives in Oslo.")
    assert open_texts(memory) == ["Everybody lives in Oslo."]


@pytest.fixture
def stores(path: Path) -> Iterator[list[SqliteStore]]:
    """Two stores on one file."""
    stores = [Steps(SqliteStore(path)), Steps(SqliteStore(path))]
    yield stores
    for store in stores:
        store.close()


def test_a_name_that_a_step_adds_counts_in_that_step(stores: list[SqliteStore]) -> None:
    store = stores[0]
    (home,) = insert(store, ANNA, make_record(people=("Anna",), metadata={"memory_key": "home"}))
    with store.writing():
        stream = store.create_stream(ANNA)
        bens = home._replace(people=("Ben",))
        assert find_same_topic(store, stream, bens) == []
        both = add_support(store, stream, home, (), ["Ben"])
        assert find_same_topic(store, stream, bens) == [both]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_found_is_what_a_pass_over_the_stream_finds(stores: list[SqliteStore], seed: int) -> None:
    """Whatever two stores on one file did before, failed steps among it."""
    choose = random.Random(seed)
    insert(stores[0], ANNA, *(make_record() for _ in range(3)))
    for _ in range(60):
        store = choose.choice(stores)
        try:
            with store.writing():
                change_something(store, choose)
                compare_with_a_pass(store, choose)
                if choose.random() < 0.3:
                    raise InputError("the step fails")
        except InputError:
            pass


def open_facts(store: Store, stream: int) -> list[Record]:
    return store.select(ItemQuery(stream, kinds=("fact",), open=True, order="newest"))


def change_something(store: Store, choose: random.Random) -> None:
    stream = store.create_stream(ANNA)
    facts = open_facts(store, stream.id)
    version = store.advance(stream.id).version
    key = choose.choice(["", "Home", " home ", "car"])
    new = make_record(people=choose.choice(PEOPLE), metadata={"memory_key": key} if key else {}, version=version)
    fact = choose.choice(facts) if facts else None
    what = choose.random()
    if fact is None or what < 0.5:
        store.insert(stream._replace(version=version), [new])
    elif what < 0.7:
        changes = {name: getattr(new, name) for name in ("people", "metadata", "topic")}
        store.update([fact._replace(version=version, **changes)])
    elif what < 0.85:
        store.update([fact._replace(version=version, retired=NOON)])
    else:
        store.delete(stream.id, [fact.seq], version)


def compare_with_a_pass(store: Store, choose: random.Random) -> None:
    stream = store.create_stream(ANNA)
    key = choose.choice(["home", "car"])
    wanted = make_record(people=choose.choice(PEOPLE), metadata={"memory_key": key})
    held = [record for record in open_facts(store, stream.id) if memory_key(record.metadata) == key]
    expected = [record for record in held if share_people(wanted, record)]
    assert find_same_topic(store, stream, wanted) == expected


def share_people(one: Record, two: Record) -> bool:
    names = [{name.lower() for name in record.people} for record in (one, two)]
    return not names[0] or not names[1] or bool(names[0] & names[1])
