"""The command line of the bench: `python -m bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import run_bench


def test_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["--help"]) == 0
    assert "engine" in capsys.readouterr().out


@pytest.mark.parametrize("args", [["engine", "--sizes", "many"], ["zz"], ["--store", "x.db", "recall"]])
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    assert run_bench(args) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    turns = [{"id": "t1", "text": "My dog is Rex."}, {"id": "t2", "text": "It rains today."}]
    asked = {"id": "q1", "question": "Who is the dog?", "gold": ["t1"]}
    unasked = {"id": "b", "turns": turns, "questions": []}
    file = tmp_path / "conversations.json"
    content = {"conversations": [{"id": "a", "turns": turns, "questions": [asked]}, unasked]}
    file.write_text(json.dumps(content), encoding="utf-8-sig")
    return file


@pytest.mark.parametrize(
    ("before", "after"), [(["--json", "--embedder", "none"], []), ([], ["--json", "--embedder", "none"])]
)
def test_recall_takes_json_and_embedder_before_or_after(
    capsys: pytest.CaptureFixture[str], conversations: Path, before: list[str], after: list[str]
) -> None:
    assert run_bench([*before, "recall", str(conversations), *after]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["questions"], result["embedder"]) == (1, "none")


def test_engine_takes_json_before_its_name(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    empty: dict[str, Any] = {"sizes": {}, "unavailable": {}, "goals": {}}
    monkeypatch.setattr("bench.engine.measure", lambda *_, **__: empty)
    assert run_bench(["--json", "engine"]) == 0
    assert json.loads(capsys.readouterr().out) == empty


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{}", "'conversations' is missing in it"),
        ('{"conversations": [{"id": "a", "turns": []}]}', "'questions' is missing in it"),
        ('[{"role": "user", "content": "Hello."}]', "'conversation' is missing in it"),
        ('{"conversations": 7}', "it has another shape"),
        ('"words"', "it has another shape"),
    ],
)
def test_a_file_of_another_kind(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "wrong.json").write_text(content, encoding="utf-8")
    assert run_bench(["recall", str(tmp_path / "wrong.json")]) == 1
    error = capsys.readouterr().err
    assert f"wrong.json cannot be asked: {reason} (expected" in error
    assert '{"conversations": [{"id", "turns"' in error
