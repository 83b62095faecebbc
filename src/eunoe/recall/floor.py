"""How sure a best hit has to be in a large memory: by whether the memory knows the question's words and people."""

from collections.abc import Sequence
from math import exp, log
from typing import Final

from eunoe.index.stream import StreamIndex
from eunoe.recall.query import QueryPlan, Synonyms, plan_query, read_question

LARGE_MEMORY_ITEMS: Final = 1000
"""Up to so many items the score of the best hit alone tells own questions from foreign ones well."""

# Fitted on 2,000 to 13,000 turns (docs/decisions/0019-scores.md): each counts once for every factor e of the size.
_UNKNOWN_WORDS: Final = 1.75
"""What words that the memory does not know raise it by, as a share of the question's words."""
_NAMED_SPEAKER: Final = 1.1
"""What it is lowered by where the question names somebody who speaks in the memory."""
_KNOWN_QUESTION: Final = 0.15


def floor_shift(indexes: Sequence[StreamIndex], query: str, now: float, synonyms: Synonyms | None) -> float:
    """What is added to the log-odds that the best hit has to have.

    The more there is to choose from, the less the best score tells whether the memory has an answer. But a large
    memory knows nearly every common word, so that a word it does not know tells much; and so does a name it knows.
    """
    items = sum(float(index.layout.item_counts.sum()) for index in indexes)
    if items <= LARGE_MEMORY_ITEMS:
        return 0.0
    languages = {language for index in indexes for language in index.lexical.languages}
    question = read_question(query, languages, now)
    plans = [plan_query(question, index, synonyms) for index in indexes]
    is_named = any(plan.speakers for plan in plans)
    unknown = _unknown_share(indexes, plans)
    return log(items / LARGE_MEMORY_ITEMS) * (_UNKNOWN_WORDS * unknown - _KNOWN_QUESTION - _NAMED_SPEAKER * is_named)


def _unknown_share(indexes: Sequence[StreamIndex], plans: Sequence[QueryPlan]) -> float:
    """The share of the question's words that no item has, rare ones counting for more."""
    weights: dict[str, float] = {}
    known: dict[str, float] = {}
    for index, plan in zip(indexes, plans, strict=True):
        best = index.lexical.matches(plan.groups).max(axis=1, initial=0.0).tolist()
        for group, match in zip(plan.groups, best, strict=True):
            weights[group.label] = max(weights.get(group.label, 0.0), index.lexical.idf(group) * group.weight)
            known[group.label] = max(known.get(group.label, 0.0), match)
    total = sum(weights.values())
    return 1 - sum(weights[label] * known[label] for label in weights) / total if total else 0.0


def shift(probability: float, log_odds: float) -> float:
    """A probability whose log-odds are so much higher."""
    odds = probability / (1 - probability) * exp(log_odds)
    return odds / (1 + odds)
