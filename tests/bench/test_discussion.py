"""The bench of discussions: its figures and its command."""

import json
from pathlib import Path

import pytest
from bench.__main__ import run_bench
from bench.discussion import run_discussion_bench

TALK = {
    "conversations": [
        {
            "id": "tiny/1",
            "turns": [
                {"id": f"D1:{number}", "speaker": "Anna", "session": "1", "time": "2024-05-01T10:00:00", "text": text}
                for number, text in enumerate(
                    ["I moved to Lisbon in May.", "My cat Tom stayed with Ben.", "Ben is a welder.", "Nice weather."]
                )
            ],
            "questions": [{"id": "q1", "question": "Where did Anna move in May?", "gold": ["D1:0"], "category": "1"}],
        }
    ]
}


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK), encoding="utf-8")
    return path


def test_a_run_has_all_figures(talk: Path) -> None:
    said: list[str] = []
    result = run_discussion_bench(talk, messages=40, memories=10, repeats=3, sizes=[20, 40], progress=said.append)
    assert all(0 < each["p50"] <= each["p95"] for each in result["retrievers_ms"].values())
    assert len(result["retrievers_ms"]) == 10
    assert all(each["times_as_fast"] > 0 for each in result["keyword_search"].values())
    assert result["recall"]["plain"]["recall@10"] == result["recall"]["combined"]["recall@10"] == 100.0
    assert [each["made"] > 0 for each in result["creators"].values()] == [True, True]
    assert "creators: 40 messages" in said


@pytest.mark.parametrize("json_wanted", [True, False])
def test_the_command_shows_them(json_wanted: bool, talk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["discussion", "--data", str(talk), "--messages", "20", "--memories", "5", "--repeats", "2"]
    assert run_bench([*words, "--sizes", "none", *(["--json"] if json_wanted else [])]) == 0
    shown = capsys.readouterr().out
    assert json.loads(shown)["creators"] == {} if json_wanted else "keyword memory and log" in shown


def test_a_wrong_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["discussion", "--sizes", "many"]) == 2
    assert "many" in capsys.readouterr().err
