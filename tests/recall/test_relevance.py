"""Floors: the best must stand out from the rest, or score so much that this says enough."""

from __future__ import annotations

import pytest

from eunoe.embed.encoder import Encoder
from eunoe.embed.minilm import MiniLM
from eunoe.embed.word_vectors import StaticEmbedder
from eunoe.recall.recipes import RECIPES
from eunoe.recall.relevance import DEPTH, FLOORS, WORDS, WORDS_FLOOR, Floor, floor_of, reads

FLOOR = Floor(least=0.06, most=0.8, rest=0.02, base=2.25, lift=0.7)


def test_the_same_score_is_enough_among_few_and_not_among_many_alike() -> None:
    assert FLOOR.passed([0.3, 0.01]) == 1
    assert FLOOR.passed([0.3, 0.3, 0.28, 0.28, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2]) == 0


def test_the_score_of_the_default_recipe_needs_no_comparison() -> None:
    default = FLOORS["default"]
    assert [default.passed([score, 0.1]) for score in (0.5, 0.6)] == [0, 2]
    assert default.passed([0.6] * DEPTH) == DEPTH


def test_a_high_score_is_enough_whatever_comes_after_it() -> None:
    assert FLOOR.passed([0.9] * DEPTH) == DEPTH
    assert FLOOR.passed([FLOOR.most] * DEPTH) == DEPTH


def test_a_faint_score_is_never_enough() -> None:
    assert FLOOR.passed([0.05]) == 0
    assert FLOOR.passed([]) == 0


def test_those_after_the_best_need_less_but_something() -> None:
    assert FLOOR.passed([0.9, 0.2, 0.06, 0.01, 0.005]) == 3


@pytest.mark.parametrize("floor", [FLOOR, *FLOORS.values(), WORDS_FLOOR, Floor.fixed(0.4)])
def test_what_is_needed_grows_with_the_rest_and_stays_between_its_bounds(floor: Floor) -> None:
    needed = [floor.needed([1.0] * 5 + [rest / 100] * 5) for rest in range(101)]
    assert needed == sorted(needed)
    assert floor.least <= needed[0] <= needed[-1] <= floor.most


def test_a_fixed_floor_holds_for_every_hit() -> None:
    assert Floor.fixed(0.4).passed([0.9, 0.5, 0.4, 0.39]) == 3
    assert Floor.fixed(0.4).passed([0.39]) == 0


def test_recipes_that_were_not_measured_have_no_floor() -> None:
    assert floor_of("rrf").passed([0.02, 0.01]) == 2
    assert floor_of("default") is FLOORS["default"]
    assert {"default", WORDS} <= set(RECIPES)


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
    assert [reads(embedder, question) for question in latin] == [True] * len(latin)
    assert [reads(embedder, question) for question in others] == [False] * len(others)
    assert all(reads("openai:any", question) for question in others)
