"""The recipe `documents`: one order and one scale out of the blend's and the graph's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import eunoe
from eunoe.recall.documents import GraphRanking, combine_scores

PROJECT = {"project": "brindle"}
SERVICES = [
    "Marrow\n\nMarrow is the payment gateway. The team Pinecone owns it.",
    "Pinecone\n\nPinecone is a team of five in Ghent. Its lead is Casimir Doyle.",
    "Casimir Doyle\n\nCasimir Doyle sits in the room Larch and prefers to be phoned.",
    "Backups\n\nThey are encrypted and kept for ninety days.",
    "Photos\n\nThe folder for photos that failed the scan fills the disk of the host.",
]


def by_graph(total: list[float], has_names: bool) -> GraphRanking:
    order, is_about = np.array(total), np.zeros(len(total), np.bool_)
    return GraphRanking(order, lambda: np.zeros(len(order)), lambda row, details: (), has_names, is_about)


def combined(blend: list[float], own: list[float], total: list[float], has_names: bool) -> np.ndarray:
    return combine_scores(np.array(blend), np.array(own), by_graph(total, has_names))


@pytest.fixture(params=["static", "none"])
def memory(request: pytest.FixtureRequest) -> Iterator[eunoe.Memory]:
    with eunoe.open(":memory:", embedder=request.param, llm="none", form=False) as memory:
        memory.remember_many(PROJECT, SERVICES)
        yield memory


def order(scores: np.ndarray) -> list[int]:
    return [int(row) for row in np.argsort(-scores, kind="stable") if scores[row] > 0]


def test_a_known_name_leaves_the_order_to_the_graph_and_else_both_count() -> None:
    blend, own = [0.9, 0.6, 0.1], [2.0, 1.0, 0.0]
    assert order(combined(blend, own, [0.0, 1.0, 2.0], has_names=True)) == [2, 1, 0]
    assert order(combined(blend, own, [0.0, 1.0, 2.0], has_names=False)) == [0, 1, 2]
    assert order(combined(blend, own, [0.0, 3.0, 9.0], has_names=False)) == [2, 1, 0]


@pytest.mark.parametrize("has_names", [True, False])
def test_the_best_scores_what_bears_most_on_the_question_among_the_first_three(has_names: bool) -> None:
    scores = combined([0.5] * 4, [-1.0, 0.8, -2.0, 5.0], [9.0, 8.0, 7.0, -5.0], has_names)
    assert order(scores) == [0, 1, 2, 3]
    assert scores[0] == pytest.approx(1 / (1 + np.exp(-0.8)))


def test_no_document_scores_more_than_the_one_before_it() -> None:
    chance = np.random.default_rng(3)
    own, total = chance.normal(0, 3, 400), np.sort(chance.normal(0, 3, 400))[::-1]
    for has_names in (True, False):
        assert order(combined([0.5] * 400, own.tolist(), total.tolist(), has_names)) == list(range(400))


def test_what_one_of_them_does_not_find_comes_last_and_what_none_finds_not_at_all() -> None:
    inf = np.inf
    scores = combined([0.0, 0.99, 0.3, 0.0], [0.0, 9.0, 1.0, 0.0], [1.0, -inf, 1.0, -inf], has_names=False)
    assert order(scores) == [2, 0, 1]
    assert scores[3] == 0
    assert not combined([0.0] * 2, [0.0] * 2, [-inf, -inf], has_names=False).any()
    assert not len(combined([], [], [], has_names=False))


def test_names_lead_from_one_passage_to_the_next(memory: eunoe.Memory) -> None:
    hits = memory.recall(PROJECT, "In which room does the lead of the team that owns Marrow sit?", recipe="documents")
    assert {hit.text.split("\n")[0] for hit in hits[:3]} == {"Marrow", "Pinecone", "Casimir Doyle"}
    assert hits[0].score > 0.5
    assert any(reason.name == "graph" for reason in hits[0].reasons)


def test_what_does_not_bear_on_the_question_scores_far_less_than_what_does(memory: eunoe.Memory) -> None:
    scores = [
        hit.score for hit in memory.recall(PROJECT, "photos that failed the scan fill the disk", recipe="documents")
    ]
    assert scores[0] > 0.9
    assert all(score < 0.2 for score in scores[1:])


def test_stop_words_alone_find_nothing(memory: eunoe.Memory) -> None:
    assert not list(memory.recall(PROJECT, "what is it and who are they", recipe="documents"))


def test_several_scopes_are_ranked_together(memory: eunoe.Memory) -> None:
    memory.remember({"project": "other"}, "Photos\n\nPhotos of the disk are kept in the cellar.")
    hits = memory.recall([PROJECT, {"project": "other"}], "disk is full of photos", recipe="documents")
    assert len({hit.scope for hit in hits[:2]}) == 2
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
