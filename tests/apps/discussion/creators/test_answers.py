"""Answers with keyword memories: what is accepted, repaired, reported and refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eunoe.apps.discussion.authors import NothingError
from eunoe.apps.discussion.creators import read_keyword_memories
from eunoe.errors import LlmError

WHOLE = {"title": "Move", "summary": "Anna moved to Rome.", "entities": ["Anna", "Rome"], "key_phrases": ["moved"]}


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(WHOLE),
        json.dumps([WHOLE]),
        json.dumps({"memories": [WHOLE]}),
        f"```json\n{json.dumps(WHOLE)}\n```",
        f"Here you are:\n```\n{json.dumps([WHOLE])}\n```\nAnything else?",
        f"<think>Which topics [are] there?</think>{json.dumps(WHOLE)}",
    ],
)
def test_an_object_or_a_list_is_accepted_fenced_or_with_words_around_it(answer: str) -> None:
    memories, notes = read_keyword_memories(answer)
    assert [(each.title, each.summary, each.entities, each.key_phrases) for each in memories] == [
        ("Move", "Anna moved to Rome.", ("Anna", "Rome"), ("moved",))
    ]
    assert notes == []


OTHER = {**WHOLE, "title": "Tea", "summary": "Bob likes tea."}
ONE, TWO = json.dumps(WHOLE), json.dumps(OTHER)


@pytest.mark.parametrize(
    "answer",
    [
        f"{ONE}\n{TWO}",
        f"{ONE},\n{TWO}",
        f"```json\n{ONE}\n```\nand\n```json\n{TWO}\n```",
        f"The part [1] says:\n[{ONE}]\n[{TWO}]",
        f"A draft: {ONE}\nNow all of it: [{ONE}, {TWO}]",
    ],
)
def test_several_values_are_all_read(answer: str) -> None:
    memories, notes = read_keyword_memories(answer)
    assert ([each.title for each in memories], notes) == (["Move", "Tea"], [])


@pytest.mark.parametrize(
    ("answer", "titles"),
    [
        (f"[{ONE}, {TWO[:40]}", ["Move"]),
        (f'{{"memories": [{ONE}, {TWO}', ["Move", "Tea"]),
        (f"{ONE}\n{TWO[:40]}", ["Move", "Tea"]),
        (f"```json\n[{ONE}, {TWO[:40]}\n```", ["Move"]),
    ],
)
def test_an_answer_that_breaks_off_is_reported(answer: str, titles: list[str]) -> None:
    memories, notes = read_keyword_memories(answer)
    assert [each.title for each in memories] == titles
    assert "broke off" in notes[0]


def test_what_else_an_object_has_is_kept() -> None:
    given = {**WHOLE, "topics": ["home"], "sentiment": "glad", "importance": 3, "supersedes": [1]}
    [memory] = read_keyword_memories(json.dumps(given)).memories
    assert (memory.topics, memory.sentiment, memory.supersedes) == (("home",), "glad", ("1",))
    assert memory.extra == {"importance": 3}


@pytest.mark.parametrize("missing", ["title", "summary", "entities", "key_phrases"])
@pytest.mark.parametrize("is_null", [True, False])
def test_an_object_that_lacks_something_is_repaired_and_reported(missing: str, is_null: bool) -> None:
    given: dict[str, Any] = {**WHOLE, missing: None}
    if not is_null:
        del given[missing]
    [memory], notes = read_keyword_memories(json.dumps(given))
    assert all([memory.title, memory.summary, memory.entities, memory.key_phrases])
    assert missing in notes[0]


def test_an_object_without_words_is_reported_and_the_others_are_kept() -> None:
    memories, notes = read_keyword_memories(json.dumps([{"entities": ["Anna"]}, WHOLE]))
    assert [each.title for each in memories] == ["Move"]
    assert "memory 1" in notes[0]


@pytest.mark.parametrize(
    "value",
    [
        42, "text", [1], ["Anna moved."], {"memories": "Anna moved."}, [[WHOLE]], {"entities": ["Anna"]},
        [{**WHOLE, "title": str(number)} for number in range(51)],
    ],
)  # fmt: skip
def test_an_answer_without_a_memory_is_refused_without_its_words(value: Any) -> None:
    with pytest.raises(LlmError) as caught:
        read_keyword_memories(json.dumps(value))
    assert not isinstance(caught.value, NothingError)
    assert "Anna" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        [], {}, None, [{}], {"memories": []}, {"memories": None}, {"memories": "none"}, {"memories": [{}]},
        {"memories": "Nothing to remember."}, {"title": " ", "summary": "", "entities": [], "key_phrases": []},
    ],
)  # fmt: skip
def test_an_answer_may_say_that_there_is_nothing(value: Any) -> None:
    with pytest.raises(NothingError):
        read_keyword_memories(json.dumps(value))


@pytest.mark.parametrize("answer", ["[", '{"memories": [', "```json\n["])
def test_an_answer_that_breaks_off_before_its_first_memory_does_not_say_that_there_is_none(answer: str) -> None:
    with pytest.raises(LlmError) as caught:
        read_keyword_memories(answer)
    assert not isinstance(caught.value, NothingError)


@pytest.mark.parametrize(
    ("odd", "read"),
    [
        ({"topics": "travel, food"}, {"topics": ("travel", "food")}),
        ({"sentiment": {"name": "glad", "score": 0.9}}, {"sentiment": "glad"}),
        ({"sentiment": ["glad", "calm"]}, {"sentiment": "glad calm"}),
        ({"title": ["Move", 2]}, {"title": "Move 2"}),
        ({"summary": {"text": "Anna moved to Rome."}}, {"summary": "Anna moved to Rome."}),
        ({"entities": "Anna"}, {"entities": ("Anna",)}),
        ({"entities": [{"name": "Anna", "kind": "person"}, ["Rome"], True]}, {"entities": ("Anna", "Rome")}),
        ({"entities": {"people": ["Anna"], "places": ["Rome"]}}, {"entities": ("Anna", "Rome")}),
        ({"name": "", "title": None}, {"title": "Anna moved to Rome."}),
        ({"entities": True}, {"entities": ("Anna", "Rome")}),
        ({"key_phrases": [{}]}, {"key_phrases": ("Anna moved", "Rome")}),
        ({"supersedes": 3}, {"supersedes": ("3",)}),
    ],
)
def test_an_odd_field_is_mended_and_the_others_are_kept(odd: dict[str, Any], read: dict[str, Any]) -> None:
    memories, notes = read_keyword_memories(json.dumps([{**WHOLE, **odd}, "a word", OTHER]))
    assert [memories[0].summary, memories[1].title] == ["Anna moved to Rome.", "Tea"]
    assert {name: getattr(memories[0], name) for name in read} == read
    assert list(odd)[-1] in notes[0]
    assert "memory 2" in notes[-1]
