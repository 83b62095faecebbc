"""Does the right turn come back? Conversations are put into a memory and asked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

import eunoe
from eunoe.bench.conversations import Conversation, load, together
from eunoe.bench.metrics import judge, mean, percentile
from eunoe.cli.command import Settings
from eunoe.cli.options import ConversationsArgument, RecipeOption
from eunoe.embed import DEFAULT, Embedder, Vectors
from eunoe.embed import load as load_embedder
from eunoe.errors import EmbedderError
from eunoe.memory import Memory
from eunoe.model.choices import RecipeName

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """One question's ranking and what it took."""

    category: str
    kind: str
    turn: dict[str, float]
    session: dict[str, float]
    embed_ms: float
    search_ms: float


def run_recall_bench(
    path: str | Path | None = None,
    *,
    recipe: RecipeName = "default",
    embedder: str = "auto",
    merge: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measures one file, or the conversations in the package; percentages from 0 to 100, milliseconds."""
    conversations = [together(load(path))] if merge else load(path)
    total = sum(len(conversation.questions) for conversation in conversations)
    answers: list[Answer] = []
    model = load_embedder(DEFAULT if embedder == "auto" else embedder)
    clock = Clock(model)
    with eunoe.open(":memory:", embedder=model or "none") as memory:
        for conversation in conversations:
            for answer in ask(memory, clock, conversation, recipe):
                answers.append(answer)
                if progress:
                    progress(len(answers), total)
        status = memory.status()
    if status.reranker_error:
        raise EmbedderError(f"the recipe {recipe} was asked without its second stage: {status.reranker_error}")
    return report(answers, status.embedder, recipe)


class Clock:
    """Stands before an embedder's `embed_query` and keeps the time of its last call, to be told from the search."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.ms = 0.0
        if embedder:
            self._inner = embedder.embed_query
            vars(embedder)["embed_query"] = self._embed_query

    def _embed_query(self, text: str) -> Vectors:
        start = perf_counter()
        vector = self._inner(text)
        self.ms = (perf_counter() - start) * 1000
        return vector


def ask(memory: Memory, clock: Clock, conversation: Conversation, recipe: RecipeName) -> Iterator[Answer]:
    scope = {"discussion": conversation.id}
    memory.observe(scope, conversation.turns)
    sessions = {turn.id: turn.session for turn in conversation.turns}
    times = [turn.time for turn in conversation.turns if turn.time]
    now = max(times) if times else None
    # The first question would pay for building the index, which is measured by the engine bench.
    memory.recall(scope, conversation.questions[0].text, recipe=recipe)
    for question in conversation.questions:
        clock.ms = 0.0
        start = perf_counter()
        memory.recall(scope, question.text, limit=10, recipe=recipe, now=now)
        total = (perf_counter() - start) * 1000
        embed_ms = clock.ms
        ranked = [hit.id for hit in memory.recall(scope, question.text, limit=len(sessions), recipe=recipe, now=now)]
        gold_sessions = list(dict.fromkeys(sessions[id] for id in question.gold))
        yield Answer(
            question.category,
            question.kind,
            judge(ranked, question.gold),
            judge(list(dict.fromkeys(sessions[id] for id in ranked)), gold_sessions),
            embed_ms,
            total - embed_ms,
        )


def report(answers: Sequence[Answer], embedder: str, recipe: str) -> dict[str, Any]:
    return {
        "turn": mean([answer.turn for answer in answers]),
        "session": mean([answer.session for answer in answers]),
        "by_category": _grouped(answers, lambda answer: answer.category),
        "by_kind": _grouped([answer for answer in answers if answer.kind], lambda answer: answer.kind),
        "latency_ms": {
            "embed_p50": round(percentile([answer.embed_ms for answer in answers], 0.5), 3),
            "search_p50": round(percentile([answer.search_ms for answer in answers], 0.5), 3),
            "search_p95": round(percentile([answer.search_ms for answer in answers], 0.95), 3),
        },
        "questions": len(answers),
        "embedder": embedder,
        "recipe": recipe,
    }


def _grouped(answers: Sequence[Answer], name: Callable[[Answer], str]) -> dict[str, dict[str, float]]:
    groups: dict[str, list[dict[str, float]]] = defaultdict(list)
    for answer in answers:
        groups[name(answer)].append(answer.turn)
    return {each: {"questions": len(group), **mean(group)} for each, group in sorted(groups.items())}


def recall_command(
    ctx: typer.Context,
    file: ConversationsArgument = None,
    recipe: RecipeOption = "default",
    embedder: Annotated[str, typer.Option(help="What makes vectors: auto, none, eunoe, static, ...")] = "",
    merge: Annotated[bool, typer.Option("--together", help="Put all conversations into one memory.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how often the right turn comes back.

    Example: eunoe bench recall --embedder none
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    outer = Settings.before(ctx)
    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"asking {file.name if file else 'talk'}", total=None)
        result = run_recall_bench(
            file,
            recipe=recipe,
            embedder=embedder or outer.embedder or "auto",
            merge=merge,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json or outer.json:
        print(json.dumps(result, indent=2))
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    names = list(result["turn"])
    table = Table("", "asked", *names, title=f"recipe {result['recipe']}, embedder {result['embedder']}")
    table.add_row("turns", str(result["questions"]), *(f"{result['turn'][name]:.1f}" for name in names))
    table.add_row("sessions", str(result["questions"]), *(f"{result['session'][name]:.1f}" for name in names))
    for groups in (result["by_category"], result["by_kind"]):
        table.add_section()
        for label, scores in groups.items():
            table.add_row(_label(label), str(scores["questions"]), *(f"{scores[name]:.1f}" for name in names))
    console = Console()
    console.print(table)
    times = result["latency_ms"]
    console.print(
        f"embedding {times['embed_p50']:.2f} ms, search {times['search_p50']:.2f} ms at the median, "
        f"{times['search_p95']:.2f} ms at the 95th percentile"
    )


def _label(group: str) -> str:
    return f"category {group}" if group.isdigit() else group or "no category"
