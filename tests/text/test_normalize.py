"""How two words are recognised as the same."""

import unicodedata

import pytest

from eunoe.text.normalize import fold


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Crème Brûlée", "creme brulee"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("ΆΛΦΑ", "αλφα"),
        ("İstanbul", "istanbul"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
        ("cafe\u0301", "café"),
        ("\uff46\uff55\uff4c\uff4c", "full"),
    ],
)
def test_case_and_accents_make_no_difference(left: str, right: str) -> None:
    assert fold(left) == fold(right)


@pytest.mark.parametrize(("whole", "stripped"), [("й", "и"), ("が", "か"), ("कि", "क"), ("한", "하")])
def test_marks_that_change_the_letter_stay(whole: str, stripped: str) -> None:
    assert fold(whole) != fold(stripped)
    assert fold(unicodedata.normalize("NFD", whole)) == fold(whole)
