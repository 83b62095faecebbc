"""Floors: the best must stand out from the rest, or score so much that this says enough."""

from __future__ import annotations

import pytest

from eunoe.embed.encoder import Encoder
from eunoe.embed.minilm import MiniLM
from eunoe.embed.word_vectors import StaticEmbedder
from eunoe.projects.relevance import (
    THRESHOLD_DEPTH,
    THRESHOLDS,
    WORDS_RECIPE,
    WORDS_THRESHOLD,
    RelevanceThreshold,
    can_read,
    threshold_of,
)
from eunoe.recall.ranking_recipes import RECIPES

FLOOR = RelevanceThreshold(lowest=0.06, highest=0.8, rest=0.02, base=2.25, slope=0.7)


def test_the_same_score_is_enough_among_few_and_not_among_many_alike() -> None:
    assert FLOOR.count_passing([0.3, 0.01]) == 1
    assert FLOOR.count_passing([0.3, 0.3, 0.28, 0.28, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2]) == 0


def test_the_score_of_the_default_recipe_needs_no_comparison() -> None:
    default = THRESHOLDS["default"]
    assert [default.count_passing([score, 0.1]) for score in (0.5, 0.6)] == [0, 2]
    assert default.count_passing([0.6] * THRESHOLD_DEPTH) == THRESHOLD_DEPTH


def test_a_high_score_is_enough_whatever_comes_after_it() -> None:
    assert FLOOR.count_passing([0.9] * THRESHOLD_DEPTH) == THRESHOLD_DEPTH
    assert FLOOR.count_passing([FLOOR.highest] * THRESHOLD_DEPTH) == THRESHOLD_DEPTH


def test_a_faint_score_is_never_enough() -> None:
    assert FLOOR.count_passing([0.05]) == 0
    assert FLOOR.count_passing([]) == 0


def test_those_after_the_best_need_less_but_something() -> None:
    assert FLOOR.count_passing([0.9, 0.2, 0.06, 0.01, 0.005]) == 3


@pytest.mark.parametrize("floor", [FLOOR, *THRESHOLDS.values(), WORDS_THRESHOLD, RelevanceThreshold.fixed(0.4)])
def test_what_is_needed_grows_with_the_rest_and_stays_between_its_bounds(floor: RelevanceThreshold) -> None:
    needed = [floor.needed([1.0] * 5 + [rest / 100] * 5) for rest in range(101)]
    assert needed == sorted(needed)
    assert floor.lowest <= needed[0] <= needed[-1] <= floor.highest


def test_a_fixed_floor_holds_for_every_hit() -> None:
    assert RelevanceThreshold.fixed(0.4).count_passing([0.9, 0.5, 0.4, 0.39]) == 3
    assert RelevanceThreshold.fixed(0.4).count_passing([0.39]) == 0


def test_recipes_that_were_not_measured_have_no_floor() -> None:
    assert threshold_of("rrf").count_passing([0.02, 0.01]) == 2
    assert threshold_of("default") is THRESHOLDS["default"]
    assert {"default", WORDS_RECIPE} <= set(RECIPES)


@pytest.mark.parametrize("embedder", [Encoder.name, StaticEmbedder.name, MiniLM.name])
def test_english_embedders_read_latin_script_only(embedder: str) -> None:
    latin = ["Who fixed it?", "Größe der Straße", "Zażółć gęślą jaźń", "Кто WeasyPrint localStorage", "7 + 7 = ?", "🙂"]
    others = [
        "Кто исправил часы в Postgres?",
        "誰が時計を直した?",
        "من أصلح الساعة؟",
        "谁画了?",
        "몽골의 수도는?",
        "Ποιος;",
    ]
    assert [can_read(embedder, question) for question in latin] == [True] * len(latin)
    assert [can_read(embedder, question) for question in others] == [False] * len(others)
    assert all(can_read("openai:any", question) for question in others)
