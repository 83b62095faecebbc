"""Does recall find every passage that a question needs? Documents are put into a memory and asked."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Annotated, Any, Final

import typer

import eunoe
from eunoe.bench.metrics import percentile
from eunoe.bench.recall import Clock
from eunoe.cli.command import Settings
from eunoe.embed import DEFAULT
from eunoe.embed import load as load_embedder
from eunoe.engine import Engine
from eunoe.errors import InputError
from eunoe.index.cache import IndexCache
from eunoe.memory import Memory
from eunoe.model.choices import RecipeName
from eunoe.model.scope import Scope
from eunoe.store.location import open_store
from eunoe.text.entities import load as load_extractor

Progress = Callable[[int, int], None]

CUTS: Final = (2, 5, 10)
SIZES: Final = (1_000, 5_000, 50_000)
BESIDE: Final[dict[str, RecipeName]] = {"bm25": "lexical", "dense": "dense", "rrf": "rrf"}
_SCOPE: Final = {"project": "multihop"}
_EXPECTED: Final = '{"passages": [{"title", "text"}], "questions": [{"question", "gold": [passage indexes]}]}'
_WARM, _ADDS = 20, 200
"""How many adds go before those that count: the first after a large batch pay for room that later ones have."""
_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    gold: tuple[int, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Documents:
    """Passages, and questions with the passages that answer them together."""

    texts: tuple[str, ...]
    questions: tuple[Question, ...]


def load(path: str | Path, titles: bool = True) -> Documents:
    """Reads documents with questions; a title stands above its text, or is left out."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        texts = tuple(_text(passage, titles) for passage in data["passages"])
        questions = tuple(_question(one, len(texts)) for one in data["questions"] if one["gold"])
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} cannot be asked: expected {_EXPECTED}") from error
    if not questions:
        raise InputError(f"{path} has no question with a gold passage")
    return Documents(texts, questions)


def _text(passage: Mapping[str, Any], titles: bool) -> str:
    title = passage.get("title") or ""
    return f"{title}\n\n{passage['text']}" if titles and title else str(passage["text"])


def _question(one: Mapping[str, Any], passages: int) -> Question:
    gold = tuple(dict.fromkeys(int(place) for place in one["gold"]))
    if any(not 0 <= place < passages for place in gold):
        raise ValueError("a gold passage is not there")
    return Question(str(one["question"]), gold, str(one.get("type", "")))


def run_multihop_bench(
    path: str | Path,
    *,
    titles: bool = True,
    embedder: str = "auto",
    extractor: str = "builtin",
    sizes: Sequence[int] = SIZES,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measures one file; percentages from 0 to 100."""
    documents = load(path, titles)
    model = load_embedder(DEFAULT if embedder == "auto" else embedder)
    clock = Clock(model)
    with eunoe.open(":memory:", embedder=model or "none", llm="none", form=False, extractor=extractor) as memory:
        start = perf_counter()
        ids = _index(memory, documents.texts)
        seconds = perf_counter() - start
        found = _asked(memory, documents, ids, clock, progress)
        name = memory.status().embedder
    ranked, times = found.pop("associative")
    return {
        **_recall(ranked, documents.questions, ids),
        "index_seconds": round(seconds, 2),
        "passages_per_second": round(len(ids) / seconds, 1),
        "latency_ms": {"p50": round(percentile(times, 0.5), 3), "p95": round(percentile(times, 0.95), 3)},
        "by_type": _by_type(ranked, documents.questions, ids),
        "beside": {name: _recall(order, documents.questions, ids) for name, (order, _) in found.items()},
        "add_ms": {str(size): round(cost, 3) for size, cost in added(sizes, extractor)},
        "passages": len(ids),
        "questions": len(documents.questions),
        "titles": titles,
        "extractor": extractor,
        "embedder": name,
    }


def _index(memory: Memory, texts: Sequence[str]) -> list[str]:
    """Puts passages in, and has the index and the graph made of them; gives their ids."""
    items = [{"text": text, "id": str(place)} for place, text in enumerate(texts)]
    ids = [receipt.id for receipt in memory.remember_many(_SCOPE, items)]
    memory.recall(_SCOPE, texts[0][:200], recipe="associative")
    return ids


def _asked(
    memory: Memory, documents: Documents, ids: Sequence[str], clock: Clock, progress: Progress | None
) -> dict[str, tuple[list[list[str]], list[float]]]:
    """Each recipe's ranking of each question, and the milliseconds it took besides embedding."""
    found: dict[str, tuple[list[list[str]], list[float]]] = {}
    recipes: dict[str, RecipeName] = {"associative": "associative", **BESIDE}
    for name, recipe in recipes.items():
        ranked, times = found.setdefault(name, ([], []))
        for number, question in enumerate(documents.questions, 1):
            clock.ms = 0.0
            start = perf_counter()
            hits = memory.recall(_SCOPE, question.text, limit=max(CUTS), recipe=recipe)
            times.append((perf_counter() - start) * 1000 - clock.ms)
            ranked.append([hit.id for hit in hits])
            if progress and name == "associative":
                progress(number, len(documents.questions))
    return found


def _recall(ranked: Sequence[Sequence[str]], questions: Sequence[Question], ids: Sequence[str]) -> dict[str, float]:
    """The mean share of gold passages among the first, in percent."""
    shares = [
        [len(gold.intersection(order[:cut])) / len(gold) for cut in CUTS]
        for order, question in zip(ranked, questions, strict=True)
        if (gold := {ids[place] for place in question.gold})
    ]
    return {
        f"recall@{cut}": round(100 * fmean(column), 2)
        for cut, column in zip(CUTS, zip(*shares, strict=True), strict=True)
    }


def _by_type(
    ranked: Sequence[Sequence[str]], questions: Sequence[Question], ids: Sequence[str]
) -> dict[str, dict[str, float]]:
    groups: dict[str, list[int]] = {}
    for number, question in enumerate(questions):
        groups.setdefault(question.kind, []).append(number)
    return {
        kind: {
            "questions": len(group),
            **_recall([ranked[each] for each in group], [questions[each] for each in group], ids),
        }
        for kind, group in sorted(groups.items())
    }


def added(sizes: Sequence[int], extractor: str = "builtin") -> Iterator[tuple[int, float]]:
    """Milliseconds to add one passage to so many others, durable and with index and graph up to date: the median."""
    store = open_store(":memory:", create=True)
    memory = Memory(Engine(store, embedder="static", llm="none", form=False))
    scope, words = Scope.of(_SCOPE), random.Random(7)
    with memory as face:
        shelf = IndexCache(store, extractor=load_extractor(extractor))
        count = 0
        for size in sorted(sizes):
            while count < size:
                more = min(_BATCH, size - count)
                face.remember_many(_SCOPE, [made_up(words, count + each) for each in range(more)])
                count += more
            _brought_up(shelf, scope)
            times = []
            for _ in range(_WARM + _ADDS):
                passage = made_up(words, count)
                start = perf_counter()
                face.remember_many(_SCOPE, [passage])
                _brought_up(shelf, scope)
                times.append((perf_counter() - start) * 1000)
                count += 1
            yield size, median(times[_WARM:])


def _brought_up(shelf: IndexCache, scope: Scope) -> None:
    with shelf.borrow([scope], graph=True):
        pass


def made_up(chance: random.Random, number: int) -> str:
    """A passage about somebody who does not exist, with some names that others have too."""
    person = f"{_syllables(chance)} {_syllables(chance)}"
    place, friend = (f"{_syllables(random.Random(chance.randrange(5_000)))}ville" for _ in range(2))
    return (
        f"{person}\n\n{person} was born in {place} in {1700 + number % 300} and worked there as number {number}. "
        f"The mother of {person} came from {friend}. In later years {person} wrote about the bridges of {place}."
    )


def _syllables(chance: random.Random) -> str:
    return "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(3)).capitalize()


def multihop_command(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Passages, and questions with the passages that answer them.")],
    titles: Annotated[bool, typer.Option("--titles/--no-titles", help="Put each title above its text.")] = True,
    embedder: Annotated[str, typer.Option(help="What makes vectors: auto, none, eunoe, static, ...")] = "",
    extractor: Annotated[str, typer.Option(help="What finds names: builtin, spacy, spacy:MODEL.")] = "builtin",
    adds: Annotated[bool, typer.Option("--adds/--no-adds", help="Measure what adding one passage costs.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how often all passages that a question needs come back.

    Example: eunoe bench multihop documents.json --no-titles
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    outer = Settings.before(ctx)
    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"asking {file.name}", total=None)
        result = run_multihop_bench(
            file,
            titles=titles,
            embedder=embedder or outer.embedder or "auto",
            extractor=extractor,
            sizes=SIZES if adds else (),
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json or outer.json:
        print(json.dumps(result, indent=2))
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    names = [f"recall@{cut}" for cut in CUTS]
    table = Table("", "questions", *names, title=f"extractor {result['extractor']}, embedder {result['embedder']}")
    table.add_row("associative", str(result["questions"]), *(f"{result[name]:.1f}" for name in names))
    for label, scores in result["beside"].items():
        table.add_row(label, "", *(f"{scores[name]:.1f}" for name in names))
    for kind, scores in result["by_type"].items():
        table.add_row(kind or "no type", str(scores["questions"]), *(f"{scores[name]:.1f}" for name in names))
    console = Console()
    console.print(table)
    times = result["latency_ms"]
    adds = ", ".join(f"{cost:.1f} ms at {int(size):,}" for size, cost in result["add_ms"].items())
    console.print(
        f"{result['passages']:,} passages in {result['index_seconds']:.1f} s; a question takes "
        f"{times['p50']:.1f} ms at the median, {times['p95']:.1f} ms at the 95th percentile"
        + (f"; adding one passage takes {adds}" if adds else "")
    )
