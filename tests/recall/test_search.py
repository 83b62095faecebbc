"""What recall gives back: each thing once."""

from __future__ import annotations

import pytest

import eunoe
from eunoe.recall.recipes import RECIPES
from eunoe.text.tokens import token_count

ANNA = {"user": "anna"}
SAID = "I moved to Turin in May. The cat came along."


@pytest.fixture
def told(memory):
    """A message, a memory that only quotes it, and one that says more."""
    memory.observe(ANNA, [{"content": SAID, "name": "Anna", "id": "m1"}, {"content": "How nice!", "id": "m2"}])
    memory.remember(ANNA, "Anna: I moved to Turin in May.", id="quote", source=["m1"])
    memory.remember(ANNA, "Anna moved to Turin in May 2024, from Paris.", id="more", source=["m1"])
    return memory


def found(memory, **how):
    return [hit.id for hit in memory.recall(ANNA, "When did Anna move to Turin?", **how)]


def test_a_memory_that_only_quotes_a_message_gives_its_place_to_it(told):
    ids = found(told)
    assert "quote" not in ids
    assert ids.count("m1") == 1
    assert "more" in ids


def test_the_quote_is_there_where_the_message_is_not_asked_for(told):
    assert "quote" in found(told, kinds=["fact"])


def test_what_is_folded_leaves_its_place_to_the_next(told):
    assert len(found(told, limit=2)) == 2


def test_scores_still_fall(told):
    scores = [hit.score for hit in told.recall(ANNA, "When did Anna move to Turin?")]
    assert scores == sorted(scores, reverse=True)


def test_a_quote_in_another_scope_is_folded_too(memory):
    session = {"agent": "a", "session": "s", "user": "anna"}
    user = {"agent": "a", "user": "anna"}
    memory.observe(session, {"content": SAID, "name": "Anna", "id": "m1"})
    memory.remember(user, "Anna: I moved to Turin in May.", source=["@agent=a/session=s/user=anna#m1"])
    hits = memory.recall([session, user], "When did Anna move to Turin?")
    assert [hit.id for hit in hits] == ["m1"]
    assert len(memory.recall(user, "When did Anna move to Turin?")) == 1


def test_any_limit_is_taken(memory):
    memory.remember("user=anna", "Anna plays the cello.")
    assert len(memory.recall("user=anna", "cello", limit=2**70)) == 1


def test_a_search_that_lacks_nothing_says_nothing():
    with eunoe.open(":memory:", embedder="static", llm="none", form=False) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        for recipe in RECIPES:
            assert memory.recall(ANNA, "Who plays the cello?", recipe=recipe).notes == ()


def test_a_budget_of_tokens_holds_the_best_that_fit_to_the_last_token(memory):
    texts = [
        "A kiln.",
        "A kiln is an oven for clay, " + "and so on, " * 20,
        "Once a kiln was here.",
        "This is no kiln.",
    ]
    memory.remember_many(ANNA, texts)
    ranked = [hit.text for hit in memory.recall(ANNA, "kiln")]
    costs = [token_count(text) for text in ranked]
    assert sorted(ranked) == sorted(texts)
    for budget in range(1, sum(costs) + 1):
        fitting, room = [], budget
        for text, cost in zip(ranked, costs, strict=True):
            if cost <= room:
                fitting.append(text)
                room -= cost
        assert [hit.text for hit in memory.recall(ANNA, "kiln", tokens=budget)] == fitting


def test_a_budget_of_tokens_is_the_only_limit_unless_one_is_given(memory):
    memory.remember_many(ANNA, [f"Kiln number {number}." for number in range(30)])
    assert len(memory.recall(ANNA, "kiln")) == 10
    assert len(memory.recall(ANNA, "kiln", tokens=5000)) == 30
    assert len(memory.recall(ANNA, "kiln", tokens=5000, limit=4)) == 4
