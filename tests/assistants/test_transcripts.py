"""Transcripts are read from where they were left, and only what was said is taken."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from eunoe.assistants.hook import strip_private
from eunoe.assistants.intake import Place, Saying, clean, read_transcript


def line(role: str, content: object, **fields: Any) -> str:
    row = {"type": role, "uuid": "u", "timestamp": "2026-11-16T08:00:00.000Z", "message": {"content": content}}
    return json.dumps(row | fields) + "\n"


def texts(sayings: list[Saying]) -> list[tuple[str, str]]:
    return [(saying.role, saying.text) for saying in sayings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing to hide", "nothing to hide"),
        ("a <private>b</private> c", "a  c"),
        ("a <PRIVATE reason='x'>b</Private > c", "a  c"),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("a <private>b", "a "),
        ("a <private>b <private>c</private> d", "a "),
        ("b</private> c", " c"),
        ("a <private>b</private> c <private>d</private> e", "a  c  e"),
        ("a <private", "a "),
        ("a <private>b</private", "a "),
        ("privately <privates>", "privately <privates>"),
    ],
)
def test_what_is_private_is_left_out(text: str, expected: str) -> None:
    assert strip_private(text) == expected


def test_private_may_span_parts_of_a_message(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    parts = [{"type": "text", "text": "a <private>b"}, {"type": "image"}, {"type": "text", "text": "c</private> d"}]
    path.write_text(line("user", parts))
    assert texts(read_transcript(path, Place())[0]) == [("user", "a  d")]


def test_only_what_was_said_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        json.dumps({"type": "summary", "summary": "We talked."})
        + "\n"
        + line("user", "I moved to Rome.")
        + line("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Noted."}])
        + line("assistant", [{"type": "tool_use", "name": "mcp__eunoe__recall", "input": {"query": "x"}}])
        + line("user", [{"type": "tool_result", "content": [{"type": "text", "text": "Anna likes tea."}]}])
        + line("user", "Caveat", isMeta=True)
        + line("user", "inner", isSidechain=True)
        + line("user", "This session is being continued", isCompactSummary=True)
        + line("user", "<command-name>/clear</command-name>")
        + line("user", "<local-command-stdout>ok</local-command-stdout>")
        + line("user", "[Request interrupted by user]")
        + line("user", "<system-reminder>Be brief.</system-reminder>And my dog is Bruno.")
        + line("system", "hook ran")
        + "not json\n[1]\n{}\n"
        + line("user", None)
        + line("user", 5)
        + json.dumps({"type": "user", "message": "text"})
        + "\n"
    )
    sayings, _, _ = read_transcript(path, Place())
    assert texts(sayings) == [
        ("user", "I moved to Rome."),
        ("assistant", "Noted."),
        ("user", "And my dog is Bruno."),
    ]


def test_what_was_recalled_is_not_said_again() -> None:
    context = '<MemoryContext description="x">\n<UserMemory>\n- Anna likes tea\n</UserMemory>\n</MemoryContext>'
    assert clean(f"Before {context} after") == "Before  after"
    assert clean("Before <MemoryContext>- Anna likes tea") == "Before"


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(line("user", "one"))
    first, place, _ = read_transcript(path, Place())
    half = line("user", "three")
    with path.open("a") as file:
        file.write(line("user", "two") + half[:20])
    second, place, is_anew = read_transcript(path, place)
    with path.open("a") as file:
        file.write(half[20:])
    third, place, _ = read_transcript(path, place)
    assert [texts(each) for each in (first, second, third)] == [
        [("user", "one")],
        [("user", "two")],
        [("user", "three")],
    ]
    assert not is_anew
    assert read_transcript(path, place)[0] == []


@pytest.mark.parametrize("content", [line("user", "new"), line("user", "new") + line("user", "x" * 3000)])
def test_one_that_was_cut_or_rewritten_is_read_from_the_beginning(tmp_path: Path, content: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(line("user", "one") * 5)
    _, place, _ = read_transcript(path, Place())
    path.write_text(content)
    sayings, _, is_anew = read_transcript(path, place)
    assert is_anew
    assert sayings[0].text == "new"


def test_one_that_is_gone_says_nothing_and_keeps_its_place(tmp_path: Path) -> None:
    assert read_transcript(tmp_path / "gone", Place(9, "x")) == ([], Place(9, "x"), False)
    os.mkfifo(tmp_path / "pipe")
    assert read_transcript(tmp_path / "pipe", Place(9, "x")) == ([], Place(9, "x"), False)
    assert read_transcript(tmp_path / "\0", Place(9, "x")) == ([], Place(9, "x"), False)
    assert read_transcript(tmp_path, Place(9, "x")) == ([], Place(9, "x"), False)
