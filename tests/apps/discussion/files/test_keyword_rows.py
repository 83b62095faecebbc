import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.discussion_files import DATE, TEA

from eunoe.apps.discussion.files.database import Row, read_row, write_row
from eunoe.apps.discussion.model import KeywordMemory

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["title", "summary", "entities", "key_phrases", "topics", "sentiment", "source"])
METADATA = st.dictionaries(NAMES, VALUES | st.lists(TEXT), max_size=7).map(json.dumps) | TEXT
DATES = st.sampled_from([DATE, "2025-09-14", "2025-09-14T12:00:00Z", "yesterday", ""])


@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), METADATA, DATES)
def test_every_row_comes_back(text: str, metadata: str, date: str) -> None:
    row = Row(7, text, date, metadata)
    memory, _ = read_row(row)
    assert memory is not None
    assert write_row(memory) == row


def test_a_regular_row_is_read_into_its_fields() -> None:
    fields = {**TEA, "sentiment": "glad", "topics": ["drinks"], "source": "chat"}
    memory, note = read_row(Row(3, TEA["summary"], DATE, json.dumps(fields)))
    assert memory == KeywordMemory(
        title="Tea",
        summary="Anna likes green tea.",
        entities=("Anna",),
        key_phrases=("green tea",),
        topics=("drinks",),
        sentiment="glad",
        extra={"file_row": [3, TEA["summary"], DATE, json.dumps(fields)]},
        time=datetime(2025, 9, 14, 12, 34, 56, 123456, UTC),
    )
    assert note == ""


@pytest.mark.parametrize(
    ("metadata", "note"),
    [
        ("", "has no metadata"),
        ("{half", "has metadata that is no JSON"),
        ("[1]", "has no metadata"),
        ('{"title": "\\ud800"}', "has metadata that is no JSON"),
        (json.dumps({**TEA, "entities": None}), "has an odd entities"),
        (json.dumps({"title": "Tea", "summary": "Anna likes green tea."}), "has no entities, has no key_phrases"),
    ],
)
def test_an_odd_row_is_kept_and_told(metadata: str, note: str) -> None:
    memory, told = read_row(Row(3, TEA["summary"], DATE, metadata))
    assert memory is not None
    assert memory.summary == TEA["summary"]
    assert told == f"row 3 {note}: it is kept as it is"


def test_a_row_without_words_is_told() -> None:
    assert read_row(Row(3, " ", DATE, json.dumps({"entities": ["Anna"]}))) == (
        None,
        "row 3 holds no words: it is left out",
    )


def test_words_are_found_where_the_text_is_blank() -> None:
    memory, _ = read_row(Row(3, "", DATE, json.dumps(TEA)))
    assert memory is not None
    assert memory.summary == TEA["summary"]
    assert write_row(memory).text == ""


def test_a_memory_made_here_becomes_a_row() -> None:
    time = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    memory = KeywordMemory(title="Tea", summary="Green.", entities=("Anna",), topics=("drinks",), time=time)
    row = write_row(memory)
    assert (row.id, row.text, row.date) == (0, "Green.", "2025-01-02T03:04:05+00:00")
    assert json.loads(row.metadata) == {
        "title": "Tea",
        "summary": "Green.",
        "entities": ["Anna"],
        "key_phrases": [],
        "topics": ["drinks"],
    }


def test_a_row_that_was_put_right_keeps_what_else_it_says() -> None:
    memory, _ = read_row(Row(3, TEA["summary"], DATE, json.dumps({**TEA, "mood": "glad"})))
    assert memory
    row = write_row(replace(memory, summary="Anna likes coffee."))
    assert (row.id, row.text, row.date) == (3, "Anna likes coffee.", DATE)
    assert json.loads(row.metadata) == {**TEA, "summary": "Anna likes coffee.", "mood": "glad"}
