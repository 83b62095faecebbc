"""Does the context hold what the answer needs? Conversations are formed, then asked within a budget of tokens."""

from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import cycle
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import eunoe
from bench import Progress, Result
from bench.conversations import GoldConversation, GoldQuestion, join_turns, load_conversations
from bench.metrics import (
    Scores,
    group_by,
    latency,
    mean_percent,
    mean_scores,
    measure_ms,
    ranking_scores,
    score_views,
    track,
)
from bench.recall import check_reranker
from eunoe.cli.display import View
from eunoe.memory import Memory
from eunoe.model.arguments import RecipeName
from eunoe.model.message import Message
from eunoe.model.result import Context
from eunoe.text.sentences import token_count

_RANKED_HITS = 10


class ContextAnswer(NamedTuple):
    """What one question got: from the context, and from simpler ways to fill the same budget."""

    category: str
    hit: bool
    tokens: int
    ms: float
    latest: bool
    """Whether the last turns that fit would have held a gold turn."""
    lexical: bool
    """Whether a plain keyword search over the log would have."""
    log: Scores
    formed: Scores
    recalled_tokens: int = 0
    foreign_tokens: int | None = None
    """What was recalled for a question about another conversation."""


def measure(
    path: str | Path | None = None,
    *,
    tokens: int = 2000,
    words: int = 0,
    recipe: RecipeName | int = "default",
    embedder: str = "auto",
    progress: Progress | None = None,
) -> Result:
    """Measure one file, or the conversations in the package, without an LLM; percentages, milliseconds.

    With `words`, turns are joined to messages of about so many, and a context has to hold the gold turn itself.
    """
    conversations = load_conversations(path)
    if words:
        conversations = [join_turns(each, words) for each in conversations]
    total = sum(len(conversation.questions) for conversation in conversations)
    foreign = [each.questions for each in conversations[1:] + conversations[:1]] if len(conversations) > 1 else [()]
    with eunoe.open(":memory:", embedder=embedder, llm="none", form=False) as memory:
        asked = (
            answer
            for conversation, questions in zip(conversations, foreign, strict=True)
            for answer in _ask(memory, conversation, questions, tokens, recipe)
        )
        answers = list(track(asked, total, progress))
        status = memory.status()
    check_reranker(status, recipe)
    formed = {"facts": status.facts, "observations": status.observations, "summaries": status.revisions}
    return {**context_figures(answers, tokens), "formed": formed, "embedder": status.embedder, "recipe": recipe}


def _ask(
    memory: Memory,
    conversation: GoldConversation,
    foreign: Sequence[GoldQuestion],
    budget: int,
    recipe: RecipeName | int,
) -> Iterator[ContextAnswer]:
    scope, now, questions = {"user": conversation.id}, conversation.end, conversation.questions
    texts = {turn.id: turn.text for turn in conversation.turns}
    latest = _latest_turns(conversation.turns, budget)

    def rank(question: GoldQuestion) -> Scores:
        """A memory stands for the turns it rests on."""
        hits = memory.recall(scope, question.text, limit=_RANKED_HITS, now=now)
        scores = ranking_scores(list(dict.fromkeys(id for hit in hits for id in hit.source)), question.gold)
        return {name: score for name, score in scores.items() if name != "recall@20"}  # no twenty were asked for

    def build(question: GoldQuestion) -> Context:
        return memory.context(scope, question.text, tokens=budget, now=now, recipe=recipe)

    memory.observe(scope, conversation.turns)
    log_scores = [rank(question) for question in questions]
    keyword_hits = [memory.recall(scope, each.text, tokens=budget, recipe="lexical", now=now) for each in questions]
    memory.form(scope)
    build(questions[0])  # builds the index
    others = cycle(foreign)
    for question, scores, hits in zip(questions, log_scores, keyword_hits, strict=True):
        context, ms = measure_ms(build, question)
        other = next(others, None)
        foreign_tokens = _recalled_tokens(build(other)) if other else None
        yield ContextAnswer(
            category=question.category,
            hit=holds_quote(context, question.quotes) if question.quotes else holds_gold(context, question.gold, texts),
            tokens=context.tokens,
            ms=ms,
            latest=not latest.isdisjoint(question.gold),
            lexical=any(hit.id in question.gold for hit in hits),
            log=scores,
            formed=rank(question),
            recalled_tokens=_recalled_tokens(context),
            foreign_tokens=foreign_tokens,
        )


def _latest_turns(turns: Sequence[Message], budget: int) -> set[str]:
    ids = set()
    for turn in reversed(turns):
        budget -= token_count(turn.text)
        if budget < 0:
            break
        ids.add(turn.id)
    return ids


def _recalled_tokens(context: Context) -> int:
    """What was recalled for the message, without what else there was room for."""
    return token_count("".join(context.text.partition("<RetrievedMemories")[1:]))


def holds_gold(context: Context, gold: Sequence[str], texts: Mapping[str, str]) -> bool:
    """Whether a gold turn was recalled or stands in the context, word for word."""
    return any(hit.id in gold for hit in context.hits) or holds_quote(context, [texts[id] for id in gold])


def holds_quote(context: Context, quotes: Sequence[str]) -> bool:
    """Whether one of these texts stands in the context, word for word."""
    words = " ".join(unescape(context.text).split())
    return any(" ".join(quote.split()) in words for quote in quotes if quote.strip())


def context_figures(answers: Sequence[ContextAnswer], tokens: int) -> Result:
    columns: Result = {name: [getattr(answer, name) for answer in answers] for name in ContextAnswer._fields}
    foreign_tokens = [size for size in columns["foreign_tokens"] if size is not None]
    by_category = group_by(answers, lambda answer: answer.category)
    return {
        "hit": mean_percent(columns["hit"]),
        "tokens_mean": round(fmean(columns["tokens"]), 1),
        "tokens_most": max(columns["tokens"]),
        "tokens": tokens,
        "by_category": {
            name: {"questions": len(group), "hit": mean_percent(answer.hit for answer in group)}
            for name, group in by_category.items()
        },
        "latency_ms": latency(columns["ms"]),
        "beside": {"latest turns": mean_percent(columns["latest"]), "keyword search": mean_percent(columns["lexical"])},
        "recall": {"log": mean_scores(columns["log"]), "log and formed": mean_scores(columns["formed"])},
        "recalled": {
            "own": _token_figures(columns["recalled_tokens"]),
            "foreign": _token_figures(foreign_tokens) if foreign_tokens else None,
        },
        "questions": len(answers),
    }


def _token_figures(sizes: Sequence[int]) -> Scores:
    return {"tokens_mean": round(fmean(sizes), 1), "nothing": mean_percent(not size for size in sizes)}


def rows(result: Result) -> list[View]:
    rows = {"Eunoe": {"questions": result["questions"], "held": result["hit"]}}
    rows |= {name: {"held": share} for name, share in result["beside"].items()}
    for name, figures in result["by_category"].items():
        rows[f"category {name}" if name else "no category"] = {**figures, "held": figures["hit"]}
    log, formed = (result["recall"][name]["recall@10"] for name in ("log", "log and formed"))
    remarks = [
        f"{result['tokens_mean']:.0f} tokens on average, {result['latency_ms']['p50']:.1f} ms at the median; "
        f"recall@10 {log:.1f} over the log, {formed:.1f} with what was formed"
    ]
    own, foreign = result["recalled"]["own"], result["recalled"]["foreign"]
    if foreign:
        remarks.append(
            f"recalled: {own['tokens_mean']:.0f} tokens, nothing for {own['nothing']:.0f} %; for questions about "
            f"another conversation {foreign['tokens_mean']:.0f} tokens, nothing for {foreign['nothing']:.0f} %"
        )
    title = f"contexts of {result['tokens']} tokens, embedder {result['embedder']}"
    return score_views(title, [rows], *remarks, cell="{:.1f} %")
