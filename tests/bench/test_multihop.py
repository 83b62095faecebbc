"""The multihop bench: its format, its figures and its command."""

import json
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import run_bench
from bench.multihop import add_times, load_documents

from bench import multihop as multihop_bench
from eunoe import embed
from eunoe.errors import InputError

DATA: dict[str, Any] = {
    "name": "small",
    "passages": [
        {"title": "Stone Harbour", "text": "Stone Harbour is a film. It was directed by Greta Lindqvist."},
        {"title": "Greta Lindqvist", "text": "Greta Lindqvist was born in Uppsala."},
        {"title": "Copper Lane", "text": "Copper Lane is a film. It was directed by Tom Hadley."},
        {"title": "Rye bread", "text": "It keeps for a week."},
        {"title": "", "text": "Green tea is brewed below the boiling point."},
    ],
    "questions": [
        {"id": "1", "question": "Where was the director of Stone Harbour born?", "gold": [0, 1], "type": "bridge"},
        {"id": "2", "question": "Who directed Copper Lane?", "gold": [2], "type": "single"},
        {"id": "3", "question": "Nothing to find", "gold": [], "type": "single"},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "documents.json"
    path.write_text(json.dumps(DATA), encoding="utf-8")
    return path


def test_titles_stand_above_texts_or_are_left_out(file: Path) -> None:
    assert load_documents(file).texts[3] == "Rye bread\n\nIt keeps for a week."
    assert load_documents(file, titles=False).texts[3] == "It keeps for a week."
    assert load_documents(file).texts[4].startswith("Green tea")
    assert [question.gold for question in load_documents(file).questions] == [(0, 1), (2,)]


@pytest.mark.parametrize(
    "data",
    [
        "[]",
        "nothing",
        '{"passages": [], "questions": []}',
        '{"passages": [{"text": "a"}], "questions": [{"question": "q", "gold": [1]}]}',
        '{"passages": [{"text": "a"}], "questions": [{"gold": [0]}]}',
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, data: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(data, encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.json"):
        load_documents(path)


def test_the_figures_are_those_that_are_promised(file: Path) -> None:
    result = multihop_bench.measure(file, sizes=(10,))
    assert (result["recall@2"], result["recall@5"], result["recall@10"]) == (100, 100, 100)
    assert set(result["beside"]) == {"documents", "default", "bm25", "dense", "rrf"}
    assert all(set(scores) == {"recall@2", "recall@5", "recall@10"} for scores in result["beside"].values())
    assert set(result["latency_ms"]) == {"p50", "p95"}
    assert result["passages_per_second"] > 0
    assert result["index_seconds"] >= 0
    assert (result["extractor"], result["embedder"], result["passages"]) == ("builtin", embed.load_embedder().name, 5)
    assert result["add_ms"]["10"] > 0
    assert result["by_type"]["bridge"]["questions"] == 1


def test_bm25_alone_does_not_cross_a_bridge(file: Path) -> None:
    data = {**DATA, "questions": [{"question": "Which city is tied to Stone Harbour's director?", "gold": [0, 1]}]}
    file.write_text(json.dumps(data), encoding="utf-8")
    result = multihop_bench.measure(file, sizes=(), embedder="none")
    assert result["recall@2"] == 100 > result["beside"]["bm25"]["recall@2"]


def test_passages_that_are_the_same_count_as_one(file: Path) -> None:
    data = {**DATA, "passages": [*DATA["passages"], DATA["passages"][2]], "questions": [DATA["questions"][1]]}
    data["questions"][0] = {**data["questions"][0], "gold": [5]}
    file.write_text(json.dumps(data), encoding="utf-8")
    assert multihop_bench.measure(file, sizes=())["recall@5"] == 100


def test_adding_is_measured_at_each_size() -> None:
    times = dict(add_times((20, 5)))
    assert list(times) == [5, 20]
    assert all(ms > 0 for ms in times.values())


def test_the_command_prints_json_and_a_table(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["multihop", str(file), "--json", "--no-adds", "--no-titles"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["titles"] is False
    assert result["add_ms"] == {}
    assert run_bench(["multihop", str(file), "--no-adds"]) == 0
    shown = capsys.readouterr().out
    assert "associative" in shown
    assert "bm25" in shown


def test_an_unknown_extractor_is_a_misuse(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["multihop", str(file), "--extractor", "nltk", "--no-adds"]) != 0
    assert "nltk" in capsys.readouterr().err
