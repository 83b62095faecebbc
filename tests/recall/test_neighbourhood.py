"""What stands around a name, relations between names as triples give them, and how much a graph holds."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from eunoe.errors import NotFoundError
from eunoe.memory import Memory
from eunoe.model.result import GraphSize, Neighbourhood, Relation

pytestmark = pytest.mark.remote

ATLAS = {"project": "atlas"}
DOCS = [
    "Anna Berg\n\nAnna Berg founded Nordwind with Felix Cole.",
    "Nordwind\n\nNordwind is a company in Bergen.",
    "Bergen\n\nBergen lies in Norway. Edvard Grieg was born there.",
    "Carla Diaz met Felix Cole, who lives near Lisbon.",
]


@pytest.fixture
def ids(memory: Memory) -> list[str]:
    return [receipt.id for receipt in memory.remember_many(ATLAS, DOCS)]


def names(found: Neighbourhood) -> dict[str, int]:
    return {entity.name: entity.distance for entity in found.entities}


def test_a_name_stands_beside_those_it_shares_passages_with(memory: Memory, ids: list[str]) -> None:
    found = memory.graph.neighbours(ATLAS, "felix cole")
    assert found.entity == "felix cole"
    assert names(found) == {"Felix Cole": 0, "Anna Berg": 1, "Nordwind": 1, "Carla Diaz": 1, "Lisbon": 1}
    assert {passage.id for passage in found.passages} == {ids[0], ids[3]}
    assert [passage.text for passage in found.passages if ids[0] == passage.id] == [DOCS[0]]


def test_depth_leads_from_passage_to_passage(memory: Memory, ids: list[str]) -> None:
    assert "Bergen" not in names(memory.graph.neighbours(ATLAS, "Anna Berg"))
    assert names(memory.graph.neighbours(ATLAS, "Anna Berg", depth=2))["Bergen"] == 2
    far = names(memory.graph.neighbours(ATLAS, "Anna Berg", depth=3))
    assert far["Edvard Grieg"] == far["Norway"] == 3
    assert names(memory.graph.neighbours(ATLAS, "Anna Berg", depth=6)) == far


def test_links_are_all_pairs_that_share_a_passage_and_no_others(memory: Memory, ids: list[str]) -> None:
    found = memory.graph.neighbours(ATLAS, "Anna Berg", depth=6)
    together = set()
    for text in DOCS:
        inside = [entity.key for entity in found.entities if entity.name in text]
        together |= {frozenset(pair) for pair in combinations(inside, 2)}
    assert {frozenset((link.a, link.b)) for link in found.links} == together
    assert len(found.links) == len(together)


def test_the_limit_keeps_the_nearest(memory: Memory, ids: list[str]) -> None:
    found = memory.graph.neighbours(ATLAS, "Nordwind", depth=6, limit=2)
    assert len(found.entities) == 3
    assert max(entity.distance for entity in found.entities) == 1
    assert len(memory.graph.neighbours(ATLAS, "Felix Cole", limit=1).passages) == 1


def test_without_a_name_the_best_connected_come_first(memory: Memory, ids: list[str]) -> None:
    found = memory.graph.neighbours(ATLAS, limit=3)
    assert found.entity == ""
    assert not found.passages
    assert len(found.entities) == 3
    weights = [entity.weight for entity in found.entities]
    assert weights == sorted(weights, reverse=True)
    assert next(iter(names(found))) == "Bergen"


@pytest.mark.in_process  # asks for more than a server gives at once
def test_the_tie_to_all_is_the_sum_of_the_links(memory: Memory, ids: list[str]) -> None:
    found = memory.graph.neighbours(ATLAS, limit=1000)
    for entity in found.entities:
        links = (link.weight for link in found.links if entity.key in (link.a, link.b))
        assert entity.weight == sum(links)


def test_an_identifier_is_a_name_however_plainly_it_is_written(memory: Memory) -> None:
    memory.remember(ATLAS, "We changed memory.summaries.write and then os.path.join.")
    assert {"memory.summaries.write", "os.path.join"} <= names(memory.graph.neighbours(ATLAS)).keys()


def test_a_title_is_one_name_however_it_is_written(memory: Memory) -> None:
    memory.remember_many(ATLAS, ["Mercury (planet)\n\nIt is near to the Sun.", "Probes went to Mercury and to Venus."])
    found = memory.graph.neighbours(ATLAS, "Mercury (planet)")
    assert [entity.name for entity in found.entities].count("Mercury (planet)") == 1
    assert "Venus" in names(memory.graph.neighbours(ATLAS, "mercury"))
    assert memory.graph.neighbours(ATLAS, "mercury").entities[0].name == "Mercury"


def test_another_scope_is_not_seen(memory: Memory, ids: list[str]) -> None:
    memory.remember("project=other", "Felix Cole knows Zoe Quist.")
    assert "Zoe Quist" not in names(memory.graph.neighbours(ATLAS, "Felix Cole", depth=6))
    with pytest.raises(NotFoundError) as raised:
        memory.graph.neighbours(ATLAS, "Zoe")
    assert "Quist" not in str(raised.value)


def test_what_is_gone_or_closed_is_not_shown(memory: Memory, ids: list[str]) -> None:
    memory.graph.neighbours(ATLAS)
    memory.update(ATLAS, ids[3], "Carla Diaz met Dora Ek.")
    assert set(names(memory.graph.neighbours(ATLAS, "Carla Diaz"))) == {"Carla Diaz", "Dora Ek"}
    with pytest.raises(NotFoundError):
        memory.graph.neighbours(ATLAS, "Lisbon")
    memory.forget(ATLAS, ids[0])
    with pytest.raises(NotFoundError):
        memory.graph.neighbours(ATLAS, "Felix Cole")


def test_a_name_is_written_as_in_what_is_still_true(memory: Memory) -> None:
    old = memory.remember(ATLAS, "Ursa (the bear)\n\nIt lives near Oslo.").id
    memory.remember(ATLAS, "People saw URSA near Oslo.")
    assert "Ursa (the bear)" in names(memory.graph.neighbours(ATLAS, "Oslo"))
    memory.update(ATLAS, old, "It lives near Narvik.")
    assert "URSA" in names(memory.graph.neighbours(ATLAS, "Oslo"))
    assert "Ursa (the bear)" not in names(memory.graph.neighbours(ATLAS))


def test_an_unknown_name_is_told_with_what_is_near(memory: Memory, ids: list[str]) -> None:
    with pytest.raises(NotFoundError, match=r"did you mean Anna Berg\?"):
        memory.graph.neighbours(ATLAS, "Anna Bergson")
    with pytest.raises(NotFoundError, match="holds nothing"):
        memory.graph.neighbours("project=nothing", "Anna")
    assert memory.graph.neighbours("project=nothing") == Neighbourhood()


def test_what_only_begins_a_sentence_is_not_shown(memory: Memory) -> None:
    memory.remember_many(
        ATLAS, ["Thanks, Caroline! Wow.", "Hey Caroline, Thanks a lot!", "Caroline said thanks to Melanie."]
    )
    assert {entity.name for entity in memory.graph.neighbours(ATLAS).entities} == {"Caroline", "Melanie"}


def test_one_person_under_several_names_is_shown_once(memory: Memory) -> None:
    memory.remember_many(
        ATLAS,
        [
            "They met Dr. Robert J. Oppenheimer in Rome.",
            "He wrote to Oppenheimer about Bergen.",
            "She knew Robert Oppenheimer in Lisbon.",
        ],
    )
    found = memory.graph.neighbours(ATLAS, "Oppenheimer")
    assert found.entities[0].passages == 3
    assert {"Rome", "Bergen", "Lisbon"} <= {entity.name for entity in found.entities}


def test_identifiers_are_not_shown_as_one(memory: Memory) -> None:
    texts = {
        "memory.summaries.write": "Call `memory.summaries.write` after Nordwind.",
        "memory.write": "Then call `memory.write` with Nordwind.",
        "qux.anna.berg": "Then call `qux.anna.berg` with Nordwind.",
        "anna.berg": "Then call `anna.berg` with Nordwind.",
        "locomo_dev.json": "The file `locomo_dev.json` holds Nordwind.",
        "_dev.json": "The file `_dev.json` holds Nordwind.",
        "memory.qdrant": "Then call `memory.qdrant` with Nordwind.",
        "Qdrant": "They use Qdrant with Nordwind.",
    }
    memory.remember_many(ATLAS, list(texts.values()))
    for name in texts:
        found = memory.graph.neighbours(ATLAS, name)
        assert [passage.text for passage in found.passages] == [texts[name]]
        assert [entity.name for entity in found.entities] == [name, "Nordwind"]


def test_no_two_names_are_written_alike(memory: Memory) -> None:
    memory.remember_many(
        ATLAS, ["Oslo, Norway (city)\n\nIt lies near Drammen.", "Oslo, Norway (port)\n\nShips go to Drammen."]
    )
    for name in ("", "Drammen", "Oslo"):
        found = [entity.name for entity in memory.graph.neighbours(ATLAS, name, depth=2).entities]
        assert len(set(found)) == len(found)
    assert {"Oslo, Norway (city)", "Oslo, Norway (port)", "Drammen"} == names(memory.graph.neighbours(ATLAS)).keys()


def test_two_people_of_one_surname_stay_two(memory: Memory) -> None:
    memory.remember_many(
        ATLAS, ["They met Anna Meyer in Rome.", "They met Tom Meyer in Bergen.", "They met Meyer in Lisbon."]
    )
    assert memory.graph.neighbours(ATLAS, "Meyer").entities[0].passages == 1


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
