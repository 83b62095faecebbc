import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.text import analyzer
from eunoe.text.languages import LANGUAGES


def every(words: str, language: int = analyzer.ENGLISH) -> set[str]:
    return {term for chunk in words.split() for term in analyzer.terms(chunk, language)}


@pytest.mark.parametrize(
    ("chunk", "whole", "parts"),
    [
        ("ERR_42,", "err_42", {"err", "42"}),
        ("src/a/b.py", "src/a/b.py", {"b.py", "src", "py"}),
        ("(src/a/b.py:12)", "src/a/b.py", {"src/a/b.py:12", "b.py"}),
        ("<anna.b@example.org>.", "anna.b@example.org", {"anna", "example.org"}),
        ("https://x.example/z?q=1", "https://x.example/z?q=1", {"x.example"}),
        ("v1.2.3", "v1.2.3", {"v1"}),
        ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000", {"e29b"}),
        ("#1234", "#1234", {"1234"}),
        ("C++", "c++", {"c"}),
        ("C#", "c#", {"c"}),
        (".env", ".env", {"env"}),
        ("foo.bar()", "foo.bar", {"foo", "bar"}),
        ("snake_case", "snake_case", {"snake", "case"}),
        ("kebab-case", "kebab-case", {"kebab", "case"}),
        ("1,200.50", "1200.50", {"1,200.50"}),
        ("10:30", "10:30", {"10", "30"}),
        ("getHTTPServer2", "gethttpserver2", {"get", "http", "server"}),
    ],
)
def test_an_identifier_is_one_thing_and_its_parts(chunk: str, whole: str, parts: set[str]) -> None:
    assert whole in analyzer.terms(chunk)
    assert parts <= set(analyzer.terms(chunk))


@pytest.mark.parametrize(
    ("words", "identifiers"),
    [
        ("ERR_42 ABC-17 h200 src/a/b.py docs/recall b.py @anna #17 anna@example.org", 9),
        ("1.2.3 10.0.0.1 v1.2 C++ C# .env std::vector 550e8400-e29b-41d4-a716-446655440000", 8),
        ("3.14 1,200.50 10:30 24/7 2024-05-07 7.5.2024 2024.5.7 12/05/2024", 0),
        ("7pm 8th 5k 90s 20-year-old 5-star self-care mother-in-law", 0),
        ("and/or he/she w/o U.S. e.g. J.K. don't", 0),
    ],
)
def test_what_names_one_thing_is_an_identifier(words: str, identifiers: int) -> None:
    firsts = [next(iter(analyzer.pieces(chunk).wholes), "") for chunk in words.split()]
    assert sum(map(analyzer.is_identifier, firsts)) == identifiers


def test_camel_case_is_found_whole_and_in_parts() -> None:
    assert {"camelcas", "camel", "case"} <= every("camelCase")
    assert every("camelcase") <= every("camelCase")


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
    assert analyzer.fold(left) == analyzer.fold(right)


@pytest.mark.parametrize(("whole", "stripped"), [("й", "и"), ("が", "か"), ("कि", "क"), ("한", "하")])
def test_marks_that_change_the_letter_stay(whole: str, stripped: str) -> None:
    assert analyzer.fold(whole) != analyzer.fold(stripped)
    assert analyzer.fold(unicodedata.normalize("NFD", whole)) == analyzer.fold(whole)


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("Where did you put the keys?", "english"),
        ("Ich habe das nicht gesehen", "german"),
        ("Je ne sais pas où il est", "french"),
        ("¿Dónde está el perro de mi hermana?", "spanish"),
        ("Non so che cosa è successo", "italian"),
        ("Ik heb het niet gezien", "dutch"),
        ("Привет, как дела", "russian"),
        ("Sushi!", "english"),
        ("", "english"),
    ],
)
def test_the_language_of_a_text(sentence: str, language: str) -> None:
    assert LANGUAGES[analyzer.language(sentence)] == language


def test_words_are_stemmed_in_their_language() -> None:
    assert analyzer.stem("running") == analyzer.stem("runs")
    german = LANGUAGES.index("german")
    assert analyzer.stem("hauser", german) == analyzer.stem("haus", german)


@pytest.mark.parametrize("run", ["東京タワーに行きました", "안녕하세요여러분", "สวัสดีครับ", "我明天去北京开会"])
def test_any_part_of_a_run_without_spaces_is_found(run: str) -> None:
    held = set(analyzer.terms(run))
    for start in range(len(run)):
        for end in range(start + 1, len(run) + 1):
            assert set(analyzer.pairs(run[start:end])) <= held


def test_scripts_without_spaces_and_words_may_touch() -> None:
    assert {"python", "東京"} <= set(analyzer.terms("Pythonで東京"))


def test_emoji_are_terms_whatever_the_skin() -> None:
    assert "👍" in analyzer.terms("ok👍🏽")
    assert "🇩🇪" in analyzer.terms("🇩🇪")


def test_elisions_and_possessives() -> None:
    assert analyzer.terms("Anna's") == ("anna",)
    assert analyzer.terms("l'école") == (analyzer.stem("ecole"),)
    assert "obrien" in analyzer.terms("O'Brien")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_no_text_is_too_odd(words: str) -> None:
    for chunk in words.split():
        assert all(isinstance(term, str) and term for term in analyzer.terms(chunk))
    assert 0 <= analyzer.language(words) < len(LANGUAGES)


@pytest.mark.parametrize("unit", ["a", "a_", "a/", "aB", "東", "😀", "'", ".", "\ud800", "1,", "[("])
def test_long_texts_take_time_in_proportion(unit: str) -> None:
    start = time.thread_time()
    analyzer.terms(unit * 200_000)
    assert time.thread_time() - start < 20  # a fraction of a second; minutes if every step looked at all the rest
