"""Long texts have a vector for each part, and are as near to a question as the nearest part."""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.letters import Letters

import eunoe
from eunoe.embed.store_embedder import BATCH_SIZE
from eunoe.index.dense import DenseIndex
from eunoe.text.parts import LONG_TEXT_WORDS, MAX_PARTS, PART_WORDS, split_into_parts
from eunoe.text.sentences import word_count

ANNA = {"user": "anna"}
FILLER = (
    "The meeting went over the usual points about the budget for the autumn and the plans for the new offices. "
    "Several people spoke about the heating and about who orders the paper for the printers on the second floor. "
)


def letters_of(text: str) -> str:
    return re.sub(r"\s", "", text)


def long_text(middle: str) -> str:
    return FILLER * 9 + middle + " " + FILLER * 3


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


def test_what_stands_in_the_middle_of_a_long_text_is_found_by_its_meaning(path: Path) -> None:
    text = long_text("My sister Ada keeps two goats behind the house.")
    with eunoe.open(path, form=False) as memory:
        memory.observe(ANNA, [text, *(f"A zoo opened in town {number}. {FILLER * 12}" for number in range(6))])
        (best,) = memory.recall(ANNA, "Which farm animals does her sibling own?", recipe="dense", limit=1)
        assert best.text == text


def test_each_part_is_embedded_once_and_belongs_to_one_item(path: Path) -> None:
    letters = Letters()
    text = long_text("Ada keeps goats.")
    with eunoe.open(path, embedder=letters, form=False) as memory:
        memory.observe(ANNA, [text, "short", text])
        assert letters.seen == [*split_into_parts(text), "short"]
        assert memory.status().vectors == {"letters": 3}
        assert memory.status().unembedded == 0


def test_no_embedder_is_given_more_than_a_batch_at_a_time(path: Path) -> None:
    batches: list[int] = []

    def count_texts(texts: list[str]) -> list[list[float]]:
        batches.append(len(texts))
        return [[1.0, float(len(text))] for text in texts]

    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, [FILLER * 60] * 10 + [f"{number} {FILLER * 60}" for number in range(10)])
        memory.admin.reembed(count_texts)
    assert max(batches) <= BATCH_SIZE < sum(batches)


def scores(memory: eunoe.Memory) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score, 6)) for hit in memory.recall(ANNA, "jjjj hhhh", recipe="dense")]


def test_parts_are_the_same_from_the_file_and_from_another_model_and_back(path: Path) -> None:
    texts = [long_text("jjj jjj hh hhh jjj"), "short and jj", long_text("bbb")]
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        memory.observe(ANNA, texts)
        first = scores(memory)
        assert len(first) == 3
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        assert scores(memory) == first
        memory.admin.reembed(Letters("others", "klmnopqrst"))
        assert scores(memory) != first
        memory.admin.reembed(Letters())
        assert scores(memory) == first


def test_a_vector_of_the_callers_own_stands_for_the_whole_text(path: Path) -> None:
    vector = [1.0] + [0.0] * 9
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        memory.observe(ANNA, long_text("jjj"))
        receipt = memory.remember(ANNA, long_text("hhh"), vector=vector)
        (best,) = memory.recall(ANNA, "anything", vector=vector, recipe="dense", limit=1)
        assert (best.id, round(best.score, 3)) == (receipt.id, 1.0)


@pytest.mark.parametrize("damaged", [b"", b"abc", b"\0" * 22, b"\0" * 38])
def test_a_damaged_vector_is_missing_and_costs_no_other_row_its_own(path: Path, damaged: bytes) -> None:
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        memory.observe(ANNA, [long_text("jjj"), "aaa", "jjj hhh", "ccc"])
        whole = scores(memory)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE vectors SET data = ? WHERE seq = 2", [damaged])
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        ids = [item.id for item in memory.list(ANNA).items]
        assert scores(memory) == [(id, score) for id, score in whole if id != ids[1]]


def test_forgetting_takes_all_parts(path: Path) -> None:
    with eunoe.open(path, embedder=Letters(), form=False) as memory:
        receipt = memory.observe(ANNA, long_text("jjj"))[0]
        memory.forget(ANNA, receipt.id)
        assert memory.status().vectors == {"letters": 0}
        assert memory.recall(ANNA, "jjjj hhhh", recipe="dense") == []


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


def vector(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def cosines(dense: DenseIndex) -> list[float]:
    found = dense.cosines(vector(1, 0))
    assert found is not None
    return [round(float(cosine), 3) for cosine in found]


def test_a_row_is_as_near_as_its_nearest_part() -> None:
    dense = DenseIndex()
    dense.reserve(3)
    dense.put(np.arange(3, dtype=np.int32), [vector(0, 1), np.stack([vector(0, 1), vector(3, 4), vector(0, 2)]), None])
    assert cosines(dense) == [0.0, 0.6, 0.0]
    assert dense.present.tolist() == [True, True, False]


def test_parts_go_with_their_row() -> None:
    dense = DenseIndex()
    dense.reserve(3)
    dense.put(np.arange(2, dtype=np.int32), [np.eye(2, dtype=np.float32)[::-1]] * 2)
    assert cosines(dense) == [1.0, 1.0, 0.0]
    dense.put(np.array([0], np.int32), [vector(0, 1)])
    assert cosines(dense) == [0.0, 1.0, 0.0]
    dense.put(np.array([1], np.int32), [None])
    dense.put(np.array([2], np.int32), [np.eye(2, dtype=np.float32)[::-1]])
    assert cosines(dense) == [0.0, 0.0, 1.0]
    assert dense.present.tolist() == [True, False, True]


def test_a_part_without_a_vector_is_passed_over() -> None:
    dense = DenseIndex()
    dense.reserve(2)
    blank = np.zeros(2, np.float32)
    dense.put(np.arange(2, dtype=np.int32), [np.stack([blank, vector(1, 0), blank]), np.stack([blank, blank])])
    assert cosines(dense) == [1.0, 0.0]
    assert dense.present.tolist() == [True, False]


@pytest.mark.parametrize("sign", [".", "!", '"', '."', "…", "。"])
def test_a_run_of_signs_is_read_once(sign: str) -> None:
    """Progress dots in a log: reading them takes a step for each sign, not for each pair."""
    text = "word " * 200 + sign * 100_000 + "x"
    assert letters_of("".join(split_into_parts(text))) == letters_of(text)
