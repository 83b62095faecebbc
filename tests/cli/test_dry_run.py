"""`eunoe form --dry-run`: what would be learned from a text, a file or a conversation."""

from __future__ import annotations

import getpass
import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

import eunoe

ANNA = "user=anna"
TALK = "I am allergic to peanuts.\nWhat time is it?\n"


def test_a_text_alone(cli: Cli, store: Path) -> None:
    result = cli("form", "--dry-run", TALK)
    assert result.code == 0
    assert "1 memory would be learned, 1 message passed over; nothing was kept" in result.out
    assert f"{getpass.getuser()}: I am allergic to peanuts." in result.out
    assert "it only asks" in result.out
    with eunoe.open(store) as memory:
        assert memory.scopes() == []


def test_as_json(cli: Cli) -> None:
    found = cli("form", "--dry-run", TALK, "--json").json
    assert list(found) == ["memories", "doubtful", "passed_over", "corrected", "notes"]
    assert {memory["text"] for memory in found["memories"]} == {f"{getpass.getuser()}: I am allergic to peanuts."}
    (message,) = found["passed_over"]
    assert (message["text"], message["reason"]) == ("What time is it?", "it only asks")


def test_it_says_how_sure_it_is(cli: Cli) -> None:
    out = cli("form", ANNA, "I am allergic to peanuts.\nThe garage door is broken since Monday.", "--dry-run").out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any(" sure 100% anna: I am allergic" in line for line in lines)
    assert any(re.search(r" doubtful \d+% anna: The garage door", line) for line in lines)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chat.txt", TALK),
        ("chat.jsonl", '{"role": "user", "content": "I am allergic to peanuts."}\n{"content": "What time is it?"}\n'),
        ("chat.json", json.dumps([{"content": "I am allergic to peanuts."}, {"content": "What time is it?"}])),
        ("chat", TALK),
    ],
)
@pytest.mark.parametrize("scope", [[], [ANNA]])
def test_a_file(cli: Cli, tmp_path: Path, name: str, content: str, scope: list[str]) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    found = cli("form", *scope, str(path), "--dry-run", "--json").json
    assert len({memory["text"] for memory in found["memories"]}) == 1
    assert [message["text"] for message in found["passed_over"]] == ["What time is it?"]


def test_lines_with_speakers(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("Mara: I am allergic to peanuts.\nBen: Oh no!\n", encoding="utf-8")
    found = cli("form", "--dry-run", str(path), "--speakers", "--json").json
    assert {memory["text"] for memory in found["memories"]} == {"Mara: I am allergic to peanuts."}
    assert [message["speaker"] for message in found["passed_over"]] == ["Ben"]


def test_a_conversation_is_looked_at_as_it_stands(cli: Cli) -> None:
    assert cli("observe", ANNA, "-", "--no-form", stdin=TALK).code == 0
    assert "anna: I am allergic to peanuts." in cli("form", ANNA, "--dry-run").out
    assert "anna: I am allergic to peanuts." in cli("form", ANNA, "--json").out
    done = cli("form", ANNA, "--dry-run")
    assert (done.code, done.out, done.err) == (0, "", "nothing waits to be formed\n")


def test_what_is_known_is_passed_over(cli: Cli) -> None:
    cli("observe", ANNA, "I am allergic to peanuts.")
    cli("form", ANNA)
    found = cli("form", ANNA, "I am allergic to peanuts.", "--dry-run", "--json").json
    assert found["memories"] == []
    assert "known already" in found["passed_over"][0]["reason"]


@pytest.mark.parametrize("name", ["none.txt", "notes.jsonl"])
def test_a_missing_file_is_not_read_as_a_text(cli: Cli, tmp_path: Path, name: str) -> None:
    result = cli("form", "--dry-run", str(tmp_path / name))
    assert (result.code, result.err.count("\n"), name in result.err) == (1, 1, True)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\x00\xff\xfe", b'{"role": "user"}', b"[{}, 2]"])
def test_a_bad_file_is_one_line(cli: Cli, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    result = cli("form", "--dry-run", str(path))
    assert (result.code, result.err.count("\n"), "bad.json" in result.err) == (1, 1, True)


@pytest.mark.parametrize(
    "args",
    [
        ("form", "--dry-run"),
        ("form", ANNA, "--dry-run", "--due"),
        ("form", "--all", "--dry-run"),
        ("form", ANNA, "I moved."),
        ("form", ANNA, "--speakers"),
    ],
)
def test_misuse_is_named(cli: Cli, args: tuple[str, ...]) -> None:
    result = cli(*args)
    assert (result.code, result.err.count("\n")) == (2, 1)
