"""Keyword search over keyword memories: how hits are ranked, and what options do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.discussion_writer import DiscussionWriter

import eunoe
from eunoe.apps.discussion.retrievers.keyword_search import KeywordQuery, recency_factors, search_keyword_memories
from eunoe.apps.discussion.scope import discussion_scope
from eunoe.errors import EmbedderError, InputError
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now

SCOPE = discussion_scope("trip")


def search(memory: Memory, keywords: str, **options: Any) -> list[str]:
    query = KeywordQuery(keywords=keywords, **options)
    return [hit.memory.summary for hit in search_keyword_memories(memory, [SCOPE], query)]


def test_every_field_is_searched(write: DiscussionWriter) -> None:
    write.keyword("One.", title="Lisbon")
    write.keyword("Two in Lisbon.")
    write.keyword("Three.", entities=("Lisbon",))
    write.keyword("Four.", key_phrases=("trip to Lisbon",))
    write.keyword("Five.", topics=("Lisbon",))
    write.keyword("Six.")
    assert set(search(write.memory, "lisbon", limit=9)) == {"One.", "Two in Lisbon.", "Three.", "Four.", "Five."}


def test_weights_order_the_fields(write: DiscussionWriter) -> None:
    write.keyword("Nothing here.", title="Lisbon")
    write.keyword("Nothing there.", entities=("Lisbon",))
    assert search(write.memory, "lisbon", weights=[9, 1, 1, 1, 1])[0] == "Nothing here."
    assert search(write.memory, "lisbon", weights=(1, 1, 9, 1, 1))[0] == "Nothing there."
    assert search(write.memory, "lisbon", weights=[0, 1, 1, 1, 0.5]) == ["Nothing there."]


def test_the_text_is_the_summary_too(write: DiscussionWriter) -> None:
    write.keyword("Lisbon.")
    assert search(write.memory, "lisbon", weights=[0, 0, 0, 0, 1]) == ["Lisbon."]


@pytest.mark.parametrize(
    "weights",
    [
        [1, 1, 1, 1],
        [1] * 6,
        [1, 1, 1, 1, -1],
        [0] * 5,
        [1, 1, 1, 1, float("nan")],
        [1, 1, 1, 1, "1"],
        "11111",
        3,
        [True] * 5,
        [1e308] * 5,
    ],
)
def test_wrong_weights_are_refused(memory: Memory, weights: Any) -> None:
    with pytest.raises(InputError, match="weights"):
        search(memory, "lisbon", weights=weights)


def test_a_limit_of_0_is_the_default(write: DiscussionWriter) -> None:
    for number in range(7):
        write.keyword(f"Lisbon {number}.")
    assert len(search(write.memory, "lisbon", limit=0)) == 5


@pytest.mark.parametrize("options", [{"limit": -1}, {"limit": "5"}, {"mode": "fuzzy"}, {"use_recency": "yes"}])
def test_wrong_options_are_refused(memory: Memory, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        search(memory, "lisbon", **options)


@pytest.mark.parametrize(
    "keywords", ['"', "lisbon*", "-lisbon", "NEAR(lisbon)", "title:lisbon", "lisbon AND", "{lisbon}", "'; DROP TABLE x"]
)
def test_operators_are_harmless(write: DiscussionWriter, keywords: str) -> None:
    write.keyword("Lisbon.")
    assert search(write.memory, keywords) == (["Lisbon."] if "lisbon" in keywords else [])


def test_what_expired_or_was_replaced_is_not_found(write: DiscussionWriter) -> None:
    write.keyword("Lisbon in May.")
    old = write.keyword("Lisbon in June.")
    write.memory.expire(SCOPE, old.id, utc_now())
    assert search(write.memory, "lisbon") == ["Lisbon in May."]


def test_a_new_memory_is_found_at_once(write: DiscussionWriter) -> None:
    write.keyword("Lisbon.")
    assert search(write.memory, "porto") == []
    write.keyword("Porto.")
    assert search(write.memory, "porto") == ["Porto."]


def test_what_is_forgotten_is_gone_at_once(write: DiscussionWriter) -> None:
    kept = write.keyword("Lisbon.")
    assert search(write.memory, "lisbon") == ["Lisbon."]
    write.memory.forget(SCOPE, ids=[kept.id])
    assert search(write.memory, "lisbon") == []


def test_recent_ones_come_first_if_asked_for(write: DiscussionWriter) -> None:
    now = utc_now()
    write.keyword("Lisbon, Lisbon, long ago.", time=now - timedelta(days=900))
    write.keyword("Lisbon, the other day.", time=now - timedelta(days=1))
    assert search(write.memory, "lisbon")[0] == "Lisbon, Lisbon, long ago."
    assert search(write.memory, "lisbon", use_recency=True)[0] == "Lisbon, the other day."


def test_recency_is_what_the_formula_says() -> None:
    now = utc_now().timestamp()
    ages = np.array([0.0, 100.0, 10_000.0, -5.0])
    factors = recency_factors(now - ages * 86_400)
    assert factors == pytest.approx([2.5, 1 + 1.5 * np.exp(-1), 1.0, 2.5], abs=1e-6)


def test_entities_lead_one_step_further_into_reserved_places(write: DiscussionWriter) -> None:
    for number in range(6):
        write.keyword(f"Anna and the number {number}.", entities=("Anna", "Ben") if number == 0 else ("Anna",))
    write.keyword("Ben is a welder.", entities=("Ben",))
    write.keyword("Ben likes Carla.", entities=("Ben", "Carla"))
    write.keyword("Carla sails.", entities=("Carla",))
    plain = search(write.memory, "Anna", limit=6)
    expanded = search(write.memory, "Anna", limit=6, use_entity_expansion=True)
    assert not any("Ben is" in text for text in plain)
    assert expanded[:4] == plain[:4]
    assert set(expanded[4:]) == {"Ben is a welder.", "Ben likes Carla."}


def test_what_nobody_else_wants_goes_to_memories_with_the_same_entities(write: DiscussionWriter) -> None:
    write.keyword("Anna knows Ben.", entities=("Ben",))
    others = [write.keyword(f"Ben has been to town {number}.").summary for number in range(6)]
    expanded = search(write.memory, "Anna", limit=5, use_entity_expansion=True)
    assert expanded[0] == "Anna knows Ben."
    assert len(set(expanded[1:]) & set(others)) == 4


def test_one_place_is_never_given_away(write: DiscussionWriter) -> None:
    write.keyword("Anna.", entities=("Ben",))
    write.keyword("Ben.", entities=("Ben",))
    assert search(write.memory, "Anna", limit=1, use_entity_expansion=True) == ["Anna."]


def test_without_an_embedder_meaning_falls_back_to_words(write: DiscussionWriter) -> None:
    write.keyword("Anna works as a welder.")
    assert search(write.memory, "welder", mode="hybrid") == ["Anna works as a welder."]
    assert search(write.memory, "welder", mode="semantic") == ["Anna works as a welder."]
    assert search(write.memory, "", mode="semantic", semantic_query="a welder") == ["Anna works as a welder."]


def test_meaning_finds_what_no_word_finds(path: Path) -> None:
    with eunoe.open(path, embedder="static", llm="none", form=False) as memory:
        write = DiscussionWriter(memory)
        write.keyword("The physician examined her patient.")
        write.keyword("We sailed to the island.")
        memory.flush()
        assert search(memory, "doctor") == []
        assert search(memory, "doctor", mode="semantic", limit=1) == ["The physician examined her patient."]
        found = search(memory, "island", mode="hybrid", semantic_query="doctor", limit=2)
        assert set(found) == {"The physician examined her patient.", "We sailed to the island."}


def test_an_embedder_that_fails_leaves_the_words(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        name = "broken-1"

        def embed(self, texts: list[str]) -> np.ndarray:
            return np.ones((len(texts), 4), np.float32)

        def embed_query(self, text: str) -> np.ndarray:
            raise EmbedderError("the endpoint is gone")

    with eunoe.open(path, embedder=Broken(), llm="none", form=False) as memory:
        DiscussionWriter(memory).keyword("We sailed to the island.")
        assert search(memory, "island", mode="hybrid") == ["We sailed to the island."]
