"""Terms that begin or end alike."""

import pytest

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
