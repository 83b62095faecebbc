"""Summaries by rule: within their words, in order, up to date, and the same when nothing is new."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunoe.form.rule_summary import summarize_by_rules
from eunoe.model.atom import Atom
from eunoe.text.sentences import word_count

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def seen(text: str, day: str = "", **metadata: str) -> Atom:
    time = datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None
    return Atom(text=text, kind="observation", time=time, metadata=metadata)


def test_each_observation_is_a_dated_line_and_the_oldest_comes_first() -> None:
    made = summarize_by_rules(
        "",
        [seen("Anna: I adopted a dog called Rex.", "2024-05-09"), seen("Anna: I sold the car.", "2024-05-07")],
        100,
        NOW,
    )
    assert made == "2024-05-07: Anna: I sold the car.\n2024-05-09: Anna: I adopted a dog called Rex."


def test_an_observation_without_a_time_has_no_date() -> None:
    assert summarize_by_rules("", [seen("Anna: I hate coriander.")], 100, NOW) == "Anna: I hate coriander."


def test_the_old_summary_stays_when_something_is_added() -> None:
    old = "Anna is a nurse. She has two sons."
    made = summarize_by_rules(old, [seen("Anna: I sold the car.", "2024-05-07")], 100, NOW)
    assert made == f"{old}\n2024-05-07: Anna: I sold the car."


def test_nothing_to_say_is_an_empty_summary() -> None:
    assert summarize_by_rules("", [], 100, NOW) == ""


def test_a_newer_value_takes_the_place_of_the_older() -> None:
    old = summarize_by_rules(
        "", [seen("Anna: I live in Rome.", "2023-01-02"), seen("Anna: I play chess.", "2023-01-02")], 99, NOW
    )
    made = summarize_by_rules(old, [seen("Anna: I moved to Milan.", "2024-05-07")], 100, NOW)
    assert "Rome" not in made
    assert made.endswith("2024-05-07: Anna: I moved to Milan.")
    assert "chess" in made


def test_an_older_value_that_comes_later_does_not_win() -> None:
    old = "2024-05-07: Anna: I moved to Milan."
    assert summarize_by_rules(old, [seen("Anna: I live in Rome.", "2023-01-02")], 100, NOW) == old


def test_the_key_a_caller_gave_counts() -> None:
    first = seen("The blue one it is.", "2024-01-01", memory_key="sofa")
    second = seen("Rather the red one.", "2024-02-01", memory_key="sofa")
    assert summarize_by_rules("", [first, second], 100, NOW) == "2024-02-01: Rather the red one."


def test_the_key_in_the_words_counts_beside_the_one_that_was_given() -> None:
    old = "2023-01-02: Anna Bell: I live in Rome."
    made = summarize_by_rules(
        old, [seen("Anna Bell: I moved to Milan.", "2024-05-07", memory_key="anna/home")], 100, NOW
    )
    assert made == "2024-05-07: Anna Bell: I moved to Milan."


def test_prose_that_is_no_longer_true_gives_way() -> None:
    old = "Anna lives in Rome. She has two sons."
    made = summarize_by_rules(old, [seen("Anna: I moved to Milan.", "2024-05-07")], 100, NOW)
    assert made == "She has two sons.\n2024-05-07: Anna: I moved to Milan."


def test_one_persons_value_does_not_replace_anothers() -> None:
    made = summarize_by_rules(
        "", [seen("Anna: I live in Rome.", "2024-01-01"), seen("Ben: I live in Oslo.", "2024-02-01")], 100, NOW
    )
    assert "Rome" in made
    assert "Oslo" in made


def test_what_was_said_twice_stands_once_with_its_last_date() -> None:
    made = summarize_by_rules(
        "2024-01-01: Anna: I really love green tea.", [seen("Anna: I love green tea!", "2024-05-01")], 100, NOW
    )
    assert made == "2024-05-01: Anna: I love green tea!"


@pytest.mark.parametrize("when", ["on 12 May", "tomorrow", "next week", "on Friday", "on 2024-05-20"])
def test_a_plan_whose_day_is_over_is_marked_as_past(when: str) -> None:
    plan = seen(f"Anna: I'm flying to Oslo {when}.", "2024-05-07")
    assert summarize_by_rules("", [plan], 100, NOW) == f"2024-05-07 (past): Anna: I'm flying to Oslo {when}."


@pytest.mark.parametrize("when", ["on 12 July", "on 2024-06-20", "with Ben"])
def test_a_plan_that_lies_ahead_or_has_no_day_is_not(when: str) -> None:
    plan = seen(f"Anna: I'm flying to Oslo {when}.", "2024-05-07")
    assert "(past)" not in summarize_by_rules("", [plan], 100, NOW)


def test_a_plan_becomes_past_when_its_day_has_gone() -> None:
    before = summarize_by_rules("", [seen("Anna: I'm flying to Oslo on 12 July.", "2024-05-07")], 100, NOW)
    after = summarize_by_rules(before, [], 100, datetime(2024, 8, 1, tzinfo=UTC))
    assert after == "2024-05-07 (past): Anna: I'm flying to Oslo on 12 July."


def test_the_least_valuable_goes_first_when_room_is_short() -> None:
    made = summarize_by_rules(
        "",
        [
            seen("Anna: I'm allergic to peanuts and carry two adrenaline pens.", "2024-01-01"),
            seen("Anna: It rained.", "2024-01-02"),
            seen("Anna: From now on answer in French.", "2024-01-03"),
        ],
        22,
        NOW,
    )
    assert "rained" not in made
    assert "peanuts" in made
    assert "French" in made


def test_a_single_observation_that_is_too_long_is_cut_openly() -> None:
    made = summarize_by_rules("", [seen("Anna: I moved to Rome, because " + "work " * 50, "2024-01-01")], 8, NOW)
    assert made.endswith("…")
    assert 0 < word_count(made) <= 8


def test_prose_written_by_hand_keeps_its_lines() -> None:
    prose = "Anna is a nurse. She likes Dr. Bell.\n\n- two cats\n- a dog"
    assert summarize_by_rules(prose, [], 100, NOW) == "Anna is a nurse. She likes Dr. Bell.\n- two cats\n- a dog"


PIECES = st.sampled_from(
    [
        "Anna: I live in Rome.", "Anna: I moved to Milan.", "Ben: I'm flying to Oslo on 12 May.", "It rained a lot!",
        "我住在上海。", "Anna: My favourite colour is green.", "3. Mai", "a: b", "(asked: ok)", "…", "2024-05-07: x",
        "2024-13-45: Anna: I'll go tomorrow.", "- item\n- other", "word " * 30, "我喜欢茶" * 20,
    ]
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=40)), max_size=6).map("\n".join)
TIMES = st.one_of(st.none(), st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)))
ATOMS = st.lists(
    st.builds(lambda text, time: Atom(text=text, time=time), st.one_of(PIECES, st.text(max_size=60)), TIMES), max_size=8
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, ATOMS, st.integers(1, 60))
def test_a_summary_is_within_its_words_and_never_empty_if_there_is_anything_to_say(
    previous: str, atoms: list[Atom], most: int
) -> None:
    made = summarize_by_rules(previous, atoms, most, NOW)
    assert word_count(made) <= most
    assert bool(made.strip()) == bool(previous.strip() or any(atom.text.strip() for atom in atoms))


@settings(max_examples=300, deadline=None)
@given(TEXTS, ATOMS, st.integers(1, 60))
def test_a_summary_of_a_summary_is_the_same(previous: str, atoms: list[Atom], most: int) -> None:
    made = summarize_by_rules(previous, atoms, most, NOW)
    assert summarize_by_rules(made, [], most, NOW) == made
