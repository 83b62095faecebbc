"""The bench of discussions: its figures and its command."""

import json

import pytest
from bench.__main__ import run_bench

from bench import discussion as discussion_bench


def test_a_run_has_all_figures() -> None:
    said: list[str] = []
    result = discussion_bench.measure(messages=40, memories=10, repeats=3, sizes=[20, 40], progress=said.append)
    assert all(0 < each["p50"] <= each["p95"] for each in result["retrievers_ms"].values())
    assert len(result["retrievers_ms"]) == 10
    assert all(each["times_as_fast"] > 0 for each in result["keyword_search"].values())
    assert [each["made"] > 0 for each in result["creators"].values()] == [True, True]
    assert "creators: 40 messages" in said


@pytest.mark.parametrize("json_wanted", [True, False])
def test_the_command_shows_them(json_wanted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["discussion", "--messages", "20", "--memories", "5", "--repeats", "2", "--sizes", "none"]
    assert run_bench([*words, *(["--json"] if json_wanted else [])]) == 0
    shown = capsys.readouterr().out
    assert json.loads(shown)["creators"] == {} if json_wanted else "beside raw FTS5" in shown


def test_a_wrong_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["discussion", "--sizes", "many"]) == 2
    assert "many" in capsys.readouterr().err
