"""Replacing keeps the id and the place of a memory. The versions before stay readable, until it is forgotten."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe import Memory
from eunoe.model.atom import Item

ANNA = "user=anna"


def texts(items: Any) -> list[str]:
    return [item.text for item in items]


def facts(memory: Memory, **options: Any) -> list[Item]:
    return list(memory.list(ANNA, **options).items)


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0, len(text) % 5, len(text) % 3] for text in texts]


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with eunoe.open(tmp_path / "memory.db", embedder=embed, llm="none", form=False) as opened:
        yield opened
        assert opened.admin.check().damage == ()


def test_an_id_names_the_new_version_and_keeps_its_place(memory: Memory) -> None:
    memory.remember_many(ANNA, [{"text": "one", "id": "a"}, {"text": "two", "id": "b"}])
    receipt = memory.remember(ANNA, "three", id="a", replace=True)
    assert (receipt.outcome, receipt.id, receipt.embedded) == ("superseded", "a", True)
    assert texts(facts(memory)) == ["three", "two"]
    assert memory.get(ANNA, "a").text == "three"
    assert memory.get(ANNA, receipt.closed).text == "one"
    assert texts(memory.history(ANNA, "a")) == texts(memory.history(ANNA, receipt.closed)) == ["one", "three"]


def test_a_new_id_is_stored_and_the_same_again_is_a_duplicate(memory: Memory) -> None:
    said = {"text": "one", "id": "a", "label": "l", "metadata": {"n": 1}, "files": ["x.py"], "valid_to": "2100-01-01"}
    outcomes = [memory.remember_many(ANNA, [said], replace=True)[0].outcome for _ in range(3)]
    assert outcomes == ["stored", "duplicate", "duplicate"]
    assert memory.remember_many(ANNA, [{**said, "text": "two"}], replace=True)[0].outcome == "superseded"
    assert memory.remember_many(ANNA, [{**said, "text": "two"}], replace=True)[0].outcome == "duplicate"
    assert len(memory.history(ANNA, "a")) == 2


CHANGES: list[dict[str, Any]] = [
    {"text": "One."},
    {"kind": "observation"},
    {"label": "other"},
    {"metadata": {}},
    {"metadata": {"n": True}},
    {"metadata": {"n": 1, "m": None}},
    {"files": []},
    {"pages": ["p"]},
    {"people": ["Eve"]},
    {"source": ["m1"]},
    {"time": 5},
    {"pinned": True},
    {"valid_from": "2020-01-01"},
    {"valid_to": None},
    {"valid_to": "2101-01-01"},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_kind_of_change_is_taken(memory: Memory, change: dict[str, Any]) -> None:
    memory.observe(ANNA, {"content": "It is so.", "id": "m1"})
    said = {"text": "one", "id": "a", "label": "l", "metadata": {"n": 1}, "files": ["x.py"], "valid_to": "2100-01-01"}
    memory.remember_many(ANNA, [said])
    assert memory.remember_many(ANNA, [{**said, **change}], replace=True)[0].outcome == "superseded"
    assert memory.remember_many(ANNA, [{**said, **change}], replace=True)[0].outcome == "duplicate"
    before, now = memory.history(ANNA, "a")
    assert (before.label, now.id, now.metadata) == ("l", "a", {**said, **change}["metadata"])


def test_without_replace_an_id_belongs_to_its_words(memory: Memory) -> None:
    memory.remember(ANNA, "one", id="a")
    memory.remember(ANNA, "two", id="a", replace=True)
    assert memory.remember(ANNA, "three", id="a").outcome == "conflict"
    assert memory.remember(ANNA, "two", id="a").outcome == "duplicate"


def test_an_id_that_was_generated_can_be_replaced(memory: Memory) -> None:
    id = memory.remember(ANNA, "one").id
    other = memory.remember(ANNA, "two").id
    assert memory.remember(ANNA, "two", id=id, replace=True).outcome == "superseded"
    assert [(item.id, item.text) for item in facts(memory)] == [(id, "two"), (other, "two")]
    assert memory.remember(ANNA, "one").outcome == "stored"  # nothing in force says so any more


def test_one_call_may_name_an_id_twice(memory: Memory) -> None:
    items = [{"text": f"{id} {n}", "id": id} for n in range(3) for id in "ab"] + [{"text": "loose"}]
    receipts = memory.remember_many(ANNA, items, replace=True)
    assert [receipt.outcome for receipt in receipts] == ["stored"] * 2 + ["superseded"] * 4 + ["stored"]
    assert texts(facts(memory)) == ["a 2", "b 2", "loose"]
    assert texts(memory.history(ANNA, "b")) == ["b 0", "b 1", "b 2"]


def test_a_message_is_never_replaced(memory: Memory) -> None:
    memory.observe(ANNA, {"content": "Hello.", "id": "m1"})
    assert memory.remember(ANNA, "Goodbye.", id="m1", replace=True).outcome == "conflict"
    assert memory.get(ANNA, "m1").text == "Hello."


def test_an_id_that_an_update_closed_names_the_latest_again(memory: Memory) -> None:
    memory.remember(ANNA, "one", id="a")
    memory.remember(ANNA, "two", id="a", replace=True)
    third = memory.update(ANNA, "a", "three").id
    assert memory.remember(ANNA, "four", id="a", replace=True).closed == third
    assert texts(memory.history(ANNA, "a")) == ["one", "two", "three", "four"]
    assert texts(facts(memory)) == ["four"]
    assert memory.remember(ANNA, "five", id=third, replace=True).outcome == "superseded"
    assert texts(memory.history(ANNA, "a")) == ["one", "two", "three", "four", "five"]
    assert [(item.id, item.text) for item in facts(memory)] == [(third, "five")]


def test_what_was_archived_is_in_force_again(memory: Memory) -> None:
    memory.remember(ANNA, "one", id="a", time=0)
    memory.streams.apply_retention(ANNA, max_age_days=1)
    archived = memory.get(ANNA, "a")
    assert archived.retired
    assert facts(memory) == []
    memory.remember(ANNA, "two", id="a", replace=True)
    assert texts(facts(memory)) == ["two"]
    assert memory.history(ANNA, "a")[0].retired == archived.retired


def test_past_versions_are_found_as_of_then(memory: Memory) -> None:
    memory.remember(ANNA, "Anna lives in Paris.", id="home", valid_from="2020-01-01")
    known = memory.get(ANNA, "home").recorded
    memory.remember(ANNA, "Anna lives in Rome.", id="home", valid_from="2024-01-01", replace=True)
    assert texts(memory.recall(ANNA, "Where does Anna live?")) == ["Anna lives in Rome."]
    assert texts(memory.recall(ANNA, "Where does Anna live?", as_of="2022-01-01")) == ["Anna lives in Paris."]
    assert texts(memory.recall(ANNA, "Where does Anna live?", known_at=known)) == ["Anna lives in Paris."]
    assert texts(facts(memory, known_at=known)) == ["Anna lives in Paris."]


def test_recall_follows_the_words_at_once(memory: Memory) -> None:
    memory.remember_many(ANNA, [{"text": f"number {n}", "id": f"n{n}", "metadata": {"n": n}} for n in range(5)])
    assert texts(memory.recall(ANNA, "number 3", where={"n": 3})) == ["number 3"]
    memory.remember(ANNA, "a green umbrella", id="n3", metadata={"n": 30}, replace=True)
    assert memory.recall(ANNA, "umbrella", recipe="lexical")[0].id == "n3"
    assert "number 3" not in texts(memory.recall(ANNA, "number 3"))
    assert texts(memory.recall(ANNA, "umbrella", where={"n": 30})) == ["a green umbrella"]
    assert texts(memory.recall(ANNA, "umbrella", where={"n": 3})) == []
    near = memory.recall(ANNA, "x", recipe="dense", vector=embed(["a green umbrella"])[0], limit=1)
    assert near[0].id == "n3"


def test_forgetting_an_id_takes_every_version(memory: Memory) -> None:
    for text in ("a blue parrot", "a red parrot", "a green parrot"):
        memory.remember(ANNA, text, id="a", replace=True)
    report = memory.forget(ANNA, "a", verify=True)
    assert (len(report.atoms), report.vectors, report.verified) == (3, 3, True)
    assert memory.recall(ANNA, "parrot") == []
    assert facts(memory, retired=True) == []
    assert memory.remember(ANNA, "a blue parrot", id="b", replace=True).outcome == "forgotten"
    assert memory.remember(ANNA, "a dog", id="a", replace=True).outcome == "forgotten"
    assert memory.remember(ANNA, "a red parrot", id="a", replace=True, again=True).outcome == "stored"


def test_forgotten_words_are_refused_and_taken_again(memory: Memory) -> None:
    memory.remember(ANNA, "one", id="a")
    memory.forget(ANNA, memory.remember(ANNA, "a secret").id)
    assert memory.remember(ANNA, "a secret", id="a", replace=True).outcome == "forgotten"
    assert memory.get(ANNA, "a").text == "one"
    assert memory.remember(ANNA, "a secret", id="a", replace=True, again=True).outcome == "superseded"


def test_what_may_return_is_stored_again(memory: Memory) -> None:
    memory.remember(ANNA, "one", id="a")
    memory.remember(ANNA, "two", id="a", replace=True)
    memory.forget(ANNA, ["a"], may_return=True)
    assert memory.remember(ANNA, "one", id="a", replace=True).outcome == "stored"


def test_a_source_that_is_forgotten_takes_what_may_repeat_its_words(memory: Memory) -> None:
    memory.observe(ANNA, {"content": "My PIN is 4711.", "id": "m1"})
    memory.remember(ANNA, "first", id="a")
    for text in ("Anna's PIN is 4711.", "Anna's PIN, 4711, is secret.", "Keep Anna's PIN secret."):
        memory.remember(ANNA, text, id="a", source=["m1"] if "is 4711" in text else [], replace=True)
    memory.forget(ANNA, "m1")
    assert texts(facts(memory, retired=True)) == ["first"]


def test_a_memory_key_closes_the_older_one(memory: Memory) -> None:
    key = {"memory_key": "anna/home"}
    memory.remember(ANNA, "Anna lives in Paris.", id="a", metadata=key)
    memory.remember(ANNA, "Anna likes tea.", id="b")
    memory.remember(ANNA, "Anna lives in Rome.", id="b", metadata=key, replace=True)
    assert texts(facts(memory)) == ["Anna lives in Rome."]
    memory.remember(ANNA, "Anna lives in Bern.", id="b", metadata=key, replace=True)
    history = texts(memory.history(ANNA, "b"))
    assert history[-2:] == ["Anna lives in Rome.", "Anna lives in Bern."]
    assert sorted(history[:2]) == ["Anna likes tea.", "Anna lives in Paris."]


def test_an_observation_that_was_absorbed_waits_again_with_other_words(memory: Memory) -> None:
    memory.remember(ANNA, "Anna is tired.", id="o", kind="observation")
    memory.summaries.consolidate(ANNA)
    (revision,) = memory.summaries.revisions(ANNA)
    assert revision.absorbed == ("o",)
    closed = memory.remember(ANNA, "Anna is awake.", id="o", kind="observation", replace=True).closed
    assert memory.summaries.revisions(ANNA)[0].absorbed == (closed,)
    (stream,) = memory.streams.list(user="anna")
    assert stream.observations == 1
    memory.forget(ANNA, "o")
    assert memory.summaries.revisions(ANNA) == []


def test_a_history_moves_with_an_export_and_a_backup(memory: Memory, tmp_path: Path) -> None:
    for number in range(4):
        memory.remember(ANNA, f"number {number}", id="a", metadata={"n": number}, replace=True)
    memory.admin.export(ANNA, tmp_path / "export.jsonl")
    memory.admin.backup(tmp_path / "backup.db")
    with eunoe.open(tmp_path / "new.db", embedder=embed, llm="none") as new:
        new.admin.import_(tmp_path / "export.jsonl")
        check_history(new)
        assert new.admin.import_(tmp_path / "export.jsonl").conflicts == 0
    with eunoe.open(tmp_path / "backup.db", embedder=embed, llm="none") as copy:
        check_history(copy)


def check_history(memory: Memory) -> None:
    assert texts(memory.history(ANNA, "a")) == [f"number {number}" for number in range(4)]
    assert texts(facts(memory)) == ["number 3"]
    assert memory.remember(ANNA, "number 4", id="a", replace=True).outcome == "superseded"
    assert memory.admin.check().damage == ()
    memory.forget(ANNA, "a")
    assert facts(memory, retired=True) == []


def test_an_atom_in_review_is_kept_by_being_replaced(memory: Memory) -> None:
    memory.streams.configure(ANNA, review="all")
    memory.observe(ANNA, "I am allergic to peanuts.")
    memory.form(ANNA)
    (atom,) = memory.recent(in_review=True).items
    memory.remember(ANNA, "Anna is allergic to all nuts.", id=atom.id, replace=True)
    assert memory.recent(in_review=True).items == ()
    assert texts(memory.recall(ANNA, "nuts", kinds=["fact", "observation"])) == ["Anna is allergic to all nuts."]


def test_recall_gives_no_version_that_was_closed_since_it_began(memory: Memory) -> None:
    memory.remember("user=anna", "Anna lives in Paris.", id="home")
    began = datetime.now(UTC)
    memory.remember("user=anna", "Anna lives in Rome.", id="home", replace=True)
    assert [hit.item.id for hit in memory.recall("user=anna", "Where does Anna live?", now=began)] == ["home"]
