"""Plurals whose endings no stemmer brings together with the singular."""

import pytest

from eunoe.text.languages import ENGLISH, LANGUAGES, other_numbers


@pytest.mark.parametrize(
    ("language", "one", "many"),
    [
        ("portuguese", "reuniao", "reunioes"),
        ("portuguese", "pao", "paes"),
        ("portuguese", "hotel", "hoteis"),
        ("spanish", "luz", "luces"),
        ("italian", "lago", "laghi"),
        ("french", "travail", "travaux"),
        ("dutch", "kind", "kinderen"),
    ],
)
def test_each_number_gives_the_other(language: str, one: str, many: str) -> None:
    number = LANGUAGES.index(language)
    assert many in other_numbers(one, number)
    assert one in other_numbers(many, number)


@pytest.mark.parametrize(("language", "ending"), [("portuguese", "ao"), ("portuguese", "oes"), ("spanish", "z")])
def test_an_ending_alone_is_no_word(language: str, ending: str) -> None:
    assert other_numbers(ending, LANGUAGES.index(language)) == ()


def test_english_has_none() -> None:
    assert other_numbers("faces", ENGLISH) == ()
