"""What a context recalls: nothing twice, no old questions, and of long messages the passages that fit the question."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunoe
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Record
from eunoe.recall.recalled_context import Threshold, content_terms, fitting_passages, is_old_question
from eunoe.recall.rendering import GAP
from eunoe.text.sentences import split_into_parts, word_count

ANNA = "agent=cook/user=anna"
HERE = "agent=cook/session=s1/user=anna"
FILLERS = ("one moment", "two moments", "three moments", "four moments")


def said(memory, *texts, **fields):
    return memory.observe(HERE, [{"role": "user", "content": text, **fields} for text in texts])


def source(receipt):
    return f"@{eunoe.Scope.parse(HERE)}#{receipt.id}"


LEFTOVERS = {
    "What is the wifi password?": (
        "Anna's wifi password is hunter2banana.",
        "A password was on the list.",
        "Ben left.",
    ),
    "Who is my dentist?": ("Anna's dentist is Dr. Bell.", "The dentist was late.", "A bell rang."),
}


@pytest.fixture
def memory_with_vectors():
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        yield memory


def test_leftovers_do_not_fill_in_for_a_best_hit_that_stands_there_already(memory_with_vectors):
    memory = memory_with_vectors
    memory.remember(ANNA, "Anna lives in Turin, in the Via Po.", kind="observation")
    said(memory, "My sister lives in Oslo.", "Lea lived with us for a year.", "The cello lives in the attic.", *FILLERS)
    best, *others = memory.recall([ANNA, HERE], "Where do I live in Turin?", limit=10)
    assert "Turin" in best.text
    assert any(hit.score > 0.005 for hit in others)
    assert memory.context(HERE, "Where do I live in Turin?").hits == ()
    assert memory.context(HERE, "Where does my sister live?").hits[0].text == "My sister lives in Oslo."


@pytest.mark.parametrize("question", LEFTOVERS)
def test_nor_do_they_where_they_would_be_the_best_hits_alone(memory_with_vectors, question):
    answer, *others = LEFTOVERS[question]
    said(memory_with_vectors, *others, *FILLERS)
    memory_with_vectors.remember(ANNA, answer, kind="observation")
    assert memory_with_vectors.recall([ANNA, HERE], question)[1].score > 0.5
    context = memory_with_vectors.context(HERE, question)
    assert answer in context.text
    assert context.hits == ()


def test_what_follows_a_best_hit_that_is_known_must_not_be_far_behind_it():
    threshold = Threshold(0.1, 0.005).above(0.999)
    assert threshold.count_passing([0.85, 0.5, 0.003]) == 2
    assert threshold.count_passing([0.8, 0.5]) == 0
    assert Threshold(0.1, 0.005).above(0.09) == Threshold(0.1, 0.005)
    assert Threshold(0.1, 0.005).above(0.2) == Threshold(0.05, 0.005)
    assert Threshold(0.1, 0.005).above(1.0).best > 0.99
    assert Threshold(-inf, -inf).above(1.0) == Threshold(-inf, -inf)


def message(text, role="user"):
    return Record("message", "m1", b"", text, utc_now(), role=role)


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "Hey Mel, where do I live?",
        "Do you still know where I live?",
        "What's my wifi password? And when did I change it?",
        "Wo wohne ich?",
        "Où est-ce que j'habite ?",
        "¿Dónde vivo?",
        "Do I like tea?",
    ],
)
def test_a_message_that_only_asks_is_an_old_question(text):
    assert is_old_question(message(text), content_terms("Do I like tea or coffee?"))


@pytest.mark.parametrize(
    "text",
    [
        "I don't drink, is squash okay?",
        "Did you know I moved to Turin?",
        "We moved to Turin. Where is the key?",
        "My sister is coming on Friday, what shall I cook?",
        "Do I like tea, or the coffee from Ghent?",
        "Is the password still hunter2banana?",
        "I live in Turin.",
    ],
)
def test_a_question_that_tells_something_is_none(text):
    assert not is_old_question(message(text), content_terms("Which tea do I like?"))


def test_an_old_question_takes_no_place_and_lets_nothing_in(memory_with_vectors):
    memory = memory_with_vectors
    said(memory, "Where do I live?", "In which street do I live?", session="one")
    said(memory, "Grandma's cake needs two lemons.", *FILLERS, session="two")
    assert memory.recall(HERE, "Tell me where I live.")[0].text in ("Where do I live?", "In which street do I live?")
    assert memory.context(HERE, "Tell me where I live.").hits == ()
    said(memory, "I live in Turin.", "five moments", "six moments", "seven moments", "eight moments", session="three")
    assert [hit.text for hit in memory.context(HERE, "Tell me where I live.").hits][:1] == ["I live in Turin."]
    assert "?" not in memory.context(HERE, "Tell me where I live.").text.partition("<RetrievedMemories")[2]


@pytest.mark.parametrize("words", ["Anna moved to Turin with her wife.", "Turin is Anna's and her wife's new home."])
def test_a_message_and_its_observation_take_one_place(memory_with_vectors, words):
    memory = memory_with_vectors
    memory.streams.configure(ANNA, observation_buffer_max=0)
    receipt, *_ = said(memory, "We have just moved to Turin, my wife and I, with nine boxes.", *FILLERS)
    memory.remember(ANNA, words, kind="observation", source=[source(receipt)], source_scopes=HERE)
    assert len(memory.recall([ANNA, HERE], "Who moved to Turin?", limit=2)) == 2
    hits = memory.context(HERE, "Who moved to Turin?").hits
    assert [hit.text for hit in hits if "Turin" in hit.text] == [
        "We have just moved to Turin, my wife and I, with nine boxes."
    ]


def test_a_message_whose_observation_stands_there_is_told_only_if_it_says_more(memory_with_vectors):
    memory = memory_with_vectors
    first, second, *_ = said(
        memory,
        "I moved to Turin with my wife!",
        "In Turin I play the cello at the Regio, on Mondays, with Otto and two friends from Ghent.",
        *FILLERS,
    )
    memory.remember(
        ANNA, "anna moves to Turin with the wife.", kind="observation", source=[source(first)], source_scopes=HERE
    )
    memory.remember(
        ANNA, "anna plays the cello in Turin.", kind="observation", source=[source(second)], source_scopes=HERE
    )
    texts = [hit.text for hit in memory.context(HERE, "Who plays the cello in Turin with friends?").hits]
    assert [text for text in texts if "wife" in text] == []
    assert len([text for text in texts if "Regio" in text]) == 1


def test_the_message_that_the_best_hit_was_formed_from_is_told_if_it_says_more(memory_with_vectors):
    memory = memory_with_vectors
    words = (
        "Hey Ben, it was such a long week! Yesterday I signed up for a pottery class. How is the campaign going there?"
    )
    receipt, *_ = said(memory, words, "The kiln of the class was cold.", *FILLERS)
    observation = "anna: Yesterday I signed up for a pottery class."
    memory.remember(ANNA, observation, kind="observation", source=[source(receipt)], source_scopes=HERE)
    context = memory.context(HERE, "When did anna sign up for a pottery class?")
    assert observation in context.text
    assert context.hits[0].text == words


def test_a_message_that_was_superseded_is_marked(memory_with_vectors):
    memory = memory_with_vectors
    receipt, *_ = said(memory, "I live in Turin.", *FILLERS, time="2024-01-05")
    old = memory.remember(ANNA, "Anna lives in Turin.", source=[source(receipt)], source_scopes=HERE, time="2024-01-05")
    assert "until" not in memory.context(HERE, "Where do I live, in Turin?").text
    memory.update(ANNA, old.id, "Anna lives in Rome.")
    for format in ("xml", "markdown", "messages", "json"):
        text = memory.context(HERE, "Who lives in Turin?", format=format).text
        assert "I live in Turin." in text
        assert f"{utc_now():%Y-%m-%d}" in text.partition("I live in Turin.")[2].partition("}")[0].partition("\n")[0]
    assert "until" not in memory.context(HERE, "Who lives in Turin?", now="2024-07-01").text


def test_a_line_of_a_summary_that_was_superseded_is_left_out(path):
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        old = memory.remember(ANNA, "anna: I live in Turin.", kind="observation", time="2024-01-05")
        memory.summaries.write(ANNA, "2024-01-03: anna: I like tea.\n2024-01-05: anna: I live in Turin.")
        assert "Turin" in memory.context(HERE).text
        memory.update(ANNA, old.id, "anna: I live in Rome.")
        memory.summaries.write(ANNA, "Anna is a vet. I live in Turin. She likes tea.")
        text = memory.context(HERE).text
        assert "Turin" not in text
        assert "Rome" in text
        assert "Anna is a vet. She likes tea." in text


def test_a_superseded_message_that_says_more_is_not_marked(memory_with_vectors):
    memory = memory_with_vectors
    words = "I live in Turin with my wife Eva, who teaches the violin at the Regio on Mondays."
    receipt, *_ = said(memory, words, *FILLERS, time="2024-01-05")
    old = memory.remember(ANNA, "Anna lives in Turin.", source=[source(receipt)], source_scopes=HERE, time="2024-01-05")
    memory.update(ANNA, old.id, "Anna lives in Rome.")
    text = memory.context(HERE, "Who teaches the violin?").text
    assert "Eva" in text
    assert "until" not in text


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
