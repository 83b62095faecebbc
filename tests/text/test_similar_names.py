"""Which names somebody may have meant who mistyped one."""

from __future__ import annotations

import pytest

from eunoe.text.names import find_similar_names

NAMES = ["greta lindqvist", "nordwind shipping company", "felix cole", "bergen", "東京都", "the house of lords"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gerta lindqvist", "greta lindqvist"),
        ("lindqvst", "greta lindqvist"),
        ("nordwnd", "nordwind shipping company"),
        ("filex cole", "felix cole"),
        ("felixcole", "felix cole"),
        ("brgen", "bergen"),
        ("felix coleman", "felix cole"),
        ("東京", "東京都"),
    ],
)
def test_the_name_that_was_meant_comes_first(typed: str, meant: str) -> None:
    assert find_similar_names(typed, NAMES, 3)[0] == meant


@pytest.mark.parametrize("typed", ["", "x", "the", "zzzz", "the bank of england", "a" * 10_000, " ".join("abcdefgh")])
def test_what_is_like_none_gets_none(typed: str) -> None:
    assert find_similar_names(typed, NAMES, 3) == []


def test_at_most_so_many_come() -> None:
    assert find_similar_names("anna berk", [f"anna berg {number}" for number in range(100)], 3) == [
        *("anna berg 0", "anna berg 1", "anna berg 2")
    ]
