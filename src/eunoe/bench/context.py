"""Does the context hold what the answer needs? Conversations are formed, then asked within a budget of tokens."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import unescape
from itertools import cycle
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Annotated, Any

import typer

import eunoe
from eunoe.bench.conversations import Conversation, Question, load
from eunoe.bench.metrics import judge, mean, percentile
from eunoe.cli.command import Settings
from eunoe.cli.options import ConversationsArgument, RecipeOption
from eunoe.embed import DEFAULT
from eunoe.embed import load as load_embedder
from eunoe.errors import EmbedderError
from eunoe.memory import Memory
from eunoe.model.choices import RecipeName
from eunoe.model.context import Context
from eunoe.model.message import Message
from eunoe.text.tokens import token_count as count

Progress = Callable[[int, int], None]
_RANKED = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question got: from the context, and from simpler ways to fill the same budget."""

    category: str
    hit: bool
    tokens: int
    ms: float
    latest: bool
    """Whether the last turns that fit would have held a gold turn."""
    lexical: bool
    """Whether a plain keyword search over the log would have."""
    log: dict[str, float]
    """Recall over the log alone,"""
    formed: dict[str, float]
    """and over the log with what was formed from it."""
    recalled: int = 0
    """Tokens of what was recalled for it,"""
    foreign: int | None = None
    """and for a question about another conversation."""


def run_context_bench(
    path: str | Path | None = None,
    *,
    tokens: int = 2000,
    recipe: RecipeName = "default",
    embedder: str = "auto",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measures one file, or the conversations in the package, without a language model; percentages, milliseconds."""
    conversations = load(path)
    total = sum(len(conversation.questions) for conversation in conversations)
    answers: list[Answer] = []
    model = load_embedder(DEFAULT if embedder == "auto" else embedder)
    with eunoe.open(":memory:", embedder=model or "none", llm="none", form=False) as memory:
        for conversation, other in zip(conversations, [*conversations[1:], *conversations[:1]], strict=True):
            strange = other.questions if other is not conversation else ()
            for answer in ask(memory, conversation, tokens, recipe, strange):
                answers.append(answer)
                if progress:
                    progress(len(answers), total)
        status = memory.status()
    if status.reranker_error:
        raise EmbedderError(f"the recipe {recipe} was asked without its second stage: {status.reranker_error}")
    formed = {"facts": status.facts, "observations": status.observations, "summaries": status.revisions}
    return {**report(answers, tokens), "formed": formed, "embedder": status.embedder, "recipe": recipe}


def ask(
    memory: Memory,
    conversation: Conversation,
    budget: int,
    recipe: RecipeName = "default",
    strange: Sequence[Question] = (),
) -> Iterator[Answer]:
    scope = {"user": conversation.id}
    memory.observe(scope, conversation.turns)
    times = [turn.time for turn in conversation.turns if turn.time]
    now = max(times) if times else None
    texts = {turn.id: turn.text for turn in conversation.turns}
    before = [_ranking(memory, scope, question, now) for question in conversation.questions]
    lexical = [_keywords(memory, scope, question, budget, now) for question in conversation.questions]
    memory.form(scope)
    memory.context(scope, conversation.questions[0].text, tokens=budget, now=now, recipe=recipe)  # builds the index
    latest = _latest(conversation.turns, budget)
    others = cycle(strange)
    for place, question in enumerate(conversation.questions):
        start = perf_counter()
        context = memory.context(scope, question.text, tokens=budget, now=now, recipe=recipe)
        ms = (perf_counter() - start) * 1000
        other = next(others, None)
        foreign = memory.context(scope, other.text, tokens=budget, now=now, recipe=recipe) if other else None
        yield Answer(
            category=question.category,
            hit=holds(context, question.gold, texts),
            tokens=context.tokens,
            ms=ms,
            latest=bool(latest.intersection(question.gold)),
            lexical=bool(lexical[place].intersection(question.gold)),
            log=before[place],
            formed=_ranking(memory, scope, question, now),
            recalled=_recalled(context),
            foreign=_recalled(foreign) if foreign else None,
        )


def holds(context: Context, gold: Sequence[str], texts: dict[str, str]) -> bool:
    """Whether a gold turn stands in the context, word for word."""
    if {hit.id for hit in context.hits}.intersection(gold):
        return True
    shown = _plain(unescape(context.text))
    return any(_plain(texts[id]) in shown for id in gold if texts[id].strip())


def _recalled(context: Context) -> int:
    return context.tokens - count(context.static) if context.hits else 0


def _plain(text: str) -> str:
    return " ".join(text.split())


def _ranking(memory: Memory, scope: Any, question: Question, now: datetime | None) -> dict[str, float]:
    """A memory stands for the turns it rests on."""
    hits = memory.recall(scope, question.text, limit=_RANKED, now=now)
    scores = judge(list(dict.fromkeys(id for hit in hits for id in hit.source)), question.gold)
    return {name: score for name, score in scores.items() if name != "recall@20"}  # no twenty were asked for


def _keywords(memory: Memory, scope: Any, question: Question, budget: int, now: datetime | None) -> set[str]:
    return {hit.id for hit in memory.recall(scope, question.text, tokens=budget, recipe="lexical", now=now)}


def _latest(turns: Sequence[Message], budget: int) -> set[str]:
    kept = set()
    for turn in reversed(turns):
        budget -= count(turn.text)
        if budget < 0:
            break
        kept.add(turn.id)
    return kept


def report(answers: Sequence[Answer], tokens: int) -> dict[str, Any]:
    groups: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.category].append(answer)
    return {
        "hit": _share(answer.hit for answer in answers),
        "tokens_mean": round(fmean(answer.tokens for answer in answers), 1),
        "tokens_most": max(answer.tokens for answer in answers),
        "tokens": tokens,
        "by_category": {
            name: {"questions": len(group), "hit": _share(answer.hit for answer in group)}
            for name, group in sorted(groups.items())
        },
        "latency_ms": {
            "p50": round(percentile([answer.ms for answer in answers], 0.5), 3),
            "p95": round(percentile([answer.ms for answer in answers], 0.95), 3),
        },
        "beside": {
            "latest turns": _share(answer.latest for answer in answers),
            "keyword search": _share(answer.lexical for answer in answers),
        },
        "recall": {
            "log": mean([answer.log for answer in answers]),
            "log and formed": mean([answer.formed for answer in answers]),
        },
        "recalled": {
            "own": _shown([answer.recalled for answer in answers]),
            "foreign": _shown([answer.foreign for answer in answers if answer.foreign is not None]),
        },
        "questions": len(answers),
    }


def _shown(sizes: Sequence[int]) -> dict[str, float] | None:
    """How much was recalled, and how often nothing."""
    return {"tokens_mean": round(fmean(sizes), 1), "nothing": _share(not size for size in sizes)} if sizes else None


def _share(values: Any) -> float:
    return round(100 * fmean(map(float, values)), 2)


def context_command(
    ctx: typer.Context,
    file: ConversationsArgument = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most that a context may take.")] = 2000,
    recipe: RecipeOption = "default",
    embedder: Annotated[str, typer.Option(help="What makes vectors: auto, none, eunoe, static, ...")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how often a context of so many tokens holds a turn that answers the question.

    Example: eunoe bench context --tokens 2000
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    outer = Settings.before(ctx)
    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"asking {file.name if file else 'talk'}", total=None)
        result = run_context_bench(
            file,
            tokens=tokens,
            recipe=recipe,
            embedder=embedder or outer.embedder or "auto",
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json or outer.json:
        print(json.dumps(result, indent=2))
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "", "questions", "held", title=f"contexts of {result['tokens']} tokens, embedder {result['embedder']}"
    )
    table.add_row("Eunoe", str(result["questions"]), f"{result['hit']:.1f} %")
    for name, share in result["beside"].items():
        table.add_row(name, "", f"{share:.1f} %")
    for category, scores in result["by_category"].items():
        label = f"category {category}" if category else "no category"
        table.add_row(label, str(scores["questions"]), f"{scores['hit']:.1f} %")
    console = Console()
    console.print(table)
    console.print(
        f"{result['tokens_mean']:.0f} tokens on average, {result['latency_ms']['p50']:.1f} ms at the median; recall@10 "
        f"{result['recall']['log']['recall@10']:.1f} over the log, "
        f"{result['recall']['log and formed']['recall@10']:.1f} with what was formed"
    )
    own, foreign = result["recalled"]["own"], result["recalled"]["foreign"]
    if foreign:
        console.print(
            f"recalled: {own['tokens_mean']:.0f} tokens, nothing for {own['nothing']:.0f} %; for questions about "
            f"another conversation {foreign['tokens_mean']:.0f} tokens, nothing for {foreign['nothing']:.0f} %"
        )
