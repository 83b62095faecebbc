"""The LangChain bench: its figures and its command."""

import json

import pytest
from bench.__main__ import run_bench

TINY = ["--turns", "3", "--atoms", "20", "--embedder", "none"]


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["langchain", *TINY, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"bare_ms", "recall_ms", "memory_ms", "recall_adds_ms", "turns", "atoms"}
    assert 0 < printed["bare_ms"]["p50"] <= printed["bare_ms"]["p95"]


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["langchain", *TINY]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "a turn without memory" in printed
    assert "at the median" in printed
