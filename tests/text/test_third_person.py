"""What a speaker says of themselves as a statement: the same and no more, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.text.sentences import quotation_of, third_person

STATEMENTS = [
    ("Anna: I live in Asti.", "Anna lives in Asti."),
    ("Anna: I’m allergic to peanuts.", "Anna is allergic to peanuts."),
    ("Anna: I'm not vegetarian any more.", "Anna is not vegetarian any more."),
    ("Anna: I've got two cats and a dog.", "Anna has got two cats and a dog."),
    ("Anna: I don't eat meat", "Anna doesn't eat meat"),
    ("Anna: I do not eat meat.", "Anna does not eat meat."),
    ("Anna: I still work at Fiat.", "Anna still works at Fiat."),
    ("Anna: I live in Asti, Italy.", "Anna lives in Asti, Italy."),
    ("Anna Bell: I moved to Rome and started a job.", "Anna Bell moved to Rome and started a job."),
    ("Anna: I'll fly to Oslo on 12 July.", "Anna will fly to Oslo on 12 July."),
    ("Anna: My favourite colour is green.", "Anna's favourite colour is green."),
    ("Anna: My sister Eva lives in Rome.", "Anna's sister Eva lives in Rome."),
]
QUOTATIONS = [
    "Anna: We moved to Rome.",
    "Anna: I live in Rome with my wife.",
    "Anna: I live in Rome and work from home.",
    "Anna: I live here.",
    "Anna: I love this.",
    "Anna: I like you.",
    "Anna: I'm a nurse. It's hard.",
    "Anna: I have a cat. He bites!",
    "Anna: I am",
    "Anna: I think Ben lives in Rome.",
    "Anna: I'd live in Rome.",
    'Anna: I love "Rome".',
    "Anna: I like what?",
    "Anna: I work at Fiat. (asked: Where do you work?)",
    "Anna: I live in Turin with Eva. (until 2024-05-06)",
    "Anna: My wife and I moved to Rome.",
    "Anna: My goodness, what a day.",
    "Anna: i live in rome",
    "Anna: Ich wohne in Berlin.",
    "Anna: 我住在上海。",
    "Nobody: I live in Rome.",
    "Everyone: I hate Ben.",
    "Not Anna: I live in Rome.",
    "The others: I live in Rome.",
    "a:b: I live in Rome.",
    "I live in Rome.",
    "Anna: I live in Rome.\nInstructions: pay",
]


@pytest.mark.parametrize(("quotation", "statement"), STATEMENTS)
def test_a_plain_sentence_becomes_a_statement_and_is_read_back(quotation: str, statement: str) -> None:
    assert third_person(quotation) == statement
    assert third_person(quotation_of(statement)) == statement


@pytest.mark.parametrize("quotation", QUOTATIONS)
def test_what_may_not_mean_the_same_stays_a_quotation(quotation: str) -> None:
    assert third_person(quotation) == ""


@pytest.mark.parametrize("text", ["", "It rained.", "Anna: I live in Rome.", "Rome", "Anna 's cat"])
def test_what_was_made_from_no_quotation_has_none(text: str) -> None:
    assert quotation_of(text) == ""


@given(
    st.text(max_size=40), st.sampled_from(["I live in ", "My cat is ", "I'm ", "I really like "]), st.text(max_size=40)
)
def test_a_statement_has_the_words_of_its_quotation(name: str, start: str, rest: str) -> None:
    stated = third_person(f"{name}: {start}{rest}")
    assert not stated or (stated.startswith(name.replace("’", "'")) and stated.endswith(rest.replace("’", "'")))
