"""The floor of a context holds at every size: a large memory knows common words, so unknown ones tell."""

from __future__ import annotations

import pytest

import eunoe
from eunoe.recall.recalled_context import shown_threshold
from eunoe.recall.recipes import RECIPES
from eunoe.recall.search import floor_shift, shift

HERE = "user=anna"
THINGS = [
    "oven",
    "piano",
    "kayak",
    "orchid",
    "ladder",
    "tandem",
    "anvil",
    "easel",
    "quilt",
    "rudder",
    "lathe",
    "sextant",
]


def shift_of(turns, question, scopes=1):
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        names = [f"user=u{place}" for place in range(scopes)]
        for place, name in enumerate(names):
            said = [
                {
                    "speaker": ("Mara", "Otto")[number % 2],
                    "content": f"The {THINGS[number % 12]} number {number} broke.",
                }
                for number in range(place, turns, scopes)
            ]
            memory.observe(name, said)
        searcher = memory._engine.searcher
        scopes = [eunoe.Scope.parse(name) for name in names]
        return searcher.indexes.read(
            scopes, lambda _, held: floor_shift([each.index for each in held], question, 0.0, None)
        )


def test_unknown_words_raise_the_floor_and_known_names_lower_it():
    known, unknown, named = (
        shift_of(3000, question)
        for question in ("Which kayak broke?", "Which zeppelin exploded?", "Which kayak of Mara broke?")
    )
    assert named < known < 0 < unknown


def test_it_grows_with_the_size_and_counts_all_that_is_searched_together():
    small, large = (shift_of(turns, "Which zeppelin exploded?") for turns in (1500, 4000))
    assert 0 < small < large
    assert shift_of(4000, "Which zeppelin exploded?", scopes=2) == pytest.approx(large, rel=0.05)
    assert shift_of(4000, "Which kayak?", scopes=2) < 0


def test_the_threshold_of_the_best_moves_and_never_below_that_of_the_rest():
    default = RECIPES["default"]
    assert shown_threshold(default, False, 0.0).best == pytest.approx(0.1)
    assert (
        shown_threshold(default, False, 1.0).best == pytest.approx(shift(0.1, 1.0)) == pytest.approx(0.232, abs=0.001)
    )
    assert shown_threshold(default, False, -9.0) == (0.005, 0.005)
    assert shown_threshold(RECIPES["associative"], False, 1.0).best == 0.1
    assert shown_threshold(RECIPES["dense"], False, 1.0).best < -1


def test_a_question_about_somebody_in_a_large_memory_is_answered_and_a_foreign_one_is_not():
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        memory.observe(HERE, [{"speaker": "Otto", "content": "My cousin sells kites in Ghent."}])
        said = [f"The {THINGS[number % 12]} number {number} broke again." for number in range(2500)]
        memory.observe(HERE, [{"speaker": "Mara", "content": text} for text in said])
        own = memory.context(HERE, "What does the cousin of Otto sell?", tokens=500)
        assert own.hits[0].text == "My cousin sells kites in Ghent."
        assert memory.context(HERE, "Why did the zeppelin of Lakehurst explode?", tokens=500).hits == ()
