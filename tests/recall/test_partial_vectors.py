"""Where some rows have a vector and some do not, neither keep the others from being found."""

import numpy as np

from eunoe.embed.encoder import Encoder
from eunoe.index.stream import IndexEntry, StreamIndex
from eunoe.recall.ranking import Candidate, find_candidates

QUESTION = "Which instrument does Anna play?"
WORDS = "Anna does play an instrument"
MEANING = "She is a cellist"
NEAR, FAR = 0.6, 0.3
"""Cosines with the question, of what answers it and of what does not."""


def vector(cosine: float) -> np.ndarray:
    return np.array([cosine, np.sqrt(1 - cosine**2)], np.float32)


def ask(*entries: tuple[str, float | None]) -> list[Candidate]:
    """Ask atoms, each with its cosine with the question or without a vector."""
    index = StreamIndex()
    index.model = Encoder.name
    index.apply(
        IndexEntry(seq, text, "fact", text, vector=None if cosine is None else vector(cosine))
        for seq, (text, cosine) in enumerate(entries, 1)
    )
    return find_candidates([index], QUESTION, vector(1.0), model=Encoder.name)


def noise(cosine: float | None) -> list[tuple[str, float | None]]:
    return [(f"number {number} of the list", cosine) for number in range(20)]


def test_words_are_found_beside_vectors() -> None:
    found = ask(*noise(FAR), (WORDS, None), *((f"{MEANING} {number}", NEAR) for number in range(5)))
    assert found[0].id == WORDS
    assert found[1].id.startswith(MEANING)


def test_a_meaning_is_found_beside_words() -> None:
    found = ask(*noise(None), *((f"{word} plays", None) for word in ("Anna", "Ben", "Cleo")), (MEANING, NEAR))
    assert MEANING in [each.id for each in found[:2]]


def test_reasons_are_those_of_the_weights_that_were_used() -> None:
    found = {each.id: each for each in ask((WORDS, None), (MEANING, NEAR))}
    assert [reason.name for reason in found[WORDS].reasons] == ["lexical"]
    assert [reason.name for reason in found[MEANING].reasons] == ["dense"]
