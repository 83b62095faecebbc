"""Long messages: told by the passages that fit the question, in order, with marks where something was left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunoe
from eunoe.recall.recalled_context import fitting_passages
from eunoe.recall.rendering import GAP
from eunoe.text.sentences import split_into_parts, word_count

HERE = "agent=cook/session=s1/user=anna"
KAYAK = "Mara: I bought a kayak. It is bright yellow. I paid ninety for it."
TALK = [f"Otto: On day {number} it rained in the valley and we stayed in." for number in range(60)]


def long_text(place, between="\n"):
    return between.join([*TALK[:place], KAYAK, *TALK[place:]])


@pytest.mark.parametrize("place", [0, 1, 30, 59, 60])
@pytest.mark.parametrize("between", ["\n", " "])
def test_the_passage_around_the_match_is_told_with_marks(place, between):
    told = fitting_passages(long_text(place, between), "Which colour is the kayak?", [], 60)
    assert "I bought a kayak. It is bright yellow. I paid ninety for it." in told
    assert told.startswith(GAP) == (place > 1)
    assert told.endswith(GAP) == (place < 60)
    assert told.count(GAP) == (place > 1) + (place < 60)
    assert 40 < word_count(told) <= 70


def test_what_is_near_to_the_question_is_told_where_no_word_is_the_same():
    text = long_text(30)
    parts = split_into_parts(text)
    cosines = [0.6 if "kayak" in part else 0.1 for part in parts]
    assert KAYAK in fitting_passages(text, "Which boat?", cosines, 60)
    assert fitting_passages(text, "Which boat?", cosines[:-1], 60) == fitting_passages(text, "Which boat?", [], 60)


def test_a_text_that_is_short_enough_is_told_as_it_is():
    assert fitting_passages("One  line.\n\nAnother.", "What?", [], 10) == "One  line.\n\nAnother."


@given(
    st.lists(
        st.sampled_from(["A kayak. ", "It rained in the valley. ", "x" * 50, "\n", "犬は好きです。", "word " * 90]),
        max_size=40,
    ),
    st.integers(1, 120),
)
def test_passages_are_sentences_of_the_text_in_their_order(pieces, limit):
    text = "".join(pieces)
    told = fitting_passages(text, "Where is the kayak?", [], limit)
    assert told == fitting_passages(text, "Where is the kayak?", [], limit)
    place, whole = 0, " ".join(text.split())
    for passage in told.split(GAP):
        words = " ".join(passage.split())
        place = whole.index(words, place) + len(words)


def test_a_context_tells_the_passage_of_a_long_message_that_a_budget_would_leave_out(path):
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        for number in range(6):
            text = long_text(30) if number == 3 else "\n".join([f"{line} Part {number}." for line in TALK])
            memory.observe(HERE, {"role": "user", "content": text})
        memory.observe(HERE, [{"role": "user", "content": text} for text in ("Hm.", "Ah.", "Oh.", "Ok.")])
        for tokens in (300, 700, 2000):
            context = memory.context(HERE, "Which colour is the kayak of Mara?", tokens=tokens)
            assert KAYAK.removeprefix("Mara: ") in context.text
            assert GAP in context.text
            assert context.tokens <= tokens
            assert context.hits[0].text == long_text(30)
        assert KAYAK.split()[-1] in memory.context(HERE, "Which colour is the kayak of Mara?").text
        assert GAP not in memory.context(HERE, "Which colour is the kayak of Mara?", limit=1).text


def test_one_long_message_has_all_the_room_there_is(path):
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.observe(HERE, {"role": "user", "content": long_text(30)})
        memory.observe(HERE, [{"role": "user", "content": text} for text in ("Hm.", "Ah.", "Oh.", "Ok.")])
        whole = memory.context(HERE, "Which colour is the kayak?", tokens=2000)
        assert GAP not in whole.text
        assert TALK[59] in whole.text
        cut = memory.context(HERE, "Which colour is the kayak?", tokens=600)
        assert cut.tokens > 450
