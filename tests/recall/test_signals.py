"""The signals of each row: what neighbours lend, how near a date is, what is usual for a cosine."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest

from eunoe.index.stream import IndexEntry, StreamIndex
from eunoe.recall.query import plan_query, read_question
from eunoe.recall.ranking import collect_signals, find_candidates

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


def test_each_turn_knows_its_neighbours_on_both_sides() -> None:
    signals = signals_of(CHAT, "kiln")
    assert signals["term"] == [0, 0, 0, 1, 0, 0, 0]
    assert signals["term_after"] == [0, 0, 1, 0, 0, 0, 0]
    assert signals["term_before"] == [0, 0, 0, 0, 1, 0, 0]
    assert signals["term_two_before"] == [0, 0, 0, 0, 0, 1, 0]


def test_an_atom_is_its_own_neighbour_for_half() -> None:
    atom = IndexEntry(9, "f9", "fact", "a kiln")
    signals = signals_of([*CHAT, atom], "kiln")
    places = ("term_before", "term_two_before", "term_after")
    assert [signals[name][-1] for name in places] == [0.5, 0.5, 0.5]
    assert signals["session_term"][-1] == signals["window"][-1] == signals["term"][-1] == 1


def test_words_of_an_answer_count_with_those_of_its_question() -> None:
    chat = [turn(1, "Where is the kiln?"), turn(2, "Leipzig"), turn(3, "The kiln is hot"), turn(4, "Milk")]
    signals = signals_of(chat, "kiln")
    assert signals["answer"] == [0, 1, 0, 0]
    assert signals["term_answer"] == [0, 1, 0, 0]
    assert signals["question"] == [1, 0, 0, 0]


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


def test_a_longer_range_reaches_further() -> None:
    june = NOW - 214 * DAY  # 2023-06-01
    signals = signals_of([turn(1, "lake", time=june + 37 * DAY)], "Who was at the lake in June 2023?")
    assert signals["date"] == pytest.approx([0.8 * exp(-1 / 30**0.5)])


def test_a_cosine_counts_above_what_is_usual() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    facts = [IndexEntry(seq, f"f{seq}", "fact", "tea", vector=vector) for seq, vector in enumerate(vectors)]
    usual = (0 + 0.6 + 20 * 0.1) / (2 + 20)  # without the one that is as near as the question itself
    dense = signals_of(facts, "boats", np.array([1, 0], np.float32))["dense"]
    assert dense == pytest.approx([(cosine - usual) / (1 - usual) for cosine in (1, 0, 0.6)])


def test_a_row_without_a_vector_is_neither_near_nor_far() -> None:
    facts = [
        IndexEntry(1, "f1", "fact", "tea", vector=np.array([1, 0], np.float32)),
        IndexEntry(2, "f2", "fact", "tea"),
    ]
    assert signals_of(facts, "boats", np.array([1, 0], np.float32))["dense"][1] == 0


def feedback_of(entries: list[IndexEntry], query: str) -> dict[str, float]:
    """The share of feedback in the reasons of each hit."""
    index = StreamIndex()
    index.apply(entries, 1)
    found = find_candidates([index], query, now=NOW, limit=len(entries))
    return {each.id: sum(reason.share for reason in each.reasons if reason.name == "feedback") for each in found}


def apart(seq: int, text: str) -> IndexEntry:
    return turn(seq, text, session=f"s{seq}")


OTHERS = [apart(seq, f"Something about subject{seq} again.") for seq in range(100, 400)]


def test_feedback_comes_from_the_eight_best() -> None:
    best = [apart(seq, f"A kiln burns hot clay with word{seq}") for seq in range(8)]
    behind = apart(8, "A kiln burns word8")
    echoes = [apart(seq + 20, f"clay and word{seq}") for seq in (7, 8)]
    feedback = feedback_of([*best, behind, *echoes, *OTHERS], "Which kiln burns hot clay?")
    assert feedback["m27"] > feedback["m28"]


def test_feedback_comes_from_several_terms_but_not_from_common_ones() -> None:
    best = apart(1, "My hobby is falconry, with a peregrine, a lure, in the harbour.")
    words = ("peregrine", "lure", "harbour", "")
    echoes = [apart(seq, f"A hobby, {word}") for seq, word in enumerate(words, 2)]
    common = [apart(seq, f"The harbour and thing{seq}.") for seq in range(500, 530)]
    feedback = feedback_of([best, *echoes, *common, *OTHERS], "What hobby is falconry?")
    assert min(feedback["m2"], feedback["m3"]) > feedback["m4"] == feedback["m5"]


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


def test_a_turn_knows_whether_the_user_said_it_and_how_long_it_is() -> None:
    words = "The kiln is hot and large and red."
    chat = [
        turn(1, words, speaker="User", role="user"),
        turn(2, "Ok.", speaker="Assistant", role="assistant"),
        turn(3, "Kiln.", speaker="User", role="user"),
    ]
    signals = signals_of(chat, "kiln")
    assert signals["user"] == [1, 0, 1]
    assert signals["length"][0] > signals["length"][2]
