"""Documents: what is read, how they are known, and that a long one is the same again when its parts are joined."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.apps.projects.documents import (
    MAX_PART_CHARACTERS,
    MAX_UNSPLIT_CHARACTERS,
    Document,
    add_title,
    matching_texts,
    parse_document,
    part_of,
    split_text,
)
from eunoe.errors import InputError
from eunoe.model.atom import Atom, parse_item

WORDS = st.sampled_from(["word ", "A sentence. ", "line\n", "\n\n", " " * 900, "x" * 700, "名前。", "é", "\r\n", "🙂"])


def facts(document: Document) -> list[Atom]:
    return [parse_item(item)[0] for item in document.items]


@given(st.lists(WORDS, min_size=1, max_size=300), st.integers(1, 60))
def test_parts_joined_are_the_text_again_and_each_says_something(words: list[str], repeats: int) -> None:
    text = "".join(words) * repeats
    if not text.strip():
        return
    parts = split_text(text)
    assert "".join(parts) == text
    assert all(part.strip() for part in parts)
    assert (len(parts) == 1) or len(text) > MAX_UNSPLIT_CHARACTERS


def test_parts_are_short_and_end_where_a_sentence_ends() -> None:
    parts = split_text("One more sentence of the same kind. " * 1000)
    assert len(parts) > 5
    assert all(MAX_PART_CHARACTERS // 2 <= len(part) <= MAX_PART_CHARACTERS for part in parts[:-1])
    assert all(part.endswith("kind. ") for part in parts)


def test_a_text_without_any_break_is_cut_all_the_same() -> None:
    parts = split_text("x" * (MAX_UNSPLIT_CHARACTERS + 2 * MAX_PART_CHARACTERS + 1))
    assert [len(part) for part in parts] == [MAX_PART_CHARACTERS] * 4 + [1]


def test_a_document_is_known_by_its_exact_words() -> None:
    assert parse_document("Tea.").id == parse_document({"text": "Tea."}).id
    assert len({parse_document(text).id for text in ("Tea.", "tea.", "Tea", "Tea. ", "Tèa.", "Te\u0300a.")}) == 6


def test_a_ticket_has_documents_of_its_own() -> None:
    first, again, second, none = (
        parse_document({"text": "Same words.", **more}) for more in ({"ticket": 1}, {"ticket": "1"}, {"ticket": 2}, {})
    )
    assert first.id == again.id
    assert len({first.id, second.id, none.id}) == 3


@pytest.mark.parametrize(
    ("title", "text", "stored"),
    [
        ("Tea", "It is hot.", "Tea\n\nIt is hot."),
        ("Tea", "Tea\n\nIt is hot.", "Tea\n\nIt is hot."),
        ("Tea", "# Tea\nIt is hot.", "# Tea\nIt is hot."),
        ("Tea", "Tea is hot.", "Tea\n\nTea is hot."),
        ("", "It is hot.", "It is hot."),
    ],
)
def test_a_title_stands_once_above_the_text(title: str, text: str, stored: str) -> None:
    assert add_title(title, text) == stored


def test_a_short_document_is_one_fact() -> None:
    (atom,) = facts(parse_document({"text": "Hot.", "id": "t", "title": " Green\nTea ", "metadata": {"by": "Ann"}}))
    assert (atom.id, atom.text, dict(atom.metadata)) == ("t", "Green Tea\n\nHot.", {"by": "Ann", "title": "Green Tea"})
    assert part_of(atom) == ("t", 1, 1)


def test_every_part_of_a_long_document_knows_where_it_belongs() -> None:
    text = "A line.\n" * 2000
    document = parse_document({"text": text, "id": "long", "ticket": 9, "metadata": {"by": "Ann"}})
    parts = facts(document)
    assert "".join(part.text for part in parts) == text
    assert [part_of(part) for part in parts] == [("long", number, 4) for number in range(1, 5)]
    assert [part.metadata["ticket"] for part in parts] == ["9"] * 4
    assert [part.metadata.get("by") for part in parts] == ["Ann", None, None, None]


def test_a_document_says_its_words_with_and_without_its_title() -> None:
    (atom,) = facts(parse_document({"text": "It is hot.", "title": "Tea"}))
    assert matching_texts(atom, atom.text, {"It is hot.", "Tea", "other"}) == ["It is hot."]
    assert matching_texts(atom, atom.text, {"Tea\n\nIt is hot."}) == ["Tea\n\nIt is hot."]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        (7, "not a text or a dict"),
        (None, "not a text or a dict"),
        ({"title": "Tea"}, "no 'text'"),
        ({"text": None}, "must be text"),
        ({"text": "Tea.", "body": "x"}, "unknown field body"),
        ({"text": "Tea.", "id": " "}, "blank"),
        ({"text": "Tea.", "id": True}, "must be text"),
        ({"text": "Tea.", "title": 4}, "must be text"),
        ({"text": "Tea.", "metadata": [1]}, "must be a dict"),
        ({"text": "Tea.", "metadata": {"document": 1}}, "may not have document"),
        ({"text": "Tea.", "metadata": {"memory_key": "x"}}, "may not have memory_key"),
        ({"text": "lone \ud800"}, "surrogate"),
    ],
)
def test_what_makes_no_sense_is_refused_and_named(value: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_document(value)
