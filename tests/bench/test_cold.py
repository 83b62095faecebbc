"""The cold bench: its work, its figures and its command."""

import json

import pytest

from eunoe.bench.cold import made_up_documents, run_cold_bench
from eunoe.cli.app import run

FIGURES = ("import_s", "first_without_index_s", "first_s", "first_cpu_s", "after_deletion_ms", "kept_mb")


def test_no_two_documents_are_the_same() -> None:
    assert len(set(made_up_documents(500))) == 500


def test_a_run_keeps_an_index() -> None:
    said: list[str] = []
    result = run_cold_bench([600], said.append)
    figures = result["sizes"][600]
    assert all(figures[name] > 0 for name in FIGURES)
    assert 0 < figures["warm_ms"]["p50"] <= figures["warm_ms"]["p95"]
    assert said[-1] == "asking 600 documents with a kept index"


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "cold", "--sizes", "40", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["sizes"]) == ["40"]
    assert run(["bench", "cold", "--sizes", "few"]) == 2
