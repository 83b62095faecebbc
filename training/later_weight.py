"""Shows what the weight of the signal `later` does to questions about the present, on the training conversations.

    python training/later_weight.py [EMBEDDER]

By default with MiniLM's vectors, which have seen none of the conversations. For each weight: recall at 5 and 10 of all
questions that ask for the present or the future, and how often the newest gold turn comes first.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from bench.conversations import GoldConversation
from fit_recipe import EmbedderVectors, entries, load_part

from eunoe.index.stream import StreamIndex
from eunoe.recall import query
from eunoe.recall.query import present_share
from eunoe.recall.ranking import find_candidates
from eunoe.recall.recipes import RECIPES, Recipe

WEIGHTS = (0.0, 2.0, 4.0, 6.0, 8.0)
DEFAULT = RECIPES["default"]


class Question(NamedTuple):
    """A question about the present, and what is known of its conversation."""

    index: StreamIndex
    text: str
    vector: np.ndarray | None
    now: float
    gold: tuple[str, ...]
    newest: str


def questions(conversations: Sequence[GoldConversation], source: EmbedderVectors) -> Iterator[Question]:
    for conversation in conversations:
        index = StreamIndex()
        index.apply(entries(conversation, source))
        place = {turn.id: number for number, turn in enumerate(conversation.turns)}
        now = float(np.nanmax(index.columns["time"]))
        for each in conversation.questions:
            if present_share(each.text) == 1:
                vector = source.embed(query.without_names(each.text, [index]))
                yield Question(index, each.text, vector, now, each.gold, max(each.gold, key=place.__getitem__))


def with_weight(weight: float) -> Recipe:
    return replace(DEFAULT, blends_by_model={}, blend=replace(DEFAULT.blend, later=weight))


def figures(asked: Sequence[Question], source: EmbedderVectors, recipe: Recipe) -> np.ndarray:
    rows = []
    for each in asked:
        found = find_candidates(
            [each.index], each.text, each.vector, recipe, now=each.now, limit=10, synonyms=source.synonyms
        )
        ids = [candidate.id for candidate in found]
        recall = [sum(id in ids[:cut] for id in each.gold) / len(each.gold) for cut in (5, 10)]
        rows.append([*recall, float(ids[:1] == [each.newest])])
    return 100 * np.mean(rows, axis=0)


def main(embedder: str) -> None:
    source = EmbedderVectors(embedder)
    asked = list(questions(load_part("train"), source))
    print(f"{len(asked)} questions; weight, recall@5, recall@10, newest first")
    for weight in WEIGHTS:
        print(weight, *figures(asked, source, with_weight(weight)).round(1))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "minilm")
