"""Does the paragraph that answers come back? Questions to this project's own documentation."""

from functools import partial
from pathlib import Path
from typing import Final

import eunoe
from eunoe.bench import Progress, Result
from eunoe.bench.metrics import EmbeddingClock, latency
from eunoe.bench.multihop import CUTS, ask_questions, fill_memory, load_documents, recall_scores, scores_by_type
from eunoe.bench.recall import check_reranker
from eunoe.bench.report import score_views
from eunoe.display.views import View
from eunoe.model.choices import RecipeName

BUILT_IN: Final = Path(__file__).with_name("technical.json")
"""A copy of the documentation as it once was: figures compare over time only if the paragraphs stay the same."""
_WORDS, _VECTORS = "words alone", "vectors alone"


def run_technical_bench(
    *, recipe: RecipeName | int = "default", embedder: str = "auto", progress: Progress | None = None
) -> Result:
    """Measure the paragraphs and questions in the package; percentages from 0 to 100, milliseconds."""
    documents = load_documents(BUILT_IN)
    clock = EmbeddingClock(embedder)
    with eunoe.open(":memory:", embedder=clock.embedder or "none", llm="none", form=False) as memory:
        ids = fill_memory(memory, documents.texts)
        ask = partial(ask_questions, memory, clock, documents, ids)
        answers = ask(recipe, progress)
        others = {_WORDS: ask("lexical"), **({_VECTORS: ask("dense")} if clock.embedder else {})}
        status = memory.status()
    check_reranker(status, recipe)
    return {
        **recall_scores(answers),
        "beside": {name: recall_scores(each) for name, each in others.items()},
        "by_type": scores_by_type(answers),
        "latency_ms": latency([answer.search_ms for answer in answers]),
        "passages": len(ids),
        "questions": len(documents.questions),
        "embedder": status.embedder,
        "recipe": recipe,
    }


def technical_views(result: Result) -> list[View]:
    times = result["latency_ms"]
    names = ("questions", *(f"recall@{cut}" for cut in CUTS))
    rows = {result["recipe"]: {name: result[name] for name in names}, **result["beside"]}
    return score_views(
        f"recipe {result['recipe']}, embedder {result['embedder']}",
        [rows, result["by_type"]],
        f"{result['passages']} paragraphs; a search takes "
        f"{times['p50']:.1f} ms at the median, {times['p95']:.1f} ms at the 95th percentile",
    )
