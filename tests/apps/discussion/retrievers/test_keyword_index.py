"""The index by which keywords find texts: phrases before words, rare before common, the best first."""

import random
import sqlite3

import numpy as np
import pytest

from eunoe.apps.discussion.retrievers import keyword_index
from eunoe.apps.discussion.retrievers.keyword_index import KeywordIndex, find_matches


def search(texts: list[str], *keywords: str, most: int = 10) -> list[str]:
    index = KeywordIndex([[text]] for text in texts)
    return [texts[match.row] for match in find_matches([index], keywords, [1.0], most)]


def test_a_phrase_is_preferred_and_its_words_are_found_too() -> None:
    texts = ["train train or night, night; train, or night", "the night train to Oslo", "a train", "a boat"]
    assert search(texts, "night train")[0] == "the night train to Oslo"
    assert set(search(texts, "night train")) == set(texts[:3])


def test_any_keyword_is_enough_and_more_are_better() -> None:
    assert search(["tea", "tea and cake", "milk"], "cake", "tea") == ["tea and cake", "tea"]


def test_the_best_comes_first() -> None:
    texts = ["tea " + "and other things " * 20, "tea", "no such word"]
    assert search(texts, "tea") == ["tea", texts[0]]


def test_a_word_that_all_rows_have_still_finds_them() -> None:
    assert search(["tea one", "tea two"], "tea") == ["tea two", "tea one"]


def test_words_are_found_in_other_forms_and_cases() -> None:
    assert search(["She WELDS pipes"], "welding") == ["She WELDS pipes"]
    assert search(["Un café à Paris"], "cafe") == ["Un café à Paris"]


def test_words_of_other_languages_are_found_in_other_forms() -> None:
    text = "Wir haben die Häuser in der alten Stadt nicht gesehen"
    assert search([text, "Houses are here"], "Haus") == [text]


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("安娜去年夏天住在东京。", "东京"),
        ("安娜去年夏天住在东京。", "住在东京"),
        ("彼女は東京に住んでいます", "東京"),
        ("나는 서울에서 일한다", "서울"),
        ("ฉันอยู่ที่กรุงเทพ", "กรุงเทพ"),
        ("她搬到了京", "京"),
    ],
)
def test_scripts_without_spaces_are_found(text: str, keyword: str) -> None:
    assert search([text, "什么都没有", "nothing"], keyword) == [text]


def test_a_run_of_characters_is_preferred_as_a_whole() -> None:
    texts = ["京都と東京は遠い", "東京都に住む"]
    assert search(texts, "東京都")[0] == "東京都に住む"


def test_a_phrase_does_not_go_past_the_end_of_a_text() -> None:
    apart = KeywordIndex([[["night", "train"]], [["night train"]]])
    scores = {match.row: match.score for match in find_matches([apart], ["night train"], [1.0], 5)}
    assert scores[1] > 1.5 * scores[0]


def test_identifiers_are_found_as_they_are_and_by_their_parts() -> None:
    texts = ["see src/app/main.py", "err_42 came up", "C++ is fast", "well-known facts"]
    assert search(["gpt4", "gpt5"], "gpt4") == ["gpt4"]
    assert search(texts, "src/app/main.py") == texts[:1]
    assert search(texts, "main.py") == texts[:1]
    assert search(texts, "ERR_42") == texts[1:2]
    assert search(texts, "C++") == texts[2:3]
    assert search(texts, "well known") == texts[3:]


def test_weights_decide_between_fields() -> None:
    index = KeywordIndex([[["tea"], ["cake"]], [["cake"], ["tea"]]])
    assert [match.row for match in find_matches([index], ["tea"], [3.0, 1.0], 5)] == [0, 1]
    assert [match.row for match in find_matches([index], ["tea"], [1.0, 3.0], 5)] == [1, 0]
    assert [match.row for match in find_matches([index], ["tea"], [0.0, 1.0], 5)] == [1]


def test_several_indexes_are_ranked_as_one() -> None:
    """In the first one the word is rare, in both together it is not: its rows are no better for that."""
    texts = ["tea one", "milk two", "milk one", "milk two", "tea cake", "tea one", "tea two"]
    parts = [KeywordIndex([[text]] for text in part) for part in (texts[:4], texts[4:])]
    joined = KeywordIndex([[text]] for text in texts)
    for keywords in (["tea"], ["milk", "tea one"], ["cake", "two"]):
        found = [(match.number * 4 + match.row, match.score) for match in find_matches(parts, keywords, [1.0], 9)]
        assert found == [(match.row, match.score) for match in find_matches([joined], keywords, [1.0], 9)]


def test_a_full_cache_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword_index, "_MAX_CACHED_PHRASES", 3)
    index = KeywordIndex([[f"word{number} and word{number + 1}"]] for number in range(50))
    keywords = [f"word{number} and" for number in range(50)]
    first = find_matches([index], keywords, [1.0], 50)
    assert find_matches([index], keywords, [1.0], 50) == first
    assert len(first) == 50


def test_many_weights_are_each_their_own() -> None:
    index = KeywordIndex([[["tea"], ["cake"]], [["cake"], ["tea"]]])
    for weight in range(2, 20):
        assert [match.row for match in find_matches([index], ["tea"], [weight, 1.0], 5)] == [0, 1]
        assert [match.row for match in find_matches([index], ["tea"], [1.0, weight], 5)] == [1, 0]


def test_factors_change_the_order() -> None:
    index = KeywordIndex([[["tea"]], [["tea"]]])
    matches = find_matches([index], ["tea"], [1.0], 5, np.array([2.0, 1.0]))
    assert [match.row for match in matches] == [0, 1]


@pytest.mark.parametrize("keywords", [[], [""], ["..."]])
def test_no_keyword_finds_nothing(keywords: list[str]) -> None:
    assert find_matches([KeywordIndex([[["tea"]]])], keywords, [1.0], 5) == []


def test_nothing_is_found_in_nothing() -> None:
    assert find_matches([KeywordIndex([])], ["tea"], [1.0], 5) == []
    assert find_matches([], ["tea"], [1.0], 5) == []


def test_it_finds_the_rows_that_fts5_finds() -> None:
    """Of words without endings, so that both read them alike."""
    chance = random.Random(5)
    words = [f"w{letter}{number}x" for letter in "abcdef" for number in "123456"]
    texts = [" ".join(chance.choices(words, k=12)) for _ in range(200)]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter')")
    database.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", enumerate(texts))
    index = KeywordIndex([[text]] for text in texts)
    for _ in range(30):
        keywords = chance.sample(words, 3)
        query = " OR ".join(f'"{word}"' for word in keywords)
        rows = database.execute("SELECT rowid FROM texts WHERE texts MATCH ?", [query]).fetchall()
        assert {match.row for match in find_matches([index], keywords, [1.0], 200)} == {row for (row,) in rows}
    database.close()
