"""Does the right turn come back? Conversations are put into a memory and asked."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import eunoe
from bench import Progress, Result
from bench.conversations import GoldConversation, GoldQuestion, load_conversations, merge_conversations
from bench.metrics import EmbeddingClock, Scores, group_by, mean_scores, percentile, ranking_scores, score_views, track
from eunoe.cli.display import View
from eunoe.errors import EmbedderError
from eunoe.memory import Memory
from eunoe.model.arguments import RecipeName
from eunoe.model.result import Status


class RecallAnswer(NamedTuple):
    """How well a question was answered, and what it took."""

    question: GoldQuestion
    turn: Scores
    session: Scores
    embed_ms: float
    search_ms: float


def measure(
    path: str | Path | None = None,
    *,
    recipe: RecipeName | int = "default",
    embedder: str = "auto",
    merge: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Measure one file, or the conversations in the package; percentages from 0 to 100, milliseconds."""
    conversations = load_conversations(path)
    if merge:
        conversations = [merge_conversations(conversations)]
    return measure_recall(conversations, recipe=recipe, embedder=embedder, progress=progress)


def measure_recall(
    conversations: Sequence[GoldConversation], *, recipe: RecipeName | int, embedder: str, progress: Progress | None
) -> Result:
    """Put each conversation into a scope of one memory, ask its questions, and score the answers."""
    total = sum(len(conversation.questions) for conversation in conversations)
    clock = EmbeddingClock(embedder)
    with eunoe.open(":memory:", embedder=clock.embedder or "none") as memory:
        asked = (answer for conversation in conversations for answer in _ask(memory, clock, conversation, recipe))
        answers = list(track(asked, total, progress))
        status = memory.status()
    check_reranker(status, recipe)
    search_times = [answer.search_ms for answer in answers]
    with_kind = [answer for answer in answers if answer.question.kind]
    return {
        "turn": mean_scores([answer.turn for answer in answers]),
        "session": mean_scores([answer.session for answer in answers]),
        "by_category": _mean_turns(group_by(answers, lambda answer: answer.question.category)),
        "by_kind": _mean_turns(group_by(with_kind, lambda answer: answer.question.kind)),
        "latency_ms": {
            "embed_p50": round(percentile((answer.embed_ms for answer in answers), 0.5), 3),
            "search_p50": round(percentile(search_times, 0.5), 3),
            "search_p95": round(percentile(search_times, 0.95), 3),
        },
        "questions": len(answers),
        "embedder": status.embedder,
        "recipe": recipe,
    }


def check_reranker(status: Status, recipe: RecipeName | int) -> None:
    """Refuse figures of a recipe that had to do without its reranker."""
    if status.reranker_error:
        raise EmbedderError(f"the recipe {recipe} was asked without its second stage: {status.reranker_error}")


def _ask(
    memory: Memory, clock: EmbeddingClock, conversation: GoldConversation, recipe: RecipeName | int
) -> Iterator[RecallAnswer]:
    scope, now = {"discussion": conversation.id}, conversation.end
    sessions = {turn.id: turn.session for turn in conversation.turns}
    memory.observe(scope, conversation.turns)
    # The first question would pay for building the index, which is measured by the engine bench.
    memory.recall(scope, conversation.questions[0].text, recipe=recipe)
    for question in conversation.questions:
        _, search_ms = clock.measure_search(memory.recall, scope, question.text, limit=10, recipe=recipe, now=now)
        embed_ms = clock.ms
        hits = memory.recall(scope, question.text, limit=len(sessions), recipe=recipe, now=now)
        turn_scores = ranking_scores([hit.id for hit in hits], question.gold)
        ranked_sessions = list(dict.fromkeys(sessions[hit.id] for hit in hits))
        session_scores = ranking_scores(ranked_sessions, [sessions[id] for id in question.gold])
        yield RecallAnswer(question, turn_scores, session_scores, embed_ms, search_ms)


def _mean_turns(groups: dict[str, list[RecallAnswer]]) -> dict[str, Scores]:
    return {
        name: {"questions": len(answers), **mean_scores([answer.turn for answer in answers])}
        for name, answers in groups.items()
    }


def rows(result: Result) -> list[View]:
    times = result["latency_ms"]
    groups = [{f"{name}s": {"asked": result["questions"], **result[name]} for name in ("turn", "session")}]
    for by in ("by_category", "by_kind"):
        labels = {name: f"category {name}" if name.isdigit() else name or "no category" for name in result[by]}
        groups.append({labels[name]: {"asked": scores["questions"], **scores} for name, scores in result[by].items()})
    return score_views(
        f"recipe {result['recipe']}, embedder {result['embedder']}",
        groups,
        f"embedding {times['embed_p50']:.2f} ms, search {times['search_p50']:.2f} ms at the median, "
        f"{times['search_p95']:.2f} ms at the 95th percentile",
    )
