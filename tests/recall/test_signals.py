"""The signals of each row: what neighbours lend, how near a date is, what is usual for a cosine."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest

from eunoe.index.stream import IndexEntry, StreamIndex
from eunoe.recall.query import plan_query, read_question
from eunoe.recall.ranking import collect_signals

DAY = 86_400.0
NOW = 1_704_067_200.0  # 2024-01-01


def turn(seq: int, text: str, **more: Any) -> IndexEntry:
    return IndexEntry(seq, f"m{seq}", "message", text, speaker="Anna", session="1")._replace(**more)


def signals_of(entries: list[IndexEntry], query: str, vector: Any = None) -> dict[str, list[float]]:
    index = StreamIndex()
    index.apply(entries, 1)
    plan = plan_query(read_question(query, (), NOW), index, None)
    signals = collect_signals(index, plan, vector, np.ones(index.rows, np.bool_)).signals
    return {name: values.tolist() for name, values in signals.items()}


CHAT = [turn(seq, "the kiln" if seq == 3 else f"word{seq}") for seq in range(7)]


def test_the_turns_around_a_match_share_in_it_the_nearer_the_more() -> None:
    window = signals_of(CHAT, "kiln")["window"]
    assert window == pytest.approx([0, 0, 0.5, 1, 0.6, 0.4, 0])


def test_an_atom_is_its_own_neighbour_for_half() -> None:
    atom = IndexEntry(9, "f9", "fact", "a kiln")
    signals = signals_of([*CHAT, atom], "kiln")
    places = ("term_before", "term_two_before", "term_after")
    assert [signals[name][-1] for name in places] == [0.5, 0.5, 0.5]
    assert signals["session_term"][-1] == signals["window"][-1] == signals["term"][-1] == 1


@pytest.mark.parametrize(
    ("days", "nearness"),
    [
        (0.5, 1.0),
        (0.0, 1.0),
        (1.0, 0.8),
        (8.0, 0.8 * exp(-1)),
        (15.0, 0.8 * exp(-2)),
        (-3.0, 0.5 * exp(-1)),
        (-6.0, 0.5 * exp(-2)),
    ],
)
def test_things_are_told_later_for_a_week_and_planned_before_for_days(days: float, nearness: float) -> None:
    asked = NOW - 200 * DAY  # 2023-06-15
    signals = signals_of([turn(1, "at the lake", time=asked + days * DAY)], "Who was at the lake on 15 June 2023?")
    assert signals["date"] == pytest.approx([nearness])


def test_a_cosine_counts_above_what_is_usual() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    facts = [IndexEntry(seq, f"f{seq}", "fact", "tea", vector=vector) for seq, vector in enumerate(vectors)]
    usual = (0 + 0.6 + 20 * 0.1) / (2 + 20)  # without the one that is as near as the question itself
    dense = signals_of(facts, "boats", np.array([1, 0], np.float32))["dense"]
    assert dense == pytest.approx([(cosine - usual) / (1 - usual) for cosine in (1, 0, 0.6)])


def test_words_that_frame_a_question_or_tell_a_time_count_for_less() -> None:
    atoms = [IndexEntry(seq, f"f{seq}", "fact", text) for seq, text in enumerate(("kilns", "tell", "2023", "June"))]
    assert signals_of(atoms, "Tell of kilns")["term"] == pytest.approx([1 / 1.4, 0.4 / 1.4, 0, 0])
    kilns, _, year, month = signals_of(atoms, "kilns in June 2023")["term"]
    assert [kilns, year, month] == pytest.approx([1 / 1.6, 0.3 / 1.6, 0.3 / 1.6])


def test_the_words_in_an_identifier_count_half_of_the_whole() -> None:
    texts = ("kiln_oven", "kiln", "oven", "tea")
    atoms = [IndexEntry(seq, f"f{seq}", "fact", text) for seq, text in enumerate(texts)]
    whole, first, second, other = signals_of(atoms, "kiln_oven")["term"]
    assert (whole, other) == (1, 0)
    assert first == second
    assert 0.5 < whole - first - second < 0.6  # it is rarer than its words
