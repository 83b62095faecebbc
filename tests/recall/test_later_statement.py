"""A question about what is true now prefers the later of two statements about one thing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import eunoe
from eunoe.index.stream import IndexEntry, StreamIndex
from eunoe.recall.query import UNSAID, plan_query, present_share, read_question
from eunoe.recall.ranking import later_signal

DAY = 86_400.0
START = datetime(2025, 1, 18, 10, tzinfo=UTC)
SMALL_TALK = [
    "Morning! Did you sleep at all?", "The coffee machine is leaking again.", "My sister sends her love.",
    "That film last night was far too long.", "I have to be at the dentist at nine.", "It rained through the roof.",
    "Lotte wants a hamster.", "The bakery has new opening hours.",
]  # fmt: skip
BOAT = [
    "We launch the boat on Saturday, the harbour crane is booked.",
    "The varnish for the boat smells terrible.",
    "The launch had to be moved, the crane is broken: she goes into the water on Tuesday.",
    "Mr Aldous lent us two fenders for the boat.",
]


def first_hit(path: Path, lines: list[tuple[str, str]], question: str, reverse: bool = False) -> str:
    """Tell each line in a session of its own, a week apart, amid small talk; return the best hit."""
    with eunoe.open(path / "memory.db") as memory:
        for number, (speaker, line) in enumerate(lines):
            time = START + timedelta(weeks=len(lines) - number if reverse else number)
            others = SMALL_TALK[2 * (number % 4) :][:2]
            said = [(speaker, line), ("Mira", others[0]), ("Jonas", others[1])]
            turns = [{"speaker": name, "content": text, "time": time, "session": f"s{number}"} for name, text in said]
            memory.observe("project=boat", turns)
        return memory.recall("project=boat", question)[0].text


@pytest.mark.parametrize("question", ["On which day will the boat be launched?", "launch of the boat, current date"])
def test_a_plan_that_changed_is_found_in_its_last_form(tmp_path: Path, question: str) -> None:
    told = [("Mira", line) for line in BOAT]
    assert "Tuesday" in first_hit(tmp_path, told, question)


def test_the_last_form_is_the_one_of_the_later_time_not_of_the_later_record(tmp_path: Path) -> None:
    told = [("Mira", line) for line in BOAT]
    assert "Saturday" in first_hit(tmp_path, told, "On which day will the boat be launched?", reverse=True)


def test_a_question_about_the_first_plan_finds_the_first_plan(tmp_path: Path) -> None:
    told = [("Mira", line) for line in BOAT]
    assert "Saturday" in first_hit(tmp_path, told, "On which day was the boat to be launched originally?")


def test_what_somebody_else_says_of_their_own_stays_behind(tmp_path: Path) -> None:
    told = [("Mira", "My flight to Porto leaves on Saturday."), ("Jonas", "My flight to Oslo leaves on Tuesday.")]
    assert "Saturday" in first_hit(tmp_path, told, "On which day will Mira fly to Porto?")


def test_facts_need_no_session(tmp_path: Path) -> None:
    with eunoe.open(tmp_path / "memory.db") as memory:
        memory.remember("project=boat", "Ada's phone number is 555 1204.", time=START)
        memory.remember("project=boat", "Ada's phone number is 555 7781.", time=START + timedelta(days=40))
        memory.remember("project=boat", "Ada's bicycle is green.", time=START + timedelta(days=50))
        now, then = "What is Ada's current phone number?", "What was Ada's previous phone number?"
        assert "7781" in memory.recall("project=boat", now)[0].text
        hits = memory.recall("project=boat", then)
        assert "later" not in {reason.name for hit in hits for reason in hit.reasons}


PRESENT = [
    "Where does Ada live now?", "Is Ada still a vegetarian?", "rent, latest figure", "What will the boat be called?",
    "Wo wohnt Ada jetzt?", "¿Dónde vive Ada ahora?", "Où habite Ada maintenant ?", "Dove abita Ada adesso?",
    "What is the rent now, and what was it before?", "Was wird Ada studieren?",
]  # fmt: skip
PAST = [
    "Where did Ada live?", "What was the first plan?", "the original date of the launch", "Where did Ada use to live?",
    "What did they want before?", "Wo hat Ada früher gewohnt?", "In which order were the rooms painted?",
    "How has the rent changed?",
]  # fmt: skip


@pytest.mark.parametrize("question", PRESENT)
def test_what_is_and_what_will_be_are_the_present(question: str) -> None:
    assert present_share(question) == 1


@pytest.mark.parametrize("question", PAST)
def test_what_was_is_not(question: str) -> None:
    assert present_share(question) == 0


@pytest.mark.parametrize("question", ["How old is Ada?", "Who knows the snowman?", "Ada's favourite food", ""])
def test_what_does_not_say_counts_a_little(question: str) -> None:
    assert present_share(question) == UNSAID


def test_a_date_that_is_over_is_about_the_past() -> None:
    index = StreamIndex()
    index.apply([IndexEntry(1, "a", "message", "rent", time=0.0), IndexEntry(2, "b", "message", "rent", time=4e8)])
    shares = [
        plan_query(read_question(text, (), 1_750_000_000.0), index, None).present_share
        for text in ("the rent in March 2024", "the rent in March 2090", "the rent")
    ]
    assert shares == [0, UNSAID, UNSAID]


def entry(seq: int, angle: float, **more: object) -> IndexEntry:
    vector = np.array([np.cos(angle), np.sin(angle), 0.0], np.float32)
    plain = IndexEntry(seq, f"m{seq}", "message", "x", time=seq * DAY, session=str(seq), vector=vector)
    return plain._replace(**more)  # type: ignore[arg-type]


def signal(entries: list[IndexEntry], total: list[float] | None = None) -> list[float]:
    index = StreamIndex()
    index.apply(entries)
    values = later_signal(index, np.array(total or [0.0] * len(entries))).tolist()
    return [round(value, 2) for value in values]


def test_the_later_of_two_like_ones_is_marked_and_the_unlike_is_not() -> None:
    first, second, other = signal([entry(1, 0), entry(2, 0.2), entry(3, 2)])
    assert second > 0.3
    assert first == other == 0


def test_turns_in_one_breath_do_not_replace_each_other() -> None:
    talk = [entry(seq, 0, session="one", time=1e9 + 60 * seq) for seq in range(1, 8)]
    assert [value > 0 for value in signal(talk)] == [False] * 5 + [True] * 2
    assert [value > 0 for value in signal(talk[:5])] == [False] * 5
    unnamed = [each._replace(session="") for each in talk[:2]]
    assert [value > 0 for value in signal(unnamed)] == [False, True]


def test_a_fact_is_not_later_than_the_turn_that_it_was_taken_from() -> None:
    fact = entry(2, 0, kind="fact", session="")
    for time in (DAY, DAY - 7200, DAY + 7200):
        assert signal([entry(1, 0), fact._replace(time=time)]) == [0, 0]


def test_rows_that_are_not_found_or_have_no_vector_are_left_out() -> None:
    assert signal([entry(1, 0), entry(2, 0)], [-np.inf, 0.0]) == [0, 0]
    assert signal([entry(1, 0), entry(2, 0, vector=None)]) == [0, 0]
    assert signal([]) == []
