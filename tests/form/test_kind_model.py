"""The kind model on the vectors of the real encoder."""

from collections.abc import Sequence

import numpy as np
import pytest

from eunoe.embed.encoder import Encoder
from eunoe.form.turns import Judgement, KindInput, KindModel, load_kind_model
from eunoe.model.arguments import KEPT_KINDS, TURN_KINDS

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


def test_probabilities_are_shares_of_one(model: KindModel, encoder: Encoder) -> None:
    for each in judge(model, encoder, TURNS):
        assert tuple(each.probabilities) == TURN_KINDS
        assert sum(each.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert each.probabilities[each.kind] == max(each.probabilities.values())
        assert 0 <= each.keep <= 1


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


def test_a_turn_before_without_a_vector_is_left_out(model: KindModel, encoder: Encoder) -> None:
    (turn,) = inputs(encoder, TURNS[3:4])
    assert model.judge([turn._replace(vector_before=None)]) == model.judge([turn])


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
