"""What recall gives back: each thing once."""

from __future__ import annotations

import pytest
from tests.support.letters import Letters

import eunoe
from eunoe.errors import InputError
from eunoe.recall.recipes import RECIPES
from eunoe.text.sentences import token_count

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


def test_a_quote_in_another_scope_is_folded_too(memory):
    session = {"agent": "a", "session": "s", "user": "anna"}
    user = {"agent": "a", "user": "anna"}
    memory.observe(session, {"content": SAID, "name": "Anna", "id": "m1"})
    source = ["@agent=a/session=s/user=anna#m1"]
    memory.remember(user, "Anna: I moved to Turin in May.", source=source, source_scopes=session)
    hits = memory.recall([session, user], "When did Anna move to Turin?")
    assert [hit.id for hit in hits] == ["m1"]
    assert len(memory.recall(user, "When did Anna move to Turin?")) == 1


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


@pytest.fixture
def kilns(memory):
    """Four memories of a kiln, no two of them alike in anything a filter asks for."""
    memory.observe(
        ANNA, {"content": "The kiln is warm.", "id": "m1", "name": "Bo", "session": "s1", "time": "2024-01-01"}
    )
    memory.observe(
        ANNA, {"content": "The kiln is cold.", "id": "m2", "name": "Cy", "session": "s2", "time": "2024-02-01"}
    )
    memory.remember(
        ANNA, "A kiln for rent.", id="f1", label="offer", files=["src/a.py"], people=["Ida"], time="2024-03-01"
    )
    memory.remember(
        ANNA,
        "A kiln for sale.",
        id="f2",
        kind="observation",
        time="2024-04-01",
        valid_from="2024-04-01",
        valid_to="2999-01-01",
    )
    return memory


@pytest.mark.parametrize(
    ("filter", "ids"),
    [
        ({}, {"m1", "m2", "f1", "f2"}),
        ({"kinds": ["fact"]}, {"f1"}),
        ({"kinds": ["observation", "message"]}, {"m1", "m2", "f2"}),
        ({"kinds": ["fact", "fact", "fact"]}, {"f1"}),
        ({"labels": ["offer"]}, {"f1"}),
        ({"labels": "offer"}, {"f1"}),
        ({"since": "2024-02-01"}, {"m2", "f1", "f2"}),
        ({"until": "2024-02-01"}, {"m1"}),
        ({"since": "2024-02-01", "until": "2024-03-02"}, {"m2", "f1"}),
        ({"files": ["./src/a.py"]}, {"f1"}),
        ({"files": "src"}, {"f1"}),
        ({"people": ["Ida"]}, {"f1"}),
        ({"people": ["Bo", "Ida"]}, {"m1", "f1"}),
        ({"sessions": ["s2"]}, {"m2"}),
        ({"sessions": "s1"}, {"m1"}),
        ({"speakers": ["Cy"]}, {"m2"}),
        ({"speakers": ["Bo", "Ida"]}, {"m1"}),
        ({"as_of": "2024-03-15"}, {"m1", "m2", "f1"}),
        ({"as_of": "2999-01-01"}, {"m1", "m2", "f1"}),
        ({"now": "2998-12-31"}, {"m1", "m2", "f1", "f2"}),
        ({"now": "2999-01-01"}, {"m1", "m2", "f1"}),
        ({"known_at": "2024-12-31"}, set()),
        ({"known_at": "2998-12-31"}, {"m1", "m2", "f1", "f2"}),
    ],
)
@pytest.mark.parametrize("recipe", ["default", "lexical", "associative"])
def test_every_filter_reaches_what_is_found(kilns, filter, ids, recipe):
    assert {hit.id for hit in kilns.recall(ANNA, "kiln", recipe=recipe, **filter)} == ids


def test_an_empty_question_is_refused(memory):
    with pytest.raises(InputError, match=r"^the query is empty"):
        memory.recall(ANNA, " \n")


def test_words_alone_lack_no_vectors(path):
    letters = Letters()
    with eunoe.open(path, embedder=letters) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        letters.broken = True
        [note] = memory.recall(ANNA, "cello").notes
        assert note.startswith("searched without vectors: ")
        assert memory.recall(ANNA, "cello", recipe="lexical").notes == ()


def found_by_words(memory, query):
    hits = memory.recall(ANNA, query)
    return {hit.id for hit in hits if any(reason.name == "lexical" and reason.share > 0.2 for reason in hit.reasons)}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("rendr farrm Sundys", {"render"}),
        ("allergik", {"peanuts"}),
        ("Ferdinadn", {"cat"}),
        ("horse", set()),  # a word of its own, though nobody used it
        ("lkae", set()),  # too short: one letter away from too many
        ("erender", set()),  # the first letter stays
        ("Wohnnung", set()),
    ],
)
def test_words_that_nobody_knows_are_found_by_those_one_letter_away(path, query, found):
    texts = {
        "render": "We rent a render farm on Sundays.",
        "peanuts": "Ben is allergic to peanuts.",
        "cat": "The cat is called Ferdinand.",
        "lake": "A house by the lake.",
    }
    with eunoe.open(path, embedder="static", llm="none", form=False) as memory:
        for id, text in texts.items():
            memory.remember(ANNA, text, id=id)
        assert found_by_words(memory, query) == found
