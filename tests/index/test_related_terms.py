"""Terms that begin or end alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.index.lexical import RelatedTerms
from eunoe.text.languages import LANGUAGES

GERMAN, SPANISH = LANGUAGES.index("german"), LANGUAGES.index("spanish")


def related(terms: str, stem: str, language: int = GERMAN) -> set[str]:
    vocabulary = {term: number for number, term in enumerate(terms.split())}
    return set(RelatedTerms(vocabulary).find(stem, language))


@pytest.mark.parametrize(
    ("terms", "stem", "expected"),
    [
        ("kuchenschrank schrank haus", "schrank", {"kuchenschrank"}),
        ("schrank kuche haus", "kuchenschrank", {"schrank", "kuche"}),
        ("gekundigt versicher", "kundig", {"gekundigt"}),
        ("kundig versicher", "gekundigt", {"kundig"}),
        ("haus", "haus", set()),
        ("hau ha", "haus", set()),
        ("verwaltungsgerichtsentscheid", "gericht", set()),
        ("hausbau", "", set()),
        ("hausbau", "h" * 30_000, set()),
        ("err_42 haus42", "haus", set()),
    ],
)
def test_forms_parts_and_compounds(terms: str, stem: str, expected: set[str]) -> None:
    assert related(terms, stem) == expected


def test_only_compounding_languages_look_at_the_end() -> None:
    assert related("imaginacion nacional", "nacion", SPANISH) == {"nacional"}


def test_the_nearer_in_length_fits_better_and_nothing_as_well_as_the_word_itself() -> None:
    fits = RelatedTerms({"schrankwand": 0, "schranke": 1, "kleiderschrank": 2}).find("schrank", GERMAN)
    assert 1 > fits["schranke"] > fits["schrankwand"] > fits["kleiderschrank"] > 0


def test_a_vocabulary_that_grows_is_read_on() -> None:
    vocabulary = {"haustur": 0}
    terms = RelatedTerms(vocabulary)
    assert set(terms.find("haus", GERMAN)) == {"haustur"}
    vocabulary["hausdach"] = 1
    assert set(terms.find("haus", GERMAN)) == {"haustur", "hausdach"}


@given(st.lists(st.text(alphabet="abc", max_size=8)), st.text(alphabet="abc", max_size=8))
def test_what_is_found_is_in_the_vocabulary_and_begins_or_ends_like_it(terms: list[str], stem: str) -> None:
    vocabulary = {term: number for number, term in enumerate(terms)}
    for term, fit in RelatedTerms(vocabulary).find(stem, GERMAN).items():
        assert term in vocabulary
        assert 0 < fit < 1
        assert term[:4] == stem[:4] or term[-4:] == stem[-4:] or "ge" in (term[:2], stem[:2])
