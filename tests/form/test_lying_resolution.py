"""A model that lies about keys and replacements closes no live fact that its sentence is not about."""

from __future__ import annotations

import random
from itertools import count, product

import pytest
from tests.support.conversation import Conversation, propose

import eunoe
from eunoe.model.scope import Scope

FACTS = {
    "home": "Anna lives in Turin.",
    "job": "Anna works as a nurse.",
    "employer": "Anna works at Gradenigo.",
    "tea": "Anna likes tea.",
    "running": "Anna likes running.",
    "nuts": "Anna is allergic to nuts.",
    "milk": "Anna is allergic to milk.",
    "dog": "Anna's dog is called Rex.",
    "cat": "Anna has a cat.",
    "sister": "Anna's sister Lea lives in Milan.",
    "colour": "Anna's favourite colour is green.",
    "food": "Anna's favourite food is pizza.",
    "phone": "Anna's phone number is 555-0101.",
    "trip": "Anna plans a trip to Norway in August.",
    "answers": "Anna prefers short answers.",
}
"""Live facts, each under a memory key of its own name and under one that all of them share."""
SENTENCES = {
    "Anna moved to Rome.": {"home"},
    "Anna now works as a teacher.": {"job"},
    "Anna's favourite colour is blue.": {"colour"},
    "Anna's phone number is 555-0199.": {"phone"},
    "Anna's dog is called Bruno.": {"dog"},
    "Anna does not like tea.": {"tea"},
    "Anna likes opera.": set(),
    "Anna went for a walk in Turin.": set(),
    "Anna is tired.": set(),
    "Anna's brother lives in Paris.": set(),
    "Anna has a parrot.": set(),
    "Anna is allergic to dust.": set(),
    "Anna's favourite book is Emma.": set(),
    "Anna wants to learn Spanish.": set(),
    "Anna met Lea in Milan.": set(),
    "All that was known is replaced.": set(),
    "Nothing is true any more.": set(),
    "OK.": set(),
    "Anna sold her bike in Turin.": set(),
    "Anna ate pizza with the nurse.": set(),
}
"""What a model says, and the facts that it is about."""
WAYS = ("category", "stolen key", "all replaced", "key and all replaced", "true key")
NUMBERS = count()
LIES = list(product(SENTENCES, WAYS))


@pytest.fixture(scope="module")
def anna(tmp_path_factory):
    path = tmp_path_factory.mktemp("lies") / "memory.db"
    with eunoe.open(path, embedder="none", form=False) as memory:
        yield Conversation(memory)


@pytest.mark.parametrize("category", [False, True], ids=["own keys", "one category"])
@pytest.mark.parametrize(("sentence", "way"), LIES)
def test_no_live_fact_is_closed_that_the_sentence_is_not_about(anna, sentence, way, category):
    chance, scope = random.Random(f"{sentence} {way}"), Scope(agent="cook", user=f"anna{next(NUMBERS)}")
    keys = {name: "anna/preference" if category else f"anna/{name}" for name in FACTS}
    facts = [propose(text, 0, key=keys[name], people=("Anna",)) for name, text in FACTS.items()]
    ids = anna.resolve(*facts, target=scope).stored
    assert len(anna.open_atoms(scope)) == len(FACTS)
    about = SENTENCES[sentence]
    key = {
        "category": "anna/preference",
        "stolen key": f"anna/{chance.choice(sorted(set(FACTS) - about))}",
        "key and all replaced": f"anna/{chance.choice(sorted(FACTS))}",
        "true key": next((keys[name] for name in about), ""),
    }.get(way, "")
    replaces = ids if "all replaced" in way else ()
    anna.resolve(propose(sentence, 5, key=key, people=("Anna",), replaces=replaces), target=scope)
    closed = {name for name, text in FACTS.items() if text not in anna.open_atoms(scope)}
    assert closed <= about
    assert sentence in anna.open_atoms(scope)
    if way == "true key" or replaces:
        assert closed == about
