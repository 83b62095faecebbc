"""Long texts in parts, and what a speaker says of themselves as a statement."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.letters import Letters
from tests.support.long_texts import FILLER, long_text

import eunoe
from eunoe.text.sentences import (
    LONG_TEXT_WORDS,
    MAX_PARTS,
    PART_WORDS,
    quotation_of,
    split_into_parts,
    third_person,
    word_count,
)

ANNA = {"user": "anna"}


def letters_of(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    "text", ["", "tea", "one two three. " * 50, "茶" * 2 * LONG_TEXT_WORDS, "x" * 6 * LONG_TEXT_WORDS]
)
def test_a_text_that_is_not_long_is_left_as_it_is(text: str) -> None:
    assert split_into_parts(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "one two three. " * 51,
        FILLER * 40,
        "word " * 1000,
        "word\n" * 1000,
        "我住在上海。我喜欢茶。" * 100,
        "茶" * 1000,
        "# Plan\n\n- buy tea\n\n```python\nx = 1\n```\n" * 60,
        f"see {'https://example.org/' + 'a' * 3000} and more " + "word " * 300,
        "x" * 2000,
        "Donaudampfschifffahrtsgesellschaft und Rechtsschutzversicherung " * 40,
        '{"level":"info","path":"/api/v1/items","took":12.5} ' * 70,
    ],
)
def test_a_long_text_is_cut_into_parts_of_about_one_length(text: str) -> None:
    parts = split_into_parts(text)
    assert len(parts) > 1
    assert letters_of("".join(parts)) == letters_of(text)
    assert all(word_count(part) <= 2 * PART_WORDS and len(part) <= 12 * PART_WORDS for part in parts)


def test_parts_end_where_sentences_end() -> None:
    assert all(part.endswith(("offices.", "floor.")) for part in split_into_parts(FILLER * 20))


def test_a_very_long_text_has_no_more_parts() -> None:
    assert len(split_into_parts(FILLER * 2000)) <= MAX_PARTS + 1


@given(st.lists(st.text(alphabet="ab .!?\n,;。茶é", max_size=60), max_size=120).map(" ".join))
def test_nothing_is_left_out(text: str) -> None:
    assert letters_of("".join(split_into_parts(text))) == letters_of(text)


@pytest.mark.parametrize("sign", [".", "!", '"', '."', "…", "。"])
def test_a_run_of_signs_is_read_once(sign: str) -> None:
    """Progress dots in a log: reading them takes a step for each sign, not for each pair."""
    text = "word " * 200 + sign * 100_000 + "x"
    assert letters_of("".join(split_into_parts(text))) == letters_of(text)


class RecordingModel:
    """Records the texts it was given to rerank."""

    name = "recording"

    def scores(self, question: str, texts: Sequence[str]) -> np.ndarray:
        self.texts = list(texts)
        return np.zeros(len(texts), np.float32)


def reranked_texts(memory: eunoe.Memory, question: str) -> list[str]:
    model = RecordingModel()
    memory._engine.searcher.reranker.model = model
    memory.recall(ANNA, question, recipe="thorough")
    return model.texts


def test_of_a_long_text_the_nearest_part_is_read(path: Path) -> None:
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        memory.remember(ANNA, long_text("jjj jjj hh hhh jjj"))
        (shown,) = reranked_texts(memory, "jjj hhh")
        assert "jjj jjj hh hhh jjj" in shown
        assert word_count(shown) < LONG_TEXT_WORDS


@pytest.mark.parametrize("embedder", ["none", "letters"])
def test_without_a_vector_for_each_part_the_text_is_read_from_its_beginning(path: Path, embedder: str) -> None:
    text = long_text("The budget of Ada.")
    with eunoe.open(path, embedder=Letters() if embedder == "letters" else "none", form=False) as memory:
        memory.remember(ANNA, text, **({"vector": [1.0] * 10} if embedder == "letters" else {}))
        assert reranked_texts(memory, "the budget of Ada") == [text]


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
