"""The bench beside LangGraph's SqliteStore: its figures and its command."""

import json

import pytest
from bench.__main__ import run_bench

from bench import langgraph as langgraph_bench

TINY = ["langgraph", "--items", "20", "--namespaces", "2", "--repeats", "2"]


def test_a_run_measures_the_same_on_both() -> None:
    result = langgraph_bench.measure(items=30, namespaces=3, repeats=3)
    assert set(result["with_index"]) == {*result["without_index"], "query"}
    for figures in (*result["without_index"].values(), *result["with_index"].values()):
        assert figures["times_as_fast"] > 0
        assert 0 < figures["eunoe_ms"]["p50"] <= figures["eunoe_ms"]["p95"]
        assert 0 < figures["sqlite_ms"]["p50"] <= figures["sqlite_ms"]["p95"]


@pytest.mark.parametrize("json_wanted", [True, False])
def test_the_command_shows_both(json_wanted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench([*TINY, "--json"] if json_wanted else TINY) == 0
    shown = capsys.readouterr().out
    assert json.loads(shown)["items"] == 20 if json_wanted else "SqliteStore" in shown
