"""The graph of names: whatever came and went, it is the graph of what is there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import graph_contents

from eunoe.index.graph import TITLE_WEIGHT, EntityGraph, GraphView

TEXTS = {
    1: "Monaco\n\nMonaco is ruled by Albert II. Its neighbour is France.",
    2: "Albert II\n\nAlbert II was born in Monaco. His mother was Grace Kelly.",
    3: "Grace Kelly\n\nGrace Kelly was an actress from Philadelphia.",
    4: "Philadelphia\n\nPhiladelphia is a city in Pennsylvania.",
}
WORDS = ("Anna", "Bob Smith", "Smith", "Rome", "of", "the", "met", "and", "saw", "ERR_42", "東京", "Ünal", ".", "\n\n")


def graph_of(texts: dict[int, str]) -> EntityGraph:
    graph = EntityGraph()
    graph.apply(texts.items())
    return graph


def same(one: EntityGraph, other: EntityGraph) -> bool:
    return graph_contents(one) == graph_contents(other) and set(one.entities) == set(other.entities)


def visible(graph: EntityGraph, *hidden: int) -> np.ndarray:
    return np.array([seq > 0 and seq not in hidden for seq in graph.seqs])


def test_what_a_passage_is_about_weighs_more() -> None:
    assert graph_of(TEXTS).entities_of(2) == {"albert ii": TITLE_WEIGHT, "monaco": 1.0, "grace kelly": 1.0}


def test_a_removed_passage_leaves_no_name_edge_or_sentence() -> None:
    graph = graph_of(TEXTS)
    graph.apply((), [3, 3, 99])
    assert same(graph, graph_of({seq: text for seq, text in TEXTS.items() if seq != 3}))
    assert "grace kelly" in graph.entities  # another passage has it
    graph.apply((), [2])
    assert "grace kelly" not in graph.entities
    assert not graph.holds(2)


def test_places_of_removed_passages_are_used_again() -> None:
    graph = graph_of(TEXTS)
    size = (graph.rows, len(graph.keys))
    for turn in range(50):
        graph.apply((), [4 + turn])
        graph.apply([(5 + turn, TEXTS[4])])
    assert (graph.rows, len(graph.keys)) == size


def test_gaps_are_closed_and_change_nothing() -> None:
    graph = EntityGraph()
    for number in range(400):
        graph.apply([(number, f"Town {number}\n\nTown {number} has a mayor called Bob Smith{number}. He likes tea.")])
    graph.apply((), range(0, 400, 2))
    graph.apply((), range(1, 300, 2))
    kept = {n: f"Town {n}\n\nTown {n} has a mayor called Bob Smith{n}. He likes tea." for n in range(301, 400, 2)}
    assert same(graph, graph_of(kept))
    assert graph.words.size < 400 * 4


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 6),
            st.one_of(st.none(), st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)),
        ),
        max_size=25,
    )
)
def test_any_adds_and_removes_give_the_graph_built_fresh(steps: list[tuple[int, str | None]]) -> None:
    graph, there = EntityGraph(), dict[int, str]()
    for seq, text in steps:
        if text is None:
            graph.apply((), [seq])
            there.pop(seq, None)
        else:
            graph.apply([(seq, text)])
            there[seq] = text
    assert same(graph, graph_of(there))
    graph.apply((), list(there))
    assert same(graph, EntityGraph())


def test_a_name_is_shown_as_one_of_its_passages_writes_it() -> None:
    graph = graph_of({1: "We met ÉLISE Müller.", 2: "Élise Müller left."})
    number = graph.entities["elise muller"]
    assert graph.label(number) == "ÉLISE Müller"
    graph.apply((), [1])
    assert graph.label(number) == "Élise Müller"


def test_a_walk_goes_from_names_over_passages_to_names() -> None:
    graph = graph_of(TEXTS)
    view = graph.view(visible(graph))
    seeds = np.zeros(len(graph.keys))
    seeds[graph.entities["monaco"]] = 1
    found = view.walk(seeds, np.zeros(graph.rows))
    rank = [graph.seqs[row] for row in np.argsort(-found)]
    assert rank[:4] == [1, 2, 3, 4]
    assert found.sum() < 1


def test_hidden_passages_lead_nowhere() -> None:
    graph = graph_of(TEXTS)
    view = graph.view(visible(graph, 2))
    alone = graph_of({seq: text for seq, text in TEXTS.items() if seq != 2})
    seeds, apart = np.zeros(len(graph.keys)), np.zeros(len(alone.keys))
    seeds[graph.entities["monaco"]] = apart[alone.entities["monaco"]] = 1
    found = dict(zip(graph.seqs, view.walk(seeds, np.zeros(graph.rows)).tolist(), strict=True))
    fresh = alone.view(visible(alone)).walk(apart, np.zeros(alone.rows))
    assert found[2] == 0
    assert {seq: found[seq] for seq in alone.seqs} == pytest.approx(dict(zip(alone.seqs, fresh.tolist(), strict=True)))
    assert view.passage_counts[graph.entities["monaco"]] == 1


@pytest.mark.parametrize("with_bob", [8, 9, 10, 11])
@pytest.mark.parametrize("hidden", [(), (5, 25)])
def test_a_view_without_a_removed_passage_is_that_of_the_graph_built_fresh(
    with_bob: int, hidden: tuple[int, ...]
) -> None:
    def passage(number: int) -> str:
        friend = "Bob Smith" if number <= with_bob else f"Eva Number{number // 2}"
        return f"Town {number}\n\nTown {number} has a mayor called {friend}. Carol Jones likes Town {number + 1}."

    texts = {number: passage(number) for number in range(1, 41)}
    graph = graph_of(texts)
    view = graph.view(visible(graph, *hidden))
    for removed in (40, 1, 17, 5, 2):
        graph.apply((), [removed])
        del texts[removed]
        fresh = graph_of(texts)
        after, expected = graph.view(visible(graph, *hidden)), fresh.view(visible(fresh, *hidden))
        assert after is view
        assert {
            key: (after.passage_counts[number], after.common[number]) for key, number in graph.entities.items()
        } == {key: (expected.passage_counts[number], expected.common[number]) for key, number in fresh.entities.items()}
        assert walk_from(graph, after, "town 21") == walk_from(fresh, expected, "town 21")


def walk_from(graph: EntityGraph, view: GraphView, key: str) -> dict[int, float]:
    seeds, prior = np.zeros(len(graph.keys)), np.zeros(graph.rows)
    seeds[graph.entities[key]] = 1
    prior[[row for row, seq in enumerate(graph.seqs) if seq in (3, 30)]] = 0.25
    found = dict(zip(graph.seqs, view.walk(seeds, prior).round(14).tolist(), strict=True))
    return {seq: found[seq] for seq in sorted(found) if seq >= 0}


def test_no_walk_leads_through_a_name_that_stands_nearly_everywhere() -> None:
    texts = {seq: f"We spoke to Acme about Town{chr(96 + seq)} then." for seq in range(1, 13)}
    texts[13] = "We saw Towna and Rome."
    graph = graph_of(texts)
    view = graph.view(visible(graph))
    assert [graph.keys[name] for name in view.common.nonzero()[0].tolist()] == ["acme"]
    names = np.zeros(len(graph.keys))
    names[graph.entities["rome"]] = 1
    reached = view.walk(names, np.zeros(graph.rows)) > 0
    assert sorted(graph.seqs[row] for row in reached.nonzero()[0].tolist()) == [1, 13]


def test_a_few_passages_may_all_share_a_name() -> None:
    graph = graph_of({seq: f"We spoke to Acme about Town{chr(96 + seq)} then." for seq in range(1, 9)})
    assert not graph.view(visible(graph)).common.any()
