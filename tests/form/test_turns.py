"""Turns as the kind model reads them, on the vectors of the real encoder: what is kept of them, and what binds."""

from collections.abc import Sequence

import numpy as np
import pytest

from eunoe.embed.encoder import Encoder
from eunoe.form.turns import (
    MIN_WORTH,
    Judgement,
    KindInput,
    KindModel,
    Sentence,
    TurnReader,
    TurnReading,
    load_kind_model,
)
from eunoe.model.arguments import KEPT_KINDS, TURN_KINDS
from eunoe.model.turn import Turn


@pytest.fixture(scope="module")
def reader() -> TurnReader:
    return TurnReader(Encoder())


def to_assistant(*texts: str) -> list[Turn]:
    """An assistant's turns and a user's by turns, the last of them the user's."""
    roles = ["assistant", "user"] * len(texts)
    return [
        Turn(f"m{place}", text, role)
        for place, (text, role) in enumerate(zip(texts, roles[-len(texts) :], strict=True))
    ]


def to_friend(*texts: str) -> list[Turn]:
    return [Turn(f"m{place}", text, "user", ("Ines", "Otis")[place % 2]) for place, text in enumerate(texts)]


def kept(reading: TurnReading) -> list[Sentence]:
    return [sentence for sentence in reading.sentences if sentence.worth >= MIN_WORTH]


@pytest.mark.parametrize(
    "text",
    [
        "Can you please answer in short bullet points from now on?",
        "metric only please",
        "No videos with my face",
        "keep a running total at the end of every answer",
        "give me the recommendation first and then the reasons",
        "stop apologising",
        "whenever you touch the schema, bump the version",
    ],
)
def test_a_standing_instruction_is_kept_however_it_is_put(reader: TurnReader, text: str) -> None:
    (reading,) = reader.read(to_assistant(text))
    assert [sentence.kind for sentence in kept(reading)] == ["instruction"]


@pytest.mark.parametrize(
    "text",
    [
        "just this once, use feet",
        "for this email be formal",
        "shorter please",
        "give me this as a table",
        "summarise the article in 3 bullets",
    ],
)
def test_a_wish_for_one_answer_does_not_bind(reader: TurnReader, text: str) -> None:
    (reading,) = reader.read(to_assistant(text))
    assert kept(reading) == []


@pytest.mark.parametrize(
    "text",
    [
        "Hi!",
        "Thanks a lot!",
        "haha you're the best",
        "I chose them 'cause they were nice",
        "If I lived in Rome I'd eat pasta every day",
        "Imagine I'm a pirate: arr, I live on a ship called Marlow",
        'He said "I live in Paris"',
        "Just kidding, I own three yachts",
        "I wish I lived in Spain",
    ],
)
def test_small_talk_jokes_quotes_and_suppositions_are_not_kept(reader: TurnReader, text: str) -> None:
    (reading,) = reader.read(to_assistant(text))
    assert kept(reading) == []


@pytest.mark.parametrize("text", ["Bring the blue bowl on Sunday.", "don't forget the keys", "never trust a plumber"])
def test_what_friends_ask_of_each_other_seldom_binds(reader: TurnReader, text: str) -> None:
    reading = reader.read(to_friend("Hi.", text))[-1]
    assert all(sentence.kind != "instruction" for sentence in reading.sentences)


def test_a_terse_turn_is_read_as_one_and_with_its_question(reader: TurnReader) -> None:
    reading = reader.read(to_friend("where r u", "Lunt Harbour. north. wet"))[-1]
    (sentence,) = kept(reading)
    assert sentence.text == "Lunt Harbour. north. wet"
    assert sentence.question
    assert sentence.question.text == "where r u"


THANKED = {
    "Thanks! I can't eat shellfish.": "I can't eat shellfish.",
    "Thanks! By the way, I can't eat shellfish.": "By the way, I can't eat shellfish.",
    "Great idea! I don't drink alcohol though.": "I don't drink alcohol though.",
    "Perfect. Thank you! My daughter is called Mia.": "My daughter is called Mia.",
}


@pytest.mark.parametrize("text", THANKED)
def test_thanks_before_a_sentence_take_nothing_from_it(reader: TurnReader, text: str) -> None:
    (sentence,) = kept(reader.read(to_assistant("Here you are.", text))[-1])
    assert sentence.text == THANKED[text]


def test_the_question_that_ends_a_terse_turn_is_left_out(reader: TurnReader) -> None:
    reading = reader.read(to_friend("so u sign", "since i was 6. ur folks alive?"))[-1]
    assert [sentence.text for sentence in reading.sentences] == ["since i was 6.", "ur folks alive?"]


def test_a_bare_word_that_answers_nothing_is_worth_nothing(reader: TurnReader) -> None:
    reading = reader.read(to_friend("we had such a good time", "8th"))[-1]
    assert [sentence.worth for sentence in reading.sentences] == [0.0]


def test_a_turn_that_speaks_of_what_it_does_not_name_is_worth_less(reader: TurnReader) -> None:
    unclear, clear = (
        reader.read(to_friend("Nice!", text))[-1] for text in ("I took it in May.", "I took a job in May.")
    )
    assert max(sentence.worth for sentence in unclear.sentences) < max(sentence.worth for sentence in clear.sentences)


def test_a_turn_is_read_alike_alone_and_among_many(reader: TurnReader) -> None:
    turns = to_assistant("Hello.", "My sister Eva works at Fiat.", "I see.", "metric only please")
    alone = [reader.read(turns[:2])[-1].sentences, reader.read(turns)[1].sentences]
    assert alone[0] == alone[1]


@pytest.mark.parametrize("text", ["", " ", "?", "\x00", "a" * 50_000, "🙂" * 300, "no " * 5_000, "it. " * 3_000])
def test_strange_turns_are_read(reader: TurnReader, text: str) -> None:
    (reading,) = reader.read([Turn("m", text, "user")])
    assert all(0 <= sentence.worth <= 1 for sentence in reading.sentences)


TURNS = [
    ("", "From now on answer me in metric units only.", "user"),
    ("Which wine do you like?", "I can't stand sweet wine, give me something dry.", "user"),
    ("Where were you born?", "Leipzig.", "user"),
    ("", "The dentist is on Thursday the 14th at nine.", "user"),
    ("Parquet or JSON lines?", "We took Parquet.", "user"),
    ("Is Gareth still in charge?", "Not any more, he left in spring and Oluchi has taken over.", "person"),
    ("", "What is the capital of Mongolia?", "user"),
    ("I passed the exam!", "haha wow, well done you", "person"),
]
STRANGE_TEXTS = [
    "?",
    "...",
    "1",
    "\n\n",
    "a" * 5000,
    "word " * 3000,
    "SELECT * FROM t;",
    "\u202egnp.exe",
    "half a \ud800 pair",
]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


@pytest.fixture(scope="module")
def model() -> KindModel:
    found = load_kind_model(Encoder.name)
    assert found, "the file was made for another encoder: run training/kinds.py"
    return found


def inputs(encoder: Encoder, turns: Sequence[tuple[str, str, str]]) -> list[KindInput]:
    own, before = encoder.layer_means([each[1] for each in turns]), encoder.layer_means([each[0] for each in turns])
    return [
        KindInput(text, role, said, vector, vector_before)
        for (said, text, role), vector, vector_before in zip(turns, own, before, strict=True)
    ]


def judge(model: KindModel, encoder: Encoder, turns: Sequence[tuple[str, str, str]]) -> list[Judgement]:
    judgements = model.judge(inputs(encoder, turns))
    assert None not in judgements
    return [each for each in judgements if each]


def test_plain_turns_have_their_kinds(model: KindModel, encoder: Encoder) -> None:
    judgements = judge(model, encoder, TURNS)
    assert [each.kind for each in judgements] == list(TURN_KINDS)
    kept = [each.keep for each in judgements if each.kind in KEPT_KINDS]
    assert min(kept) > max(each.keep for each in judgements if each.kind not in KEPT_KINDS)


def test_a_turn_is_judged_alike_in_any_batch(model: KindModel, encoder: Encoder) -> None:
    together = judge(model, encoder, TURNS * 40)
    assert together[: len(TURNS)] == [judge(model, encoder, [turn])[0] for turn in TURNS]
    assert together[-len(TURNS) :] == together[: len(TURNS)]


def test_what_was_asked_before_decides_what_a_bare_word_is(model: KindModel, encoder: Encoder) -> None:
    answer, reaction = judge(model, encoder, [("Where do you live now?", "Leipzig", "user"), ("", "ok", "user")])
    assert answer.kind in KEPT_KINDS
    assert reaction.kind == "nothing"


def test_an_assistant_gives_no_standing_instructions(model: KindModel, encoder: Encoder) -> None:
    said = ("How do I keep basil alive?", "Always water it from below, and never let it stand in the sun.", "assistant")
    (advice,) = judge(model, encoder, [said])
    assert advice.probabilities["instruction"] == 0


def test_without_a_vector_there_is_no_judgement(model: KindModel, encoder: Encoder) -> None:
    first, second = inputs(encoder, TURNS[:2])
    empty = second._replace(vector=np.zeros_like(second.vector))
    judged = model.judge([first._replace(vector=None), second, empty])
    assert [each is None for each in judged] == [True, False, True]
    assert model.judge([]) == []


@pytest.mark.parametrize("text", STRANGE_TEXTS)
def test_strange_texts_are_judged_or_left_out(model: KindModel, encoder: Encoder, text: str) -> None:
    (judgement,) = model.judge(inputs(encoder, [(text, text, "user")]))
    assert judgement is None or judgement.kind in TURN_KINDS


def test_vectors_of_another_encoder_have_no_model() -> None:
    assert load_kind_model("minilm") is None


def test_layer_means_are_the_same_whether_they_were_kept_or_not(encoder: Encoder) -> None:
    texts = [each[1] for each in TURNS]
    vectors, means = encoder.embed_with_means(texts)
    assert np.array_equal(encoder.layer_means(texts), means)
    encoder.clear_recent()
    assert np.array_equal(encoder.layer_means(texts), means)
    assert np.array_equal(Encoder().embed(texts), vectors)
