"""Terms: what a text is found by."""

import time
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.text.analyzer import (
    character_pairs,
    clear_word_caches,
    is_identifier,
    split_token,
    stem,
    terms,
    terms_of_each,
    word_cache,
)
from eunoe.text.languages import ENGLISH, LANGUAGES


def all_terms(words: str, language: int = ENGLISH) -> set[str]:
    return {term for token in words.split() for term in terms(token, language)}


@pytest.mark.parametrize(
    ("token", "whole", "parts"),
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
def test_an_identifier_is_one_thing_and_its_parts(token: str, whole: str, parts: set[str]) -> None:
    assert whole in terms(token)
    assert parts <= set(terms(token))


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
    first_terms = [next(iter(split_token(token).exact_terms), "") for token in words.split()]
    assert sum(map(is_identifier, first_terms)) == identifiers


def test_camel_case_is_found_whole_and_in_parts() -> None:
    assert {"camelcas", "camel", "case"} <= all_terms("camelCase")
    assert all_terms("camelcase") <= all_terms("camelCase")


def test_words_are_stemmed_in_their_language() -> None:
    assert stem("running") == stem("runs")
    german = LANGUAGES.index("german")
    assert stem("hauser", german) == stem("haus", german)


@pytest.mark.parametrize("run", ["東京タワーに行きました", "안녕하세요여러분", "สวัสดีครับ", "我明天去北京开会"])
def test_any_part_of_a_run_without_spaces_is_found(run: str) -> None:
    indexed = set(terms(run))
    for start in range(len(run)):
        for end in range(start + 1, len(run) + 1):
            assert set(character_pairs(run[start:end])) <= indexed


def test_scripts_without_spaces_and_words_may_touch() -> None:
    assert {"python", "東京"} <= set(terms("Pythonで東京"))


def test_emoji_are_terms_whatever_the_skin() -> None:
    assert "👍" in terms("ok👍🏽")
    assert "🇩🇪" in terms("🇩🇪")


def test_elisions_and_possessives() -> None:
    assert terms("Anna's") == ("anna",)
    assert terms("l'école") == (stem("ecole"),)
    assert "obrien" in terms("O'Brien")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_no_text_is_too_odd(text: str) -> None:
    for token in text.split():
        assert all(isinstance(term, str) and term for term in terms(token))


@pytest.mark.parametrize("unit", ["a", "a_", "a/", "aB", "東", "😀", "'", ".", "\ud800", "1,", "[("])
def test_long_texts_take_time_in_proportion(unit: str) -> None:
    start = time.thread_time()
    terms(unit * 200_000)
    assert time.thread_time() - start < 20  # a fraction of a second; minutes if every step looked at all the rest


def test_threads_give_the_same_terms() -> None:
    sentence = ["Running", "dogs", "were", "chasing", "hundreds", "of", "startled", "geese"]
    expected = terms_of_each(sentence)
    results: list[list[tuple[str, ...]]] = []
    for _ in range(3):
        clear_word_caches()
        thread = Thread(target=lambda: results.append(terms_of_each(sentence)))
        thread.start()
        thread.join()
    assert results == [expected] * 3


def test_a_cache_of_words_is_emptied_with_all_others() -> None:
    calls: list[str] = []

    @word_cache(8)
    def shout(word: str) -> str:
        calls.append(word)
        return word.upper()

    assert [shout("tea"), shout("tea")] == ["TEA", "TEA"]
    clear_word_caches()
    assert shout("tea") == "TEA"
    assert calls == ["tea", "tea"]
