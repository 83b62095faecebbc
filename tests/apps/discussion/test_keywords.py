"""Keyword search: phrases before words, rare before common, the best first; and what options do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.discussion_writer import DiscussionWriter

import eunoe
from eunoe.apps.discussion.keywords import KeywordQuery, search_keyword_memories
from eunoe.apps.discussion.model import discussion_scope
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


def found(memory: Memory, texts: list[str], *keywords: str) -> list[str]:
    """What of some memories is found."""
    write = DiscussionWriter(memory)
    for text in texts:
        write.keyword(text)
    return search(memory, "; ".join(keywords), limit=10)


RANKINGS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "a phrase before its words": (
        ["train train or night, night; train, or night", "the night train to Oslo", "a boat"],
        ["night train"],
        ["the night train to Oslo", "train train or night, night; train, or night"],
    ),
    "more keywords": (["tea", "tea and cake", "milk"], ["cake", "tea"], ["tea and cake", "tea"]),
    "a short text": (["tea " + "and other things " * 20, "tea"], ["tea"], ["tea", "tea " + "and other things " * 20]),
    "of equals the later one": (["tea one", "tea two"], ["tea"], ["tea two", "tea one"]),
    "other forms": (["She WELDS pipes", "No."], ["welding"], ["She WELDS pipes"]),
    "accents": (["Un café à Paris", "No."], ["cafe"], ["Un café à Paris"]),
    "other languages": (
        ["Wir haben die Häuser in der alten Stadt nicht gesehen", "Houses are here"],
        ["Haus"],
        ["Wir haben die Häuser in der alten Stadt nicht gesehen"],
    ),
    "a code": (["gpt4", "gpt5"], ["gpt4"], ["gpt4"]),
    "a path": (["see src/app/main.py", "C++ is fast"], ["src/app/main.py"], ["see src/app/main.py"]),
    "a part of a path": (["see src/app/main.py", "C++ is fast"], ["main.py"], ["see src/app/main.py"]),
    "a name with signs": (["C++ is fast", "err_42 came up"], ["C++"], ["C++ is fast"]),
    "an error": (["C++ is fast", "err_42 came up"], ["ERR_42"], ["err_42 came up"]),
    "a hyphen": (["well-known facts", "No."], ["well known"], ["well-known facts"]),
    "a run of characters": (["京都と東京は遠い", "東京都に住む"], ["東京都"], ["東京都に住む", "京都と東京は遠い"]),
    "no keyword": (["tea"], ["..."], []),
    "nothing": ([], ["tea"], []),
}


@pytest.mark.parametrize("name", RANKINGS)
def test_what_is_found_and_in_which_order(name: str, memory: Memory) -> None:
    texts, keywords, expected = RANKINGS[name]
    assert found(memory, texts, *keywords) == expected


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("安娜去年夏天住在东京。", "东京"),
        ("安娜去年夏天住在东京。", "住在东京"),
        ("彼女は東京に住んでいます", "東京"),
        ("나는 서울에서 일한다", "서울"),
        ("ฉันอยู่ที่กรุงเทพ", "กรุงเทพ"),
        ("她搬到了京", "京"),
    ],
)
def test_scripts_without_spaces_are_found(text: str, keyword: str, memory: Memory) -> None:
    assert found(memory, [text, "什么都没有", "nothing"], keyword) == [text]


def test_a_phrase_does_not_go_past_the_end_of_a_text(write: DiscussionWriter) -> None:
    write.keyword("x", key_phrases=("night train",))
    write.keyword("y", key_phrases=("night", "train"))
    assert search(write.memory, "night train") == ["x", "y"]


def test_several_discussions_are_ranked_as_one(write: DiscussionWriter) -> None:
    """In the first one a word is rare, in both together it is not: its memories are no better for that."""
    texts = ["tea one", "milk two", "milk one", "milk two", "tea cake", "tea one", "tea two"]
    for place, text in enumerate(texts):
        for discussion in ("one", "first" if place < 4 else "second"):
            write.keyword(text, discussion=discussion)
    for keywords in ("tea", "milk; tea one", "cake; two"):
        lists = [
            search_keyword_memories(
                write.memory, list(map(discussion_scope, ids)), KeywordQuery(keywords=keywords, limit=9)
            )
            for ids in (["one"], ["first", "second"])
        ]
        one, both = ([hit.memory.summary for hit in hits] for hits in lists)
        assert one == both


def test_recent_ones_come_first_if_asked_for(write: DiscussionWriter) -> None:
    now = utc_now()
    write.keyword("Lisbon, Lisbon, long ago.", time=now - timedelta(days=900))
    write.keyword("Lisbon, the other day.", time=now - timedelta(days=1))
    assert search(write.memory, "lisbon")[0] == "Lisbon, Lisbon, long ago."
    assert search(write.memory, "lisbon", use_recency=True)[0] == "Lisbon, the other day."


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
