"""Which language a text is in, and its stop words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.text.languages import (
    ENGLISH,
    LANGUAGES,
    STOP_WORDS,
    detect_language,
    is_stop_word,
    language_votes,
    stop_words,
    stop_words_and_english,
)
from eunoe.text.normalize import fold


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
    assert LANGUAGES[detect_language(sentence)] == language


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_every_text_has_a_language(text: str) -> None:
    assert 0 <= detect_language(text) < len(LANGUAGES)


def test_a_word_votes_for_the_languages_whose_stop_word_or_script_it_is() -> None:
    votes = dict(language_votes(["Sushi,", "unter", "Москвы"]))
    assert {LANGUAGES[language] for language in votes[1].languages} == {"german"}
    assert [LANGUAGES[language] for language in votes[2].languages] == ["russian", "ukrainian"]
    assert 0 not in votes


@pytest.mark.parametrize("name", LANGUAGES)
def test_stop_words_are_compared_folded(name: str) -> None:
    language = LANGUAGES.index(name)
    assert len(STOP_WORDS[name]) > 20
    assert all(is_stop_word(fold(word), language) for word in STOP_WORDS[name])
    assert stop_words_and_english(language) == stop_words(language) | stop_words(ENGLISH)
