"""Dates in a text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.text.dates import DAY_SECONDS, find_date_ranges

NOW = datetime(2024, 3, 13, 12, tzinfo=UTC).timestamp()  # a Wednesday
WORDS = """
    in on last next the of between and from to may march june 7 31 30th 2023 0000 week weeks ago a couple weekend
    friday summer q4 first quarter christmas yesterday before after mid- early vor zwei mai 5/6/23 1.1.99 st
"""
SPAN = (datetime(2022, 6, 1, tzinfo=UTC).timestamp(), NOW)


def days(text: str, span: tuple[float, float] = SPAN) -> list[tuple[str, str]]:
    """The first day of each range, and the first after it."""
    return [(_first_day(date.start), _first_day(date.end)) for date in find_date_ranges(text, NOW, span)]


def _first_day(stamp: float) -> str:
    return datetime.fromtimestamp(stamp, UTC).date().isoformat()


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("on 2023-05-07?", "2023-05-07", "2023-05-08"),
        ("What happened on 31 July, 2023?", "2023-07-31", "2023-08-01"),
        ("the 7th of May 2023", "2023-05-07", "2023-05-08"),
        ("on May 3, 2023", "2023-05-03", "2023-05-04"),
        ("on 13.05.2023", "2023-05-13", "2023-05-14"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("in mid-August 2023", "2023-08-11", "2023-08-21"),
        ("in summer 2022", "2022-06-01", "2022-09-01"),
        ("last summer", "2023-06-01", "2023-09-01"),
        ("last May", "2023-05-01", "2023-06-01"),
        ("in Q3 2023", "2023-07-01", "2023-10-01"),
        ("the third quarter of 2022", "2022-07-01", "2022-10-01"),
        ("in 2021?", "2021-01-01", "2022-01-01"),
        ("second week of November 2023", "2023-11-08", "2023-11-15"),
        ("yesterday", "2024-03-12", "2024-03-13"),
        ("the day before yesterday", "2024-03-11", "2024-03-12"),
        ("two weeks ago", "2024-02-25", "2024-03-03"),
        ("last week", "2024-03-04", "2024-03-11"),
        ("last weekend", "2024-03-09", "2024-03-11"),
        ("last month", "2024-02-01", "2024-03-01"),
        ("this year", "2024-01-01", "2025-01-01"),
        ("last Friday", "2024-03-08", "2024-03-09"),
        ("on Wednesday", "2024-03-06", "2024-03-07"),
        ("in the last three days", "2024-03-10", "2024-03-14"),
        ("the week before 7 May 2023", "2023-04-30", "2023-05-07"),
        ("between 3 May 2023 and 9 May 2023", "2023-05-03", "2023-05-10"),
        ("at Christmas 2023", "2023-12-20", "2023-12-28"),
        ("am 7. Mai 2023", "2023-05-07", "2023-05-08"),
        ("le 7 mai 2023", "2023-05-07", "2023-05-08"),
        ("el 7 de mayo de 2023", "2023-05-07", "2023-05-08"),
        ("il 7 maggio 2023", "2023-05-07", "2023-05-08"),
        ("letzten Freitag", "2024-03-08", "2024-03-09"),
        ("vendredi dernier", "2024-03-08", "2024-03-09"),
        ("vor zwei Wochen", "2024-02-25", "2024-03-03"),
        ("on 1stMay 2023", "2023-05-01", "2023-05-02"),
    ],
)
def test_a_date(text: str, start: str, end: str) -> None:
    assert days(text) == [(start, end)]


@pytest.mark.parametrize(
    "text",
    [
        "may I march to the house she sat in?",
        "What did April say to June?",
        "He may have sat down, the sun was out",
        "Which part of her body did she hurt in the fall?",
        "How many marches were there?",
        "It cost 1999 dollars",
        "version 1.2.2023.4",
        "call 555-2020-11",
        "on 31 February 2023",
        "",
    ],
)
def test_no_date(text: str) -> None:
    assert days(text) == []


def test_a_date_without_its_year_stands_for_each_in_the_span() -> None:
    assert days("in May") == [(f"{year}-05-01", f"{year}-06-01") for year in (2022, 2023, 2024)]


def test_a_date_without_its_year_means_the_last_one_when_there_is_no_span() -> None:
    assert [_first_day(date.start) for date in find_date_ranges("in May", NOW)] == ["2023-05-01", "2024-05-01"]


def test_a_stretch_takes_its_year_from_the_end() -> None:
    assert ("2023-09-01", "2023-11-11") in days("between September and early November 2023")
    assert len(days("between September and early November 2023")) == 1


def test_a_numeric_date_may_be_read_both_ways() -> None:
    assert set(days("on 5/6/2023")) == {("2023-05-06", "2023-05-07"), ("2023-06-05", "2023-06-06")}


def test_a_range_says_where_it_was_read() -> None:
    text = "What did she cook on 18 August, 2023 for us?"
    assert [text[slice(*date.span)] for date in find_date_ranges(text, NOW, SPAN)] == ["18 August, 2023"]


def test_days_begin_in_the_given_zone() -> None:
    zone = timezone(timedelta(hours=9))
    (date,) = find_date_ranges("yesterday", NOW, zone=zone)
    assert datetime.fromtimestamp(date.start, zone).hour == 0
    assert date.end - date.start == DAY_SECONDS


@given(st.text(max_size=200), st.floats(-1e15, 1e15))
def test_nothing_breaks_it(text: str, now: float) -> None:
    for date in find_date_ranges(text, now):
        assert date.start < date.end


@given(st.sampled_from(["", " "]), st.lists(st.sampled_from(WORDS.split()), max_size=8), st.floats(-7e10, 3e11))
def test_no_mix_of_date_words_breaks_it(blank: str, words: list[str], now: float) -> None:
    for date in find_date_ranges(blank.join(words), now, (now - 1e8, now)):
        assert date.start < date.end


def test_words_run_together_are_no_dates() -> None:
    assert [find_date_ranges(text, NOW) for text in ("midmay", "endjune plans", "startmarch")] == [(), (), ()]
