"""Huge texts: their beginning is searched at once, the rest behind the reply, and then the answer is exact."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eunoe
from eunoe.index import cache
from eunoe.index.lexical import LexicalIndex, count_terms, pieces
from eunoe.index.stream import PIECE_CHARACTERS, IndexEntry, StreamIndex
from eunoe.memory import Memory

HERE = "user=anna"
WORDS = ["garden", "bridge", "yesterday", "2021", "running", "snake_case", "src/a/b.py", "Maßen", "x1", "don't", "数据"]


def huge(last: str, size: int = 3 * PIECE_CHARACTERS) -> str:
    chosen = random.Random(7).choices(WORDS, k=size // 7)
    return f"{' '.join(chosen)} {last}"


@pytest.fixture
def memory(path: Path) -> Any:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        yield memory


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Holds the work behind the reply until it is opened, at its second piece."""
    opened, began = threading.Event(), threading.Event()
    count = cache.count_terms

    def slow(text: str, language: int) -> Any:
        began.set()
        assert opened.wait(60)
        return count(text, language)

    monkeypatch.setattr(cache, "count_terms", slow)
    yield opened, began
    opened.set()


def texts(memory: Memory, question: str) -> list[str]:
    return [hit.text[-20:] for hit in memory.recall(HERE, question)]


def test_the_beginning_is_searched_before_the_reply_and_the_end_behind_it(memory: Memory, gate: Any) -> None:
    opened, began = gate
    memory.observe(HERE, [f"Zanzibar first. {huge('Timbuktu last.')}", "My dog is called Bruno."])
    hits = memory.recall(HERE, "Zanzibar")
    assert hits[0].text.startswith("Zanzibar")
    assert any("still being indexed" in note for note in hits.notes)
    assert memory.status().unindexed == 1
    assert began.wait(60)
    assert texts(memory, "What is the dog called?")[0] == "dog is called Bruno."
    assert not memory.recall(HERE, "Timbuktu")
    opened.set()
    assert memory.flush()
    hits = memory.recall(HERE, "Timbuktu")
    assert hits[0].text.endswith("Timbuktu last.")
    assert hits.notes == ()
    assert memory.status().unindexed == 0


def test_a_context_says_so_too(memory: Memory, gate: Any) -> None:
    memory.observe(HERE, [f"Zanzibar first. {huge('Timbuktu last.')}"])
    assert any("still being indexed" in note for note in memory.context(HERE, "Where is Zanzibar?").notes)


def test_flush_gives_up_in_time_and_close_waits_for_no_text(path: Path, gate: Any) -> None:
    opened, began = gate
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.observe(HERE, [huge("Timbuktu last.")])
        memory.recall(HERE, "garden")
        assert began.wait(60)
        assert not memory.flush(0.01)
        engine = memory._engine
        threading.Timer(0.05, opened.set).start()
    assert engine.indexes.unfinished == 1  # it stopped at the next piece


def test_the_whole_is_indexed_as_if_at_once() -> None:
    """Terms, counts, lengths, flags and languages are those of an index that was made in one go. The language is that
    of the beginning."""
    short = ["My dog is called Bruno.", "Das ist nicht der Hund von gestern."]
    all_texts = [short[0], huge("Timbuktu last."), short[1], f"Der Hund ist nicht in Rom und {huge('Bern')}"]
    index = StreamIndex()
    entries = [IndexEntry(seq, str(seq), "message", text) for seq, text in enumerate(all_texts, 1)]
    index.apply(entries, 1)
    assert list(index.unfinished) == [2, 4]
    for seq in list(index.unfinished):
        whole = all_texts[seq - 1]
        counts = sum(
            (count_terms(part, index.language_of(seq)) for part in pieces(whole, PIECE_CHARACTERS)), cache.Counter()
        )
        index.finish_text(seq, whole, counts)
    assert not index.unfinished
    at_once = LexicalIndex()
    at_once.add(range(len(all_texts)), all_texts)
    for row in range(len(all_texts)):
        assert row_terms(index.lexical, row) == row_terms(at_once, row)
    for column in ("length", "flags", "language"):
        assert np.array_equal(index.lexical.rows[column], at_once.rows[column])
    assert index.lexical.languages == at_once.languages
    assert index.lexical.row_count == at_once.row_count


def row_terms(lexical: LexicalIndex, row: int) -> dict[str, int]:
    names = lexical.keys
    span = slice(int(lexical.rows["start"][row]), int(lexical.rows["end"][row]))
    terms, counts = lexical.postings["term"][span].tolist(), lexical.postings["count"][span].tolist()
    return {names[term]: count for term, count in zip(terms, counts, strict=True)}


def test_a_delta_does_not_begin_it_again(memory: Memory) -> None:
    id = memory.remember(HERE, huge("Timbuktu last.")).id
    memory.recall(HERE, "garden")
    assert memory.flush()
    memory.pin(HERE, id)
    memory.remember(HERE, "Anna has a dog.")
    assert memory.recall(HERE, "Timbuktu")[0].id == id
    assert memory.status().unindexed == 0


def test_what_is_forgotten_meanwhile_is_not_indexed(memory: Memory, gate: Any) -> None:
    opened, began = gate
    receipts = memory.observe(HERE, [huge("Timbuktu last."), "My dog is called Bruno."])
    memory.recall(HERE, "garden")
    assert began.wait(60)
    report = memory.forget(HERE, receipts[0].id, verify=True)
    assert report.verified
    opened.set()
    assert memory.flush()
    assert not memory.recall(HERE, "Timbuktu")
    indexes = memory._engine.indexes
    assert all("timbuktu" not in slot.index.lexical.vocabulary for slot in indexes._slots.values())
    assert memory.status().unindexed == 0


@pytest.mark.parametrize(
    "text",
    [
        "x" * 350_000,
        "数" * 250_000,
        " " * 250_000,
        "a " * 150_000,
        "\n" * 99_999 + "end of it" + " " * 100_001 + "last",
    ],
    ids=["one word", "no spaces", "blank", "short words", "gaps"],
)
def test_any_text_is_cut_into_pieces_that_are_the_whole(text: str, memory: Memory) -> None:
    parts = list(pieces(text, PIECE_CHARACTERS))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= PIECE_CHARACTERS
    if " " in text:
        assert [word for part in parts for word in part.split()] == text.split()
    if text.strip():
        memory.observe(HERE, [text])
        memory.recall(HERE, "last")
        assert memory.flush()
        assert memory.status().unindexed == 0


def test_an_ordinary_text_is_indexed_at_once(memory: Memory) -> None:
    memory.observe(HERE, [huge("Timbuktu last.", PIECE_CHARACTERS - 10_000)])
    assert memory.recall(HERE, "Timbuktu").notes == ()
    assert memory.status().unindexed == 0
