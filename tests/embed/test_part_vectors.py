"""Long texts have a vector for each part."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.letters import Letters
from tests.support.long_texts import FILLER, long_text

import eunoe
from eunoe.embed.store_embedder import BATCH_SIZE
from eunoe.text.sentences import split_into_parts

ANNA = {"user": "anna"}


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
