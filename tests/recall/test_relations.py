"""Relations between names, as triples of passages give them, and how much a graph holds."""

from __future__ import annotations

from typing import Any

import pytest

from eunoe.memory import Memory
from eunoe.model.result import GraphSize, Relation

pytestmark = pytest.mark.remote

ATLAS = {"project": "atlas"}


def remember(memory: Memory, text: str, *triples: tuple[str, str, str]) -> str:
    return memory.remember(ATLAS, text, metadata={"triples": [list(triple) for triple in triples]}).id


def relations(memory: Memory, entity: str = "", **arguments: Any) -> list[tuple[str, str, str, int]]:
    found = memory.graph.neighbours(ATLAS, entity, **arguments).relations
    return [(each.subject, each.relation, each.object, each.passages) for each in found]


def test_what_passages_say_is_counted_once_for_each(memory: Memory) -> None:
    founded = ("Anna Berg", "founded", "Nordwind")
    remember(memory, "Anna Berg founded Nordwind in Bergen.", founded, ("Nordwind", "is in", "Bergen"))
    remember(memory, "Nordwind: Anna Berg founded it.", ("Anna Berg", "Founded", "Nordwind"), founded)
    assert memory.graph.neighbours(ATLAS, "Anna Berg").relations == ()
    memory.graph.extract(ATLAS, ask=False)
    assert relations(memory) == [("anna berg", "founded", "nordwind", 2), ("nordwind", "is in", "bergen", 1)]
    assert memory.graph.neighbours(ATLAS, "Anna Berg").relations[0] == Relation("anna berg", "founded", "nordwind", 2)


def test_only_names_that_are_shown_have_relations(memory: Memory) -> None:
    remember(
        memory,
        "Anna Berg founded Nordwind with Felix Cole.",
        ("Anna Berg", "founded", "Nordwind"),
        ("Felix Cole", "joined", "Nordwind"),
    )
    memory.graph.extract(ATLAS, ask=False)
    shown = {entity.key for entity in memory.graph.neighbours(ATLAS, "Anna Berg", limit=1).entities}
    assert {end for a, _, b, _ in relations(memory, "Anna Berg", limit=1) for end in (a, b)} <= shown
    assert len(relations(memory, "Anna Berg")) == 2


def test_a_single_word_stands_for_the_full_name_of_its_passage(memory: Memory) -> None:
    remember(memory, "Bob Smith moved to Oslo. Smith likes Oslo.", ("Smith", "likes", "Oslo"))
    memory.graph.extract(ATLAS, ask=False)
    assert relations(memory, "Bob Smith") == [("bob smith", "likes", "oslo", 1)]


def test_nobody_is_related_to_themselves(memory: Memory) -> None:
    remember(memory, "Anna Berg met Felix Cole.", ("Anna Berg", "knows", "Anna Berg"))
    memory.graph.extract(ATLAS, ask=False)
    assert relations(memory) == []


def test_what_is_forgotten_or_no_longer_true_says_nothing(memory: Memory) -> None:
    first = remember(memory, "Anna Berg founded Nordwind.", ("Anna Berg", "founded", "Nordwind"))
    second = remember(memory, "Anna Berg sold Nordwind.", ("Anna Berg", "sold", "Nordwind"))
    memory.graph.extract(ATLAS, ask=False)
    assert len(relations(memory)) == memory.graph.size(ATLAS).triples == 2
    memory.update(ATLAS, first, "Anna Berg left Nordwind.")
    assert [each[1] for each in relations(memory)] == ["sold"]
    memory.forget(ATLAS, second)
    assert relations(memory) == []
    assert memory.graph.size(ATLAS).triples == 0


def test_a_graph_is_measured_as_it_is_now(memory: Memory) -> None:
    assert memory.graph.size(ATLAS) == GraphSize()
    id = remember(memory, "Anna Berg founded Nordwind.", ("Anna Berg", "founded", "Nordwind"))
    memory.remember(ATLAS, "Nordwind lies in Bergen.")
    memory.remember({"project": "other"}, "Felix Cole lives in Lisbon.")
    assert memory.graph.size(ATLAS) == GraphSize(passages=2, entities=3, mentions=4, triples=0)
    memory.graph.extract(ATLAS, ask=False)
    assert memory.graph.size(ATLAS).triples == 1
    memory.forget(ATLAS, id)
    assert memory.graph.size(ATLAS) == GraphSize(passages=1, entities=2, mentions=2, triples=0)
