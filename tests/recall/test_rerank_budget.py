"""A time in place of the word `thorough`: the reranker reads the best ones first, as far as it gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eunoe.errors import InputError
from eunoe.hosts.memory_tool import tool
from eunoe.memory import Memory
from eunoe.recall.recipes import MAX_BUDGET_MS, RECIPES, RerankSettings

ANNA = {"user": "anna"}
QUESTION = "What about the red kite?"
COUNT = 20


class Reader:
    """Reads each text in so many seconds of a clock that only it moves."""

    name = "reader"

    def __init__(self, seconds: float, judge: Callable[[str], float] = lambda text: 0.0, loading: float = 0.0) -> None:
        self.seconds, self.judge, self.loading = seconds, judge, loading
        self.now = 0.0
        self.texts: list[str] = []

    def clock(self) -> float:
        return self.now

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.now += self.loading + self.seconds * len(texts)
        self.loading = 0.0
        self.texts += texts
        return np.array([self.judge(text) for text in texts], np.float32)


def reading(memory: Memory, reader: Reader) -> Reader:
    memory._engine.reranker.model = reader
    memory._engine.reranker._clock = reader.clock
    return reader


@pytest.fixture
def told(memory: Memory) -> Memory:
    turns = [f"The red kite number {number} flew {'very ' * (number % 7)}high." for number in range(COUNT)]
    memory.observe(ANNA, [{"content": text, "id": f"k{number}"} for number, text in enumerate(turns)])
    return memory


def ids(memory: Memory, recipe: Any, limit: int = COUNT) -> list[str]:
    return [hit.id for hit in memory.recall(ANNA, QUESTION, limit=limit, recipe=recipe)]


def test_time_enough_gives_what_thorough_gives(told: Memory) -> None:
    reading(told, Reader(0.001, lambda text: float(len(text) % 5)))
    hits = told.recall(ANNA, QUESTION, limit=COUNT, recipe=MAX_BUDGET_MS)
    assert [hit.id for hit in hits] == ids(told, "thorough")
    assert hits.notes == told.recall(ANNA, QUESTION, recipe="thorough").notes


def test_the_best_are_read_first_and_no_longer_than_the_budget(told: Memory) -> None:
    reader = reading(told, Reader(0.010))
    for budget in (100, 60, 150, 100):
        began, reader.texts = reader.now, []
        hits = told.recall(ANNA, QUESTION, limit=COUNT, recipe=budget)
        read = len(reader.texts)
        assert 2 <= read < COUNT
        assert reader.now - began <= 1.5 * budget / 1000
        assert f"read by the reranker within {budget} ms: {read} of the {COUNT} best" in hits.notes
        first = [hit.text for hit in told.recall(ANNA, QUESTION, limit=read)]
        assert [text.splitlines()[-1].removeprefix("User: ") for text in reader.texts] == first


def test_too_little_time_is_the_default(told: Memory) -> None:
    reader = reading(told, Reader(5.0))
    ids(told, 9)  # now it knows how slow it is
    reader.texts = []
    hits = told.recall(ANNA, QUESTION, limit=COUNT, recipe=1)
    assert reader.texts == []
    plain = told.recall(ANNA, QUESTION, limit=COUNT)
    assert [(hit.id, hit.score) for hit in hits] == [(hit.id, hit.score) for hit in plain]
    assert f"read by the reranker within 1 ms: 0 of the {COUNT} best" in hits.notes


def test_a_slow_moment_is_forgotten(told: Memory) -> None:
    reader = reading(told, Reader(0.001))
    ids(told, 200)
    reader.seconds = 10.0
    ids(told, 200)
    reader.seconds, reader.texts = 0.001, []
    for _ in range(60):
        ids(told, 20)
    reader.texts = []
    ids(told, 20)
    assert len(reader.texts) >= 5


def test_what_was_not_read_stands_above_what_reads_badly_and_below_what_reads_well(told: Memory) -> None:
    plain = ids(told, "default")
    bad, good = told.get(ANNA, plain[0]).text, told.get(ANNA, plain[2]).text

    def judge(text: str) -> float:
        return -40.0 if bad in text else 40.0 if good in text else RECIPES["thorough"].rerank.baseline

    reader = reading(told, Reader(0.010, judge))
    order = ids(told, 80)
    read = len(reader.texts)
    assert 3 <= read < COUNT
    assert order[0] == plain[2]
    assert order.index(plain[0]) > order.index(plain[read])
    unread = [id for id in order if id in plain[read:]]
    assert unread == plain[read:]


def test_a_lookup_for_several_questions_has_one_budget(told: Memory) -> None:
    reader = reading(told, Reader(0.010))
    ids(told, 100)
    began = reader.now
    told.look_up({"session": "s", **ANNA}, ["the red kite", "kites that are red", "red"], limit=COUNT, recipe=150)
    assert 0 < reader.now - began <= 0.2


@pytest.mark.parametrize(
    "wrong", [0, -1, nan, inf, -inf, 1.5, 100.0, True, False, "100", "", b"9", None, [5], 60_001, 10**30]
)
def test_what_is_no_time_is_refused(memory: Memory, wrong: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: memory.recall(ANNA, "x", recipe=wrong),
        lambda: memory.context(ANNA, "x", recipe=wrong),
        lambda: memory.look_up(ANNA, "x", recipe=wrong),
        lambda: tool(memory, ANNA, recipe=wrong),
    ]
    for call in calls:
        with pytest.raises(InputError, match="recipe"):
            call()


def test_context_and_the_tool_take_a_time(told: Memory) -> None:
    reading(told, Reader(0.001))
    assert "kite" in told.context(ANNA, QUESTION, recipe=500).text
    assert "kite" in tool(told, ANNA, recipe=500).call({"query": QUESTION})


def test_a_recipe_of_ones_own_may_have_a_budget(told: Memory) -> None:
    reader = reading(told, Reader(0.010))
    own = replace(RECIPES["thorough"], rerank=RerankSettings(depth=5, weight=1.0, budget_ms=nan))
    assert ids(told, own) == ids(told, "default")
    ids(told, replace(own, rerank=replace(own.rerank, budget_ms=1000.0)))
    assert len(reader.texts) == 5
