"""A scope that holds nothing while a near one does is told so, wherever somebody looks."""

from __future__ import annotations

import pytest
from tests.support.records import insert, make_record

import eunoe
from eunoe.memory import Memory
from eunoe.model.scope import Scope
from eunoe.records import reading

pytestmark = pytest.mark.remote

KAI = Scope(agent="shop", user="kai")


def notes_of(memory: Memory, scope: str) -> set[tuple[str, ...]]:
    recalled = memory.recall(scope, "What does Kai like?").notes
    return {recalled, memory.list(scope).notes, memory.context(scope, "What does Kai like?").notes}


def test_a_scope_with_fewer_keys_names_the_one_that_holds_something(memory: Memory) -> None:
    memory.remember(KAI, "Kai likes green tea.")
    near = "agent=shop holds nothing, but agent=shop/user=... does: name every key of the scope you mean"
    expected = {(near,), (f"{near}, or write agent=shop/*",)}  # a context is about one scope
    assert notes_of(memory, "agent=shop") == notes_of(memory, "agent_id=shop") == expected
    assert [hit.text for hit in memory.recall("agent=shop/*", "tea")] == ["Kai likes green tea."]


def test_a_scope_with_more_keys_names_the_one_that_holds_something(memory: Memory) -> None:
    memory.remember("user=kai", "Kai likes green tea.")
    (note,) = memory.recall("agent=shop/user=kai", "tea").notes
    assert "but user=kai does" in note
    assert "/*" not in note


@pytest.mark.parametrize("scope", ["agent=shop/user=kai", "user=lea", "agent=bank/user=kai", "project=shop"])
def test_nothing_is_said_where_no_scope_is_near_or_something_is_held(memory: Memory, scope: str) -> None:
    memory.remember(KAI, "Kai likes green tea.")
    assert memory.recall(scope, "tea").notes == ()
    assert memory.list(scope).notes == ()


def test_a_question_that_finds_nothing_in_a_scope_that_holds_something_has_no_note(memory: Memory) -> None:
    memory.remember(KAI, "Kai likes green tea.")
    memory.remember("user=kai", "Kai plays chess.")
    assert memory.recall("user=kai", "tea", kinds=["message"]) == []
    assert memory.recall("user=kai", "tea", kinds=["message"]).notes == ()


def test_other_users_are_not_named(memory: Memory) -> None:
    memory.remember(KAI, "Kai likes green tea.")
    memory.remember("agent=shop/user=lea", "Lea likes coffee.")
    (note,) = memory.recall("agent=shop", "tea").notes
    assert "but agent=shop/user=... does" in note
    assert "kai" not in note
    assert "lea" not in note


def test_a_forgotten_scope_is_not_named(memory: Memory) -> None:
    memory.remember(KAI, "Kai likes green tea.")
    memory.forget(KAI, everything=True)
    assert memory.recall("agent=shop", "tea").notes == ()


def test_a_forgotten_scope_is_not_named_for_what_another_scope_holds(memory: Memory) -> None:
    memory.remember(KAI, "Kai likes green tea.")
    memory.remember("agent=bank/user=lea", "Lea likes coffee.")
    memory.forget(KAI, everything=True)
    assert memory.recall("agent=shop", "tea").notes == ()


@pytest.mark.in_process
def test_a_scope_that_an_older_store_keeps_under_another_key_is_named(memory: Memory) -> None:
    insert(memory._engine.store, Scope.exact("user_id=kai"), make_record(text="Kai likes green tea."))
    (note,) = memory.recall("user=kai", "tea").notes
    assert "but user_id=... does" in note
    (scope,) = memory.scopes()
    assert [hit.text for hit in memory.recall(scope, "tea")] == ["Kai likes green tea."]
    assert memory.recall("user=lea", "tea").notes == ()


def test_odd_names_are_compared_as_they_are(memory: Memory) -> None:
    memory.remember({"agent": "a%b_c", "user": "kai/lea"}, "Odd names.")
    memory.remember({"agent": "axbyc", "user": "kai"}, "Other names.")
    (note,) = memory.recall({"user": "kai/lea"}, "names", exact=True).notes
    assert "agent=a%b_c/user=kai/lea" in note
    assert memory.recall({"user": "%"}, "names").notes == ()
    assert memory.recall({"user": "KAI"}, "names").notes == ()


def test_an_empty_answer_costs_no_more_the_more_scopes_there_are(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MAX_STREAMS", 3)
    for number in range(5):
        memory.remember(f"agent=a{number}/user=u{number}", "words")
    assert "agent=a1/user=u1" in memory.recall("user=u1", "words", exact=True).notes[0]
    assert memory.recall("user=u4", "words", exact=True).notes == ()


def test_values_of_keys_that_may_name_people_are_not_shown() -> None:
    with eunoe.open(":memory:", embedder="none") as memory:
        memory.remember("agent=shop/customer=bob", "Bob likes tea.")
        (note,) = memory.recall("agent=shop", "tea").notes
        assert "bob" not in note
        assert "agent=shop/customer=... does" in note
