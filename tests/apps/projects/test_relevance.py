"""Thresholds: one for the best document, and a lower one for those that follow it; what passes without a reason."""

import pytest

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.projects.memory import THRESHOLDS, RelevanceThreshold, threshold_of
from eunoe.recall.recipes import RECIPES

THRESHOLD = RelevanceThreshold(best=0.3, follower=0.1)


@pytest.mark.parametrize(
    ("scores", "count"),
    [([], 0), ([0.29, 0.29], 0), ([0.3], 1), ([0.9, 0.2, 0.1, 0.09], 3), ([0.3, 0.09], 1), ([0.5] * 12, 12)],
)
def test_the_best_decides_for_all_and_the_rest_for_themselves(scores: list[float], count: int) -> None:
    assert THRESHOLD.count_passing(scores) == count


def test_recipes_that_were_not_measured_have_none() -> None:
    assert threshold_of("rrf").count_passing([0.02, 0.01]) == 2
    assert threshold_of("documents") is THRESHOLDS["documents"]
    assert THRESHOLDS.keys() <= RECIPES.keys()


@pytest.mark.parametrize("query", ["login", "database", "kubernetes", "vacation"])
@pytest.mark.parametrize("document", ["done", "TBD", "---", "Use tabs.", "Project: Demo. "])
def test_a_document_of_few_words_does_not_answer_everything(document: str, query: str) -> None:
    with ProjectMemory.open(":memory:") as memory:
        memory.index("shop", [document])
        assert memory.retrieve("shop", [query])[0]["docs"] == []
