"""Does the passage that answers an engineer come back? Ten collections of technical text in the package."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import eunoe
from bench import Progress, Result
from bench.metrics import EmbeddingClock, Scores, latency, mean_percent, score_views
from bench.multihop import (
    CUTS,
    PROJECT,
    MultihopAnswer,
    MultihopDocuments,
    ask_questions,
    fill_memory,
    load_documents,
    recall_scores,
)
from bench.recall import check_reranker
from eunoe.apps.projects.memory import ProjectMemory
from eunoe.cli.display import View
from eunoe.memory import Memory
from eunoe.model.arguments import RecipeName

FOLDER: Final = Path(__file__).with_name("technical")
TUNING_COLLECTIONS: Final = ("docs", "tickets", "services")
TEST_COLLECTIONS: Final = (
    "docstrings", "comments", "incidents", "runbook", "functions", "remarks", "decisions",
)  # fmt: skip
"""Settings are chosen on the former and judged on the latter."""
COLLECTIONS: Final = TUNING_COLLECTIONS + TEST_COLLECTIONS
_RETRIEVE: Final = "retrieve"
_FOREIGN_QUESTIONS: Final = 20
"""So many of each other collection are asked where nothing answers them, besides those of `foreign.txt`: the first 60
of these are an engineer's, the others anybody's."""
_RELATED: Final = frozenset({"docs", "docstrings"})
"""Both are about this project: questions about one are not foreign to the other."""


class _CollectionResult(NamedTuple):
    answers: dict[str, list[MultihopAnswer]]
    silent: list[bool]
    """Of foreign questions, whether `retrieve` gave nothing."""


def load_collections() -> dict[str, MultihopDocuments]:
    """Read the collections, by name. They stay as they are: figures compare over time only if the texts do not move."""
    return {name: load_documents(FOLDER / f"{name}.json") for name in COLLECTIONS}


def measure(
    *, recipe: RecipeName | int = "documents", embedder: str = "auto", progress: Progress | None = None
) -> Result:
    """Measure each collection in a memory of its own; percentages from 0 to 100, milliseconds."""
    collections, clock = load_collections(), EmbeddingClock(embedder)
    recipes: dict[str, RecipeName | int] = {str(recipe): recipe, "default": "default", "associative": "associative"}
    recipes |= {"bm25": "lexical", **({"dense": "dense"} if clock.embedder else {})}
    results: dict[str, _CollectionResult] = {}
    for name, documents in collections.items():
        with eunoe.open(":memory:", embedder=clock.embedder or "none", llm="none", form=False) as memory:
            ids = fill_memory(memory, documents.texts)
            ask = partial(ask_questions, memory, clock, documents, ids)
            answers = {label: ask(each, progress if label == str(recipe) else None) for label, each in recipes.items()}
            answers[_RETRIEVE] = retrieve_documents(memory, documents, ids)
            results[name] = _CollectionResult(answers, _silences(memory, foreign_questions(collections, name)))
            status = memory.status()
    check_reranker(status, recipe)
    everything = {label: [each for result in results.values() for each in result.answers[label]] for label in answers}
    first = everything[str(recipe)]
    return {
        **recall_scores(first),
        "beside": {label: recall_scores(each) for label, each in everything.items() if label != str(recipe)},
        "silent": mean_percent(silent for result in results.values() for silent in result.silent),
        "by_collection": {name: _collection_scores(result) for name, result in results.items()},
        "latency_ms": latency([answer.search_ms for answer in first]),
        "passages": sum(len(documents.texts) for documents in collections.values()),
        "questions": len(first),
        "embedder": status.embedder,
        "recipe": recipe,
    }


def retrieve_documents(memory: Memory, documents: MultihopDocuments, ids: Sequence[str]) -> list[MultihopAnswer]:
    """Ask every question as project memory does, which gives nothing where nothing answers."""
    found = ProjectMemory(memory).retrieve(PROJECT, [question.text for question in documents.questions], max(CUTS))
    return [
        MultihopAnswer(question.kind, result["ids"], {ids[place] for place in question.gold}, 0.0)
        for question, result in zip(documents.questions, found, strict=True)
    ]


def foreign_questions(collections: Mapping[str, MultihopDocuments], name: str) -> list[str]:
    """Questions about the other collections, the same number of each, and questions that no collection answers."""
    others = [other for other in collections if other != name and not {other, name} <= _RELATED]
    about_others = [each.text for other in others for each in collections[other].questions[:_FOREIGN_QUESTIONS]]
    return about_others + (FOLDER / "foreign.txt").read_text("utf-8").splitlines()


def _silences(memory: Memory, questions: Sequence[str]) -> list[bool]:
    return [not result["ids"] for result in ProjectMemory(memory).retrieve(PROJECT, questions)]


def _collection_scores(result: _CollectionResult) -> Scores:
    """Recall@5 by way of ranking, and how many foreign questions stay silent."""
    cut = f"recall@{CUTS[1]}"
    scores = {label: recall_scores(answers)[cut] for label, answers in result.answers.items()}
    return {"questions": len(result.answers[_RETRIEVE]), **scores, "silent": mean_percent(result.silent)}


def rows(result: Result) -> list[View]:
    times, recipe = result["latency_ms"], str(result["recipe"])
    names = ("questions", *(f"recall@{cut}" for cut in CUTS))
    rows = {recipe: {name: result[name] for name in names}, **result["beside"]}
    return [
        *score_views(f"recipe {recipe}, embedder {result['embedder']}", [rows]),
        *score_views(
            f"recall@{CUTS[1]} by collection",
            [result["by_collection"]],
            f"{result['passages']} passages; {result['silent']:.0f} % of foreign questions get nothing; a search takes "
            f"{times['p50']:.1f} ms at the median, {times['p95']:.1f} ms at the 95th percentile",
        ),
    ]
