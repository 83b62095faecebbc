"""Near duplicates by rule: never the same where a number, a date, a name, a negation or an opposite differs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.form.likeness import is_duplicate, similarity

ALIKE = [
    ("Anna: I love green tea.", "Anna: I really love green tea!"),
    ("Anna: I have two cats and a dog.", "Anna: I've got two cats and a dog"),
    ("Anna: I work at the Heron hotel.", "Anna: I'm working at the Heron hotel."),
    ("My sister's wedding is on 12 May.", "my sister’s wedding is on 12 May"),
    ("Ich wohne in Berlin.", "Ich wohne jetzt in Berlin"),
    ("Anna: I cannot sleep without a candle.", "Anna: I really cannot sleep without a candle!"),
]
DIFFERENT = [
    ("Anna: I have two cats and a dog.", "Anna: I have three cats and a dog."),
    ("The rent is 950 pounds a month.", "The rent is 1,200 pounds a month."),
    ("The wedding is on 12 May at noon.", "The wedding is on 13 May at noon."),
    ("The wedding of my sister is in May.", "The wedding of my sister is in June."),
    ("We meet on Monday in the office.", "We meet on Tuesday in the office."),
    ("Anna: I like green tea with milk.", "Anna: I don't like green tea with milk."),
    ("Anna: I eat meat on weekdays.", "Anna: I never eat meat on weekdays."),
    ("Anna: I love the long winter evenings here.", "Anna: I hate the long winter evenings here."),
    ("Yesterday Tom lent Ida the car.", "Yesterday Ida lent Tom the car."),
    ("I moved into the house with Tom last May.", "I moved into the house with Ben last May."),
    ("Anna: I live in Rome.", "Ben: I live in Rome."),
    ("The flat is cheap and near the station.", "The flat is expensive and near the station."),
    ("Anna: I moved to Rome.", "Anna: I moved to Milan."),
    ("Anna: I arrived before the storm.", "Anna: I arrived after the storm."),
    ("version 1.2.3 is out", "version 1.2.4 is out"),
]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_what_says_the_same_in_almost_the_same_words_is_the_same(first: str, second: str) -> None:
    assert is_duplicate(first, second)
    assert is_duplicate(second, first)
    assert similarity(first, second) >= 0.8


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_one_telling_difference_makes_another_statement(first: str, second: str) -> None:
    assert not is_duplicate(first, second)
    assert not is_duplicate(second, first)
    assert similarity(first, second) < 0.8


@pytest.mark.parametrize(
    "pair", ["love/hate", "like/dislike", "like/hate", "accepted/refused", "arrived/left", "more/less", "his/her"]
)
def test_opposites_make_another_statement_however_long_it_is(pair: str) -> None:
    """Also words that have several opposites."""
    first, second = (f"Anna {word} the dark snowy winter evenings in the quiet valley." for word in pair.split("/"))
    assert not is_duplicate(first, second)
    assert not is_duplicate(first, second, cosine=0.99)
    assert similarity(first, second) == similarity(second, first) <= 0.5


def test_unlike_texts_have_nothing_in_common() -> None:
    assert similarity("I bake bread.", "The train was late.") == 0.0


@given(st.text(max_size=80), st.text(max_size=80))
def test_likeness_is_the_same_both_ways_and_between_none_and_all(first: str, second: str) -> None:
    found = similarity(first, second)
    assert 0.0 <= found <= 1.0
    assert found == similarity(second, first)
    assert is_duplicate(first, second) == is_duplicate(second, first)


@given(st.text(max_size=80))
def test_every_text_is_like_itself(text: str) -> None:
    assert is_duplicate(text, text)
    assert similarity(text, text) == 1.0
