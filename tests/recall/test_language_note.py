"""Who asks in a language that the embedder does not read is told so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.letters import Letters

import eunoe
from eunoe.recall.query import can_read

ANNA = {"user": "anna"}
GERMAN = "Wo ist die Wohnung, die Anna gemietet hat?"
ENGLISH = "Where is the flat that Anna rented?"


class EnglishLetters(Letters):
    languages = ("English",)


class OddLetters(Letters):
    languages = 7


@pytest.fixture
def english(path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(path, embedder=EnglishLetters()) as memory:
        memory.remember(ANNA, "Anna rented a flat in Berlin.")
        memory.remember(ANNA, "Anna hat eine Wohnung in Berlin gemietet.")
        memory.remember(ANNA, "Berlin!")
        yield memory


def test_a_question_in_another_language_has_a_note(english: eunoe.Memory) -> None:
    (note,) = english.recall(ANNA, GERMAN).notes
    assert note.startswith("letters reads English: this question (German) was matched by its words and in part")
    assert "docs/languages.md" in note
    assert english.context(ANNA, GERMAN).notes == (note,)


@pytest.mark.parametrize("question", [ENGLISH, "ok?", "Berlin", "Anna Müller?", "flat_42", "Who is Анна?"])
def test_other_questions_have_none(english: eunoe.Memory, question: str) -> None:
    assert english.recall(ANNA, question).notes == ()


def test_where_no_embedder_reads_the_question_there_is_no_note(english: eunoe.Memory) -> None:
    assert english.recall(ANNA, GERMAN, recipe="lexical").notes == ()
    assert english.recall(ANNA, GERMAN, vector=[1.0] * 10).notes == ()
    assert not any("reads" in note for note in english.recall({"user": "bob"}, GERMAN).notes)


@pytest.mark.parametrize("embedder", ["none", Letters(), OddLetters()], ids=["none", "unknown", "odd"])
def test_an_embedder_that_does_not_say_what_it_reads(path: Path, embedder: object) -> None:
    with eunoe.open(path, embedder=embedder) as memory:
        memory.remember(ANNA, "Anna hat eine Wohnung in Berlin gemietet.")
        assert memory.recall(ANNA, GERMAN).notes == ()
        assert memory.status().embedder_languages == ()


@pytest.mark.parametrize("embedder", ["static", "eunoe"])
def test_the_built_in_embedders_read_english(path: Path, embedder: str) -> None:
    with eunoe.open(path, embedder=embedder) as memory:
        memory.remember(ANNA, "Anna rented a flat in Berlin.")
        assert memory.status().embedder_languages == ("English",)
        assert len(memory.recall(ANNA, GERMAN).notes) == 1
        assert memory.recall(ANNA, ENGLISH).notes == ()


def test_status_counts_the_languages_of_the_latest_memories(english: eunoe.Memory) -> None:
    assert english.status().languages == {"English": 1, "German": 1, "unclear": 1}
    english.observe(ANNA, [{"content": f"Это сообщение номер {number}."} for number in range(120)])
    assert english.status().languages == {"Cyrillic script": 100}
    assert english.restricted(scopes=[ANNA]).status().languages == {}


def test_what_reads_latin_script_alone_reads_no_other() -> None:
    latin = ["Who fixed it?", "Größe der Straße", "Zażółć gęślą jaźń", "Кто WeasyPrint localStorage", "7 + 7 = ?", "🙂"]
    others = [
        "Кто исправил часы в Postgres?",
        "誰が時計を直した?",
        "من أصلح الساعة؟",
        "谁画了?",
        "몽골의 수도는?",
        "Ποιος;",
    ]
    assert [can_read(["English"], question) for question in latin] == [True] * len(latin)
    assert [can_read(["English", "German"], question) for question in others] == [False] * len(others)
    assert all(can_read([], question) and can_read(["English", "Russian"], question) for question in others)
