"""Search: filters, types, thresholds, budgets, strategies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tenxgraph.core.state import Message
from tenxgraph.storage.store.store_schema import DistanceMetric, MemorySearchResult, MemoryType, RetrievalStrategy
from tests.support.agentflow_graphs import long_term_memory

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.agentflow import EunoeStore
from eunoe.text.sentences import token_count

ANNA = {"user_id": "anna"}


def contents(results: list[MemorySearchResult]) -> list[str]:
    return [result.content for result in results]


@pytest.fixture(params=["none", "static"])
def embedded(request: pytest.FixtureRequest, path: Path) -> Iterator[EunoeStore]:
    with eunoe.open(path, embedder=request.param, form=False) as memory:
        yield EunoeStore(memory)


def test_the_best_comes_first_with_scores_from_0_to_1(embedded: EunoeStore) -> None:
    embedded.store(ANNA, "The cat was sick on the rug again.")
    embedded.store(ANNA, "The tax papers are due in June.")
    results = embedded.search(ANNA, "When are the tax papers due?")
    assert results[0].content == "The tax papers are due in June."
    assert results[0].score > 0.5
    assert all(0 <= result.score <= 1 for result in results)
    assert [result.score for result in results] == sorted((result.score for result in results), reverse=True)
    above = embedded.search(ANNA, "When are the tax papers due?", score_threshold=0.5)
    assert contents(above) == ["The tax papers are due in June."]
    assert embedded.search(ANNA, "When are the tax papers due?", score_threshold=0.99) == []
    assert embedded.search(ANNA, "xylophone", score_threshold=0.5) == []


def test_only_the_same_words_reach_the_score_at_which_agentflow_drops_a_memory(embedded: EunoeStore) -> None:
    same = long_term_memory._IDENTICAL_SCORE_THRESHOLD
    known = ["The user's name is Anna.", "The user likes tea.", "My order number is 4711.", "Meeting on 2024-05-01."]
    embedded.batch_store(ANNA, known)
    others = ["The user's name is Ben.", "The user does not like tea.", "My order number is 4712."]
    for other in [*others, "Meeting on 2024-05-02.", "the order number"]:
        assert embedded.search(ANNA, other, limit=1, score_threshold=same) == []
    for text in known:
        assert contents(embedded.search(ANNA, f" {text}\n", limit=1, score_threshold=same)) == [text]


def test_types_categories_and_filters_narrow_before_the_limit(store: EunoeStore) -> None:
    for number, type in enumerate(MemoryType):
        store.store(ANNA, f"Fact {number} about tea.", type, "odd" if number % 2 else "even", {"n": number, "t": "x"})
    assert len(store.search(ANNA, "tea")) == 7
    for number, type in enumerate(MemoryType):
        (found,) = store.search(ANNA, "tea", memory_type=type, limit=1)
        assert (found.memory_type, found.metadata["n"]) == (type, number)
    several = store.search(ANNA, "tea", memory_type=[MemoryType.SEMANTIC, "entity"])  # type: ignore[arg-type]
    assert {found.memory_type for found in several} == {MemoryType.SEMANTIC, MemoryType.ENTITY}
    assert {found.metadata["n"] for found in store.search(ANNA, "tea", category="odd")} == {1, 3, 5}
    assert store.search(ANNA, "tea", category="") == []
    numbers = {
        "5": {"n": 5},
        "1, 2": {"n": [1, 2]},
        "4, 6": {"n": {"gte": 4}, "category": "even"},
        "0": {"memory_type": "episodic"},
        "3": {"AND": [{"n": {"gt": 2}}, {"NOT": {"n": {"gt": 3}}}]},
        "": {"n": True},
    }
    for wanted, filters in numbers.items():
        found = sorted(result.metadata["n"] for result in store.search(ANNA, "tea", filters=filters))
        assert ", ".join(map(str, found)) == wanted
    assert store.search(ANNA, "tea", MemoryType.SEMANTIC, "even") == []
    with pytest.raises(InputError, match="memory_type"):
        store.search(ANNA, "tea", memory_type="dream")  # type: ignore[arg-type]


def test_a_memory_key_is_found_whatever_the_words_are(store: EunoeStore) -> None:
    store.store(ANNA, "Annabel", metadata={"memory_key": "user_name"})
    store.store(ANNA, "Something else about user_name", metadata={"memory_key": "other"})
    (found,) = store.search(ANNA, "user_name", filters={"memory_key": "user_name"}, limit=1)
    assert (found.content, found.metadata["memory_key"]) == ("Annabel", "user_name")
    assert store.search(ANNA, "Annabel", filters={"memory_key": "user_name", "category": "x"}) == []


def test_a_limit_of_any_size(store: EunoeStore) -> None:
    store.batch_store(ANNA, [f"Tea number {n}" for n in range(30)])
    assert [len(store.search(ANNA, "tea", limit=limit)) for limit in (0, 1, 12, 25, 1000)] == [0, 1, 12, 25, 30]
    assert len(store.search(ANNA, "", limit=3)) == 3
    for limit in (-1, 1.5, "3"):
        with pytest.raises(InputError, match="limit"):
            store.search(ANNA, "tea", limit=limit)  # type: ignore[arg-type]


def test_a_budget_of_tokens_takes_whole_memories(store: EunoeStore) -> None:
    long = "Tea from Assam. " + "It is strong and dark. " * 300
    for text in (long, "Tea from Darjeeling.", "Tea from Ceylon."):
        store.store(ANNA, text)
    assert set(contents(store.search(ANNA, "tea"))) == {long, "Tea from Darjeeling.", "Tea from Ceylon."}
    short = store.search(ANNA, "tea", max_tokens=100)
    assert set(contents(short)) == {"Tea from Darjeeling.", "Tea from Ceylon."}
    one = store.search(ANNA, "tea", max_tokens=token_count("Tea from Darjeeling."))
    assert len(one) == 1
    assert store.search(ANNA, "tea", max_tokens=0) == []
    assert len(store.search(ANNA, "tea", max_tokens=None)) == 3


def message(text: str, timestamp: float) -> Message:
    return Message(role="user", content=[{"type": "text", "text": text}], timestamp=timestamp)  # type: ignore[list-item]


def test_temporal_is_newest_first(store: EunoeStore) -> None:
    store.store(ANNA, message("Tea in May, tea and more tea.", 2000.0))
    store.store(ANNA, message("Tea in March.", 1000.0))
    store.store(ANNA, message("Some tea in June.", 3000.0))
    store.store(ANNA, message("Coffee.", 4000.0))
    newest = store.search(ANNA, "tea", retrieval_strategy=RetrievalStrategy.TEMPORAL, limit=2)
    assert contents(newest) == ["Some tea in June.", "Tea in May, tea and more tea."]
    assert contents(store.search(ANNA, "", limit=2)) == ["Coffee.", "Some tea in June."]


def test_graph_traversal_follows_names(embedded: EunoeStore) -> None:
    embedded.store(ANNA, "Stone Harbour was painted by Greta Lindqvist.")
    embedded.store(ANNA, "Greta Lindqvist was born in Visby.")
    for number in range(12):
        embedded.store(ANNA, f"The weather on day {number} was grey and mild.")
    found = embedded.search(
        ANNA, "Where was the painter of Stone Harbour born?", retrieval_strategy=RetrievalStrategy.GRAPH_TRAVERSAL
    )
    assert set(contents(found)[:2]) == {
        "Stone Harbour was painted by Greta Lindqvist.",
        "Greta Lindqvist was born in Visby.",
    }


@pytest.mark.parametrize("strategy", [*RetrievalStrategy, "hybrid"])
def test_every_strategy_finds(store: EunoeStore, strategy: Any) -> None:
    store.store(ANNA, "Anna is allergic to peanuts.")
    assert contents(store.search(ANNA, "peanuts", retrieval_strategy=strategy)) == ["Anna is allergic to peanuts."]


def test_metrics_that_rank_as_cosine_are_taken_and_others_refused(store: EunoeStore) -> None:
    store.store(ANNA, "Anna is allergic to peanuts.")
    for metric in (DistanceMetric.COSINE, DistanceMetric.DOT_PRODUCT, DistanceMetric.EUCLIDEAN, "cosine"):
        assert len(store.search(ANNA, "peanuts", distance_metric=metric)) == 1  # type: ignore[arg-type]
    for wrong in (DistanceMetric.MANHATTAN, "chebyshev"):
        with pytest.raises(InputError, match="distance_metric"):
            store.search(ANNA, "peanuts", distance_metric=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="retrieval_strategy"):
        store.search(ANNA, "peanuts", retrieval_strategy="luck")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="query"):
        store.search(ANNA, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "filters", ["x", ["x"], {"AND": {"size": 3}}, {"OR": "x"}, {"AND": ["x"]}, {"NOT": [{"size": 3}]}, {"NOT": 3}]
)
def test_filters_of_another_shape_are_refused(store: EunoeStore, filters: Any) -> None:
    for call in (lambda: store.search(ANNA, "tea", filters=filters), lambda: store.get_all(ANNA, filters=filters)):
        with pytest.raises(InputError, match="filters"):
            call()


def test_a_filter_may_name_the_user(store: EunoeStore) -> None:
    store.store(ANNA, "Anna likes tea.", metadata={"n": 1})
    for user in ("anna", ["ben", "anna"]):
        assert len(store.search(ANNA, "tea", filters={"user_id": user})) == 1
        assert len(store.get_all(ANNA, filters={"user_id": user, "n": 1})) == 1
    for user in ("ben", []):
        assert store.search(ANNA, "tea", filters={"user_id": user}) == []
        assert store.get_all(ANNA, filters={"user_id": user}) == []
        assert store.forget_memory(ANNA, filters={"user_id": user}) == 0
    for filters in ({"user_id": {"ne": "ben"}}, {"OR": [{"user_id": "anna"}]}, {"NOT": {"user_id": "ben"}}):
        with pytest.raises(InputError, match="user_id"):
            store.search(ANNA, "tea", filters=filters)
    assert store.forget_memory(ANNA, filters={"user_id": "anna"}) == 1


def test_a_filter_may_name_one_of_the_users_that_a_policy_lets_through(store: EunoeStore) -> None:
    for name in ("anna", "ben"):
        store.store({"user_id": name}, f"{name} likes tea.")
    all_users = {"authz": {"scope": "none", "user_id": None}}
    assert len(store.search(all_users, "tea")) == 2
    assert contents(store.search(all_users, "tea", filters={"user_id": "ben"})) == ["ben likes tea."]
