"""Does recall find every passage that a question needs? Documents are put into a memory and asked."""

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import eunoe
from bench import Progress, Result
from bench.conversations import ODD_DATA, read_json
from bench.metrics import (
    EmbeddingClock,
    Scores,
    group_by,
    latency,
    mean_percent,
    measure_ms,
    recall_share,
    score_views,
    track,
)
from eunoe.cli.display import View
from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.model.arguments import RecipeName
from eunoe.model.scope import Scope

CUTS: Final = (2, 5, 10)
SIZES: Final = (1_000, 5_000, 50_000)
_OTHER_RECIPES: Final[Mapping[str, RecipeName]] = {
    "documents": "documents",
    "default": "default",
    "bm25": "lexical",
    "dense": "dense",
    "rrf": "rrf",
}
PROJECT: Final = "multihop"
_SCOPE: Final = Scope(project=PROJECT)
_EXPECTED: Final = '{"passages": [{"title", "text"}], "questions": [{"question", "gold": [passage indexes]}]}'
_WARM_UP_ADDS: Final = 20
"""The first adds after a large batch pay for room that later ones have."""
_TIMED_ADDS: Final = 200
_BATCH_SIZE: Final = 1_000


class MultihopQuestion(NamedTuple):
    """A question and the places of the passages that answer it together."""

    text: str
    gold: tuple[int, ...]
    kind: str


class MultihopDocuments(NamedTuple):
    texts: tuple[str, ...]
    questions: tuple[MultihopQuestion, ...]


class MultihopAnswer(NamedTuple):
    kind: str
    ranked: list[str]
    gold: set[str]
    search_ms: float


def load_documents(path: str | Path, titles: bool = True) -> MultihopDocuments:
    """Read passages and questions; a title stands above its text, or is left out."""
    data = read_json(path)
    try:
        texts = tuple(_passage_text(passage, titles) for passage in data["passages"])
        questions = tuple(_read_question(each, len(texts)) for each in data["questions"] if each["gold"])
    except ODD_DATA as error:
        raise InputError(f"{path} cannot be asked: expected {_EXPECTED}") from error
    if not questions:
        raise InputError(f"{path} has no question with a gold passage")
    return MultihopDocuments(texts, questions)


def _passage_text(passage: Mapping[str, Any], titles: bool) -> str:
    title = passage.get("title") or ""
    return f"{title}\n\n{passage['text']}" if titles and title else str(passage["text"])


def _read_question(data: Mapping[str, Any], passages: int) -> MultihopQuestion:
    gold = tuple(dict.fromkeys(int(place) for place in data["gold"]))
    if any(not 0 <= place < passages for place in gold):
        raise ValueError("a gold passage is not there")
    return MultihopQuestion(str(data["question"]), gold, str(data.get("type", "")))


def measure(
    path: str | Path,
    *,
    titles: bool = True,
    embedder: str = "auto",
    extractor: str = "builtin",
    sizes: Sequence[int] = SIZES,
    progress: Progress | None = None,
) -> Result:
    """Measure one file; percentages from 0 to 100."""
    documents = load_documents(path, titles)
    clock = EmbeddingClock(embedder)
    with eunoe.open(
        ":memory:", embedder=clock.embedder or "none", llm="none", form=False, extractor=extractor
    ) as memory:
        ids, index_ms = measure_ms(fill_memory, memory, documents.texts)
        ask = partial(ask_questions, memory, clock, documents, ids)
        answers = ask("associative", progress)
        others = {name: ask(recipe) for name, recipe in _OTHER_RECIPES.items()}
        embedder_name = memory.status().embedder
    return {
        **recall_scores(answers),
        "index_seconds": round(index_ms / 1000, 2),
        "passages_per_second": round(len(ids) / index_ms * 1000, 1),
        "latency_ms": latency([answer.search_ms for answer in answers]),
        "by_type": scores_by_type(answers),
        "beside": {name: recall_scores(each) for name, each in others.items()},
        "add_ms": {str(size): round(ms, 3) for size, ms in add_times(sizes, extractor)},
        "passages": len(ids),
        "questions": len(documents.questions),
        "titles": titles,
        "extractor": extractor,
        "embedder": embedder_name,
    }


def fill_memory(memory: Memory, texts: Sequence[str]) -> list[str]:
    """Put passages in, and have the index and the graph made of them; return their ids."""
    items = [{"text": text, "id": str(place)} for place, text in enumerate(texts)]
    ids = [receipt.id for receipt in memory.remember_many(_SCOPE, items)]
    memory.recall(_SCOPE, texts[0][:200], recipe="associative")
    return ids


def ask_questions(
    memory: Memory,
    clock: EmbeddingClock,
    documents: MultihopDocuments,
    ids: Sequence[str],
    recipe: RecipeName | int,
    progress: Progress | None = None,
) -> list[MultihopAnswer]:
    """Ask every question; `ids` are those of the passages in the memory."""
    answers = []
    for text, gold, kind in track(documents.questions, len(documents.questions), progress):
        hits, ms = clock.measure_search(memory.recall, _SCOPE, text, limit=max(CUTS), recipe=recipe)
        answers.append(MultihopAnswer(kind, [hit.id for hit in hits], {ids[place] for place in gold}, ms))
    return answers


def recall_scores(answers: Sequence[MultihopAnswer]) -> Scores:
    return {
        f"recall@{cut}": mean_percent(recall_share(answer.ranked[:cut], answer.gold) for answer in answers)
        for cut in CUTS
    }


def scores_by_type(answers: Sequence[MultihopAnswer]) -> dict[str, Scores]:
    groups = group_by(answers, lambda answer: answer.kind)
    return {kind: {"questions": len(group), **recall_scores(group)} for kind, group in groups.items()}


def add_times(sizes: Sequence[int], extractor: str = "builtin") -> Iterator[tuple[int, float]]:
    """Milliseconds to add one passage to so many others, durable and with index and graph up to date: the median."""
    chance = random.Random(7)
    passages = (made_up_passage(chance, number) for number in count())
    with eunoe.open(":memory:", embedder="static", llm="none", form=False, extractor=extractor) as memory:
        filled = 0
        for size in sorted(sizes):
            for start in range(filled, size, _BATCH_SIZE):
                memory.remember_many(_SCOPE, islice(passages, min(_BATCH_SIZE, size - start)))
            _add_passages(memory, [])
            times = [measure_ms(_add_passages, memory, [next(passages)])[1] for _ in range(_WARM_UP_ADDS + _TIMED_ADDS)]
            filled = max(filled, size) + len(times)
            yield size, median(times[_WARM_UP_ADDS:])


def _add_passages(memory: Memory, texts: Sequence[str]) -> None:
    memory.remember_many(_SCOPE, texts)
    memory._engine.indexes.read([_SCOPE], lambda *_: None, graph=True)


def made_up_passage(chance: random.Random, number: int) -> str:
    """A passage about somebody who does not exist, with some names that others have too."""
    person = f"{_made_up_name(chance)} {_made_up_name(chance)}"
    place, friend = (f"{_made_up_name(random.Random(chance.randrange(5_000)))}ville" for _ in range(2))
    return (
        f"{person}\n\n{person} was born in {place} in {1700 + number % 300} and worked there as number {number}. "
        f"The mother of {person} came from {friend}. In later years {person} wrote about the bridges of {place}."
    )


def _made_up_name(chance: random.Random) -> str:
    return "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(3)).capitalize()


def rows(result: Result) -> list[View]:
    names, times = [f"recall@{cut}" for cut in CUTS], result["latency_ms"]
    rows = {"associative": {name: result[name] for name in ("questions", *names)}}
    rows |= result["beside"] | {kind or "no type": scores for kind, scores in result["by_type"].items()}
    adds = ", ".join(f"{ms:.1f} ms at {int(size):,}" for size, ms in result["add_ms"].items())
    return score_views(
        f"extractor {result['extractor']}, embedder {result['embedder']}",
        [rows],
        f"{result['passages']:,} passages in {result['index_seconds']:.1f} s; a question takes "
        f"{times['p50']:.1f} ms at the median, {times['p95']:.1f} ms at the 95th percentile"
        + (f"; adding one passage takes {adds}" if adds else ""),
    )
