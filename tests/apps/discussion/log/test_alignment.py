"""Alignment finds which messages of a request stand in the log already."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from eunoe.apps.discussion.alignment import Pair, align

KEYS = st.lists(st.sampled_from("abcdef"), max_size=12)


def test_a_request_that_goes_on_from_the_end_of_the_log() -> None:
    assert align("abcd", "cdef") == [Pair(2, 0), Pair(3, 1)]


def test_of_two_readings_the_one_with_new_messages_at_the_end_is_meant() -> None:
    assert align(["x", "ok", "fine"], ["fine", "ok"]) == [Pair(2, 0)]
    assert align(["ok", "fine", "x", "y"], ["y", "ok", "fine"]) == [Pair(3, 0)]


def test_an_edited_message_between_repeated_ones() -> None:
    log, request = ["ok", "a", "b", "c", "ok"], ["ok", "a", "B", "c", "ok", "d"]
    assert align(log, request) == [Pair(0, 0), Pair(1, 1), Pair(3, 3), Pair(4, 4)]


def test_the_same_request_again_is_all_known() -> None:
    assert align(["ok", "ok", "ok"], ["ok", "ok"]) == [Pair(1, 0), Pair(2, 1)]


def test_nothing_in_common() -> None:
    assert align("abc", "xyz") == align("", "abc") == align("abc", "") == []


@given(KEYS, KEYS)
def test_pairs_rise_and_hold_the_same(log: list[str], request: list[str]) -> None:
    pairs = align(log, request)
    assert all(log[pair.log] == request[pair.request] for pair in pairs)
    assert all(one.log < two.log and one.request < two.request for one, two in pairwise(pairs))


@given(KEYS, KEYS)
def test_a_request_that_repeats_the_whole_log_matches_all_of_it(log: list[str], new: list[str]) -> None:
    assert align(log, log + new) == [Pair(place, place) for place in range(len(log))]


def test_an_edit_is_found_in_a_long_log_where_everything_is_said_again() -> None:
    log = [f"{place % 7}" for place in range(5000)]
    pairs = align(log, [*log[:2500], "edited", *log[2501:]])
    assert len(pairs) == 4999


def test_a_request_that_begins_with_what_the_log_begins_with_may_be_cut_all_the_same() -> None:
    log = ["ok", "ok", "a", "b", "ok", "ok", "c", "d", "ok", "e", "f"]
    request = ["ok", "ok", "c", "d", "ok", "e", "g", "h"]
    assert align(log, request) == [Pair(place + 4, place) for place in range(6)]
