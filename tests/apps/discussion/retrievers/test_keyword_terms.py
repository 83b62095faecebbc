"""Keywords as they are typed: whatever signs they hold, they are words."""

import logging

import pytest

from eunoe.apps.discussion.retrievers.keyword_terms import MAX_KEYWORDS, parse_keyword, split_keywords
from eunoe.errors import InputError

ENGLISH = frozenset({0})


def test_keywords_stand_between_semicolons_also_between_wide_ones() -> None:
    assert split_keywords(" Rome ;; night  train\uff1b東京 ; ") == ["Rome", "night train", "東京"]


def test_a_repeated_keyword_counts_once_and_keeps_its_place() -> None:
    assert split_keywords("Rome; Oslo; ROME; rome") == ["Rome", "Oslo"]


def test_too_many_are_cut_with_a_word_in_the_log_that_names_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "eunoe"):
        kept = split_keywords(";".join(f"word{number}" for number in range(MAX_KEYWORDS + 3)))
    assert kept == [f"word{number}" for number in range(MAX_KEYWORDS)]
    assert "60 of 63" in caplog.text
    assert "word" not in caplog.text.replace("keyword", "")


def test_sixty_are_no_reason_to_speak(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "eunoe"):
        split_keywords(";".join(f"word{number}" for number in range(MAX_KEYWORDS)))
    assert not caplog.records


@pytest.mark.parametrize("keywords", [None, 7, ["Rome"], b"Rome"])
def test_what_is_no_text_is_refused(keywords: object) -> None:
    with pytest.raises(InputError, match="keywords must be a text"):
        split_keywords(keywords)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ['"', "*", "()", "^", "- -", "...", "\0"])
def test_signs_alone_are_no_keyword(text: str) -> None:
    assert [part for keyword in split_keywords(text) for part in parse_keyword(keyword, ENGLISH)] == []


def test_words_that_say_nothing_count_only_where_there_are_no_others() -> None:
    assert words_of("in the garden") == ["garden"]
    assert words_of("to be") == ["to", "be"]


def words_of(keyword: str) -> list[str]:
    return [part.phrase[0].forms[0] for part in parse_keyword(keyword, ENGLISH) if len(part.phrase) == 1]
