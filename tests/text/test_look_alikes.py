# ruff: noqa: RUF001
"""What a reader takes for the same text, and what not."""

import unicodedata

import pytest
from tests.support.readings import DISGUISED, OTHER

from eunoe.text.normalize import bare_form, look_alike_form, normalize


@pytest.mark.parametrize(("text", "other"), OTHER)
def test_a_sign_that_means_something_makes_another_text(text: str, other: str) -> None:
    assert look_alike_form(text) != look_alike_form(other)
    assert normalize(text) != normalize(other)


@pytest.mark.parametrize(("text", "disguised"), DISGUISED)
def test_a_disguise_makes_no_other_text(text: str, disguised: str) -> None:
    assert look_alike_form(text) == look_alike_form(disguised)


@pytest.mark.parametrize("text", sorted({text for pair in (*OTHER, *DISGUISED) for text in pair}))
def test_how_letters_are_composed_makes_no_difference(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert look_alike_form(unicodedata.normalize(form, text)) == look_alike_form(text)
        assert normalize(unicodedata.normalize(form, text)) == normalize(text)


def test_a_text_of_signs_alone_is_itself() -> None:
    assert look_alike_form("...") == "..."
    assert look_alike_form("🍎") != look_alike_form("🍌")


def test_bare_letters_are_what_older_tombstones_were_made_of() -> None:
    assert bare_form("Ännä likes −5% of 🍎: C++, é!") == "anna likes 5% of c++ e"
    assert bare_form("…") == "…"
