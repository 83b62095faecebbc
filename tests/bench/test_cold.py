"""The cold bench: its work, its figures and its command."""

import json

import pytest
from bench.__main__ import run_bench
from bench.cold import made_up_documents

from bench import cold as cold_bench

FIGURES = (
    "import_s", "import_cpu_s", "first_without_index_s", "first_without_index_cpu_s", "first_s", "first_cpu_s",
    "kept_mb",
)  # fmt: skip
LATENCIES = ("warm", "deletion", "after_deletion")


def test_no_two_documents_are_the_same() -> None:
    assert len(set(made_up_documents(500))) == 500


def test_a_run_keeps_an_index() -> None:
    said: list[str] = []
    result = cold_bench.measure([600], said.append)
    figures = result["sizes"][600]
    assert all(figures[name] > 0 for name in FIGURES)
    latencies = [figures[f"{name}_{unit}"] for name in LATENCIES for unit in ("ms", "cpu_ms")]
    assert all(0 < each["p50"] <= each["p95"] for each in latencies)
    assert said[-1] == "asking 600 documents with a kept index"


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["cold", "--sizes", "40", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["sizes"]) == ["40"]
    assert run_bench(["cold", "--sizes", "40"]) == 0
    assert "after it" in " ".join(capsys.readouterr().out.split())
    assert run_bench(["cold", "--sizes", "few"]) == 2
