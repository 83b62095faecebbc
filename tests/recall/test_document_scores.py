"""The recipe `documents`: one order and one scale out of the blend's and the graph's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import eunoe
from eunoe.recall.document_scores import combine_scores
from eunoe.recall.graph_search import GraphRanking

PROJECT = {"project": "brindle"}
SERVICES = [
    "Marrow\n\nMarrow is the payment gateway. The team Pinecone owns it.",
    "Pinecone\n\nPinecone is a team of five in Ghent. Its lead is Casimir Doyle.",
    "Casimir Doyle\n\nCasimir Doyle sits in the room Larch and prefers to be phoned.",
    "Backups\n\nThey are encrypted and kept for ninety days.",
    "Photos\n\nThe folder for photos that failed the scan fills the disk of the host.",
]


def by_graph(total: list[float], has_names: bool) -> GraphRanking:
    order = np.array(total)
    return GraphRanking(order, lambda: np.zeros(len(order)), lambda row, details: (), has_names)


@pytest.fixture(params=["static", "none"])
def memory(request: pytest.FixtureRequest) -> Iterator[eunoe.Memory]:
    with eunoe.open(":memory:", embedder=request.param, llm="none", form=False) as memory:
        memory.remember_many(PROJECT, SERVICES)
        yield memory


def order(scores: np.ndarray) -> list[int]:
    return [int(row) for row in np.argsort(-scores, kind="stable") if scores[row] > 0]


def test_a_known_name_leaves_the_order_to_the_graph_and_else_both_count() -> None:
    blend = np.array([0.9, 0.6, 0.1])
    assert order(combine_scores(blend, by_graph([0.0, 1.0, 2.0], has_names=True))) == [2, 1, 0]
    assert order(combine_scores(blend, by_graph([0.0, 1.0, 2.0], has_names=False))) == [0, 1, 2]
    assert order(combine_scores(blend, by_graph([0.0, 3.0, 9.0], has_names=False))) == [2, 1, 0]


def test_the_best_scores_what_the_blend_says_of_the_first_three() -> None:
    blend = np.array([0.2, 0.7, 0.4, 0.9])
    scores = combine_scores(blend, by_graph([9.0, 8.0, 7.0, -5.0], has_names=False))
    assert scores.max() == pytest.approx(0.7)
    assert combine_scores(blend, by_graph([9.0, 8.0, 7.0, -5.0], has_names=True)).max() > 0.9


def test_what_one_of_them_does_not_find_comes_last_and_what_none_finds_not_at_all() -> None:
    scores = combine_scores(np.array([0.0, 0.99, 0.3, 0.0]), by_graph([1.0, -np.inf, 1.0, -np.inf], has_names=False))
    assert order(scores) == [2, 0, 1]
    assert scores[3] == 0
    assert not combine_scores(np.zeros(2), by_graph([-np.inf, -np.inf], has_names=False)).any()
    assert not len(combine_scores(np.zeros(0), by_graph([], has_names=False)))


@pytest.mark.parametrize("value", [0.0, 1e-18, 0.5, 1.0])
def test_no_score_leaves_the_scale(value: float) -> None:
    for total in (-1e6, 0.0, 1e6):
        scores = combine_scores(np.array([value, 0.5]), by_graph([total, 0.0], has_names=True))
        assert np.isfinite(scores).all()
        assert (scores >= 0).all()
        assert (scores <= 1).all()


def test_names_lead_from_one_passage_to_the_next(memory: eunoe.Memory) -> None:
    hits = memory.recall(PROJECT, "In which room does the lead of the team that owns Marrow sit?", recipe="documents")
    assert {hit.text.split("\n")[0] for hit in hits[:3]} == {"Marrow", "Pinecone", "Casimir Doyle"}
    assert hits[0].score > 0.5
    assert any(reason.name == "graph" for reason in hits[0].reasons)


def test_without_a_name_words_decide_and_say_why(memory: eunoe.Memory) -> None:
    hits = memory.recall(PROJECT, "disk is full of photos", recipe="documents")
    assert hits[0].text.startswith("Photos")
    assert any(reason.name == "lexical" for reason in hits[0].reasons)


def test_stop_words_alone_find_nothing(memory: eunoe.Memory) -> None:
    assert not list(memory.recall(PROJECT, "what is it and who are they", recipe="documents"))


def test_several_scopes_are_ranked_together(memory: eunoe.Memory) -> None:
    memory.remember({"project": "other"}, "Photos\n\nPhotos of the disk are kept in the cellar.")
    hits = memory.recall([PROJECT, {"project": "other"}], "disk is full of photos", recipe="documents")
    assert len({hit.scope for hit in hits[:2]}) == 2
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
