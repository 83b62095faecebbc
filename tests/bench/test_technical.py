"""The technical bench: what it asks, its figures and its command."""

import json
from typing import Any

import pytest

from eunoe.bench.multihop import load_documents
from eunoe.bench.technical import BUILT_IN, run_technical_bench
from eunoe.cli.app import run

CUTS = {"recall@2", "recall@5", "recall@10"}


def test_fifty_questions_half_of_them_in_other_words() -> None:
    documents = load_documents(BUILT_IN)
    kinds = [question.kind for question in documents.questions]
    assert (kinds.count("other words"), kinds.count("same words"), len(kinds)) == (25, 25, 50)
    assert len({question.text for question in documents.questions}) == 50


def test_every_paragraph_is_there_once_below_its_headings() -> None:
    texts = load_documents(BUILT_IN).texts
    assert len(set(texts)) == len(texts) > 500
    assert all(len(text.split("\n\n", 1)[1].split()) >= 30 for text in texts)


def test_what_is_measured_adds_little_to_the_package() -> None:
    assert BUILT_IN.stat().st_size < 300_000


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return run_technical_bench(embedder="static")


def test_the_figures_are_those_that_are_promised(result: dict[str, Any]) -> None:
    assert set(result["beside"]) == {"words alone", "vectors alone"}
    assert all(set(scores) == CUTS for scores in result["beside"].values())
    assert (result["passages"], result["questions"]) == (len(load_documents(BUILT_IN).texts), 50)
    assert (result["recipe"], result["embedder"]) == ("default", "wordllama-256")
    assert set(result["latency_ms"]) == {"p50", "p95"}
    assert 0 < result["recall@2"] <= result["recall@5"] <= result["recall@10"] < 100


def test_other_words_are_harder_and_words_alone_find_least_of_them(result: dict[str, Any]) -> None:
    assert result["by_type"]["other words"]["recall@10"] < result["by_type"]["same words"]["recall@10"]
    assert result["recall@5"] > result["beside"]["words alone"]["recall@5"]


def test_the_command_without_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "technical", "--embedder", "none", "--recipe", "lexical", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["beside"] == {"words alone": {name: result[name] for name in CUTS}}
    assert run(["bench", "technical", "--embedder", "none"]) == 0
    shown = capsys.readouterr().out
    assert "other words" in shown
    assert "588 paragraphs" in shown


def test_a_recipe_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "technical", "--embedder", "none", "--recipe", "magic"]) == 1
    assert "no recipe 'magic'" in capsys.readouterr().err
