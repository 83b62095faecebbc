"""The technical set of the multihop bench: what it asks, its figures and its command."""

import json
from typing import Any

import pytest
from bench.__main__ import run_bench
from bench.technical_set import (
    COLLECTIONS,
    FOLDER,
    TEST_COLLECTIONS,
    TUNING_COLLECTIONS,
    foreign_questions,
    load_collections,
)

from bench import technical_set
from bench import technical_set as technical_set_bench

CUTS = {"recall@2", "recall@5", "recall@10"}


def test_more_than_two_hundred_questions_each_once() -> None:
    questions = [question.text for documents in load_collections().values() for question in documents.questions]
    assert len(set(questions)) == len(questions) > 200


def test_settings_are_judged_on_other_collections_than_they_are_chosen_on() -> None:
    assert not set(TUNING_COLLECTIONS) & set(TEST_COLLECTIONS)
    assert {path.stem for path in FOLDER.glob("*.json")} == set(COLLECTIONS)
    counts = {name: len(documents.questions) for name, documents in load_collections().items()}
    assert sum(counts[name] for name in TEST_COLLECTIONS) >= 100


def test_every_passage_is_there_once_and_says_something() -> None:
    for documents in load_collections().values():
        assert len(set(documents.texts)) == len(documents.texts)
        assert all(len(text.split("\n\n", 1)[-1].split()) >= 12 for text in documents.texts)


def test_no_question_is_copied_from_its_passage() -> None:
    for documents in load_collections().values():
        for question in documents.questions:
            words = question.text.casefold().split()
            runs = [" ".join(words[start : start + 7]) for start in range(len(words) - 6)]
            golds = [" ".join(documents.texts[place].casefold().split()) for place in question.gold]
            assert not [run for run in runs for gold in golds if run in gold], question.text


def test_foreign_questions_are_about_something_else() -> None:
    collections = load_collections()
    own = {question.text for name in ("docs", "docstrings") for question in collections[name].questions}
    assert not own & set(foreign_questions(collections, "docs"))
    assert own & set(foreign_questions(collections, "tickets"))


def test_what_is_measured_adds_little_to_the_package() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 500_000


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return technical_set_bench.measure(embedder="static")


def test_the_figures_are_those_that_are_promised(result: dict[str, Any]) -> None:
    assert set(result["beside"]) == {"default", "associative", "bm25", "dense", "retrieve"}
    assert all(set(scores) == CUTS for scores in result["beside"].values())
    assert list(result["by_collection"]) == list(COLLECTIONS)
    assert sum(scores["questions"] for scores in result["by_collection"].values()) == result["questions"]
    assert (result["recipe"], result["embedder"]) == ("documents", "wordllama-256")
    assert set(result["latency_ms"]) == {"p50", "p95"}
    assert 0 < result["recall@2"] <= result["recall@5"] <= result["recall@10"] < 100


def test_documents_rank_about_as_well_as_the_better_of_both(result: dict[str, Any]) -> None:
    beside = result["beside"]
    assert result["recall@5"] >= max(beside["default"]["recall@5"], beside["associative"]["recall@5"])
    for name, scores in result["by_collection"].items():
        assert scores["documents"] >= max(scores["default"], scores["associative"]) - 7.5, name


def test_the_threshold_costs_little_and_most_foreign_questions_stay_silent(result: dict[str, Any]) -> None:
    assert result["beside"]["retrieve"]["recall@5"] >= result["recall@5"] - 13
    assert result["silent"] >= 75


def test_the_command_without_vectors(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: documents for name, documents in load_collections().items() if name in ("tickets", "remarks")}
    monkeypatch.setattr(technical_set, "load_collections", lambda: few)
    assert run_bench(["multihop", "--set", "technical", "--embedder", "none", "--recipe", "lexical", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["beside"]["bm25"] == {name: result[name] for name in CUTS}
    assert "dense" not in result["beside"]
    assert run_bench(["multihop", "--set", "technical", "--embedder", "none"]) == 0
    shown = capsys.readouterr().out
    assert "remarks" in shown
    assert "76 passages" in shown


@pytest.mark.parametrize("arguments", [[], ["--set", "magic"], ["documents.json", "--set", "technical"]])
def test_a_file_or_the_set_is_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["multihop", *arguments]) != 0
    assert "--set technical" in capsys.readouterr().err
