"""How well questions in other words find short technical memories (docs/decisions/0045-wiki-memory.md)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import eunoe
from eunoe.apps.wiki.memory import DEFAULT_THRESHOLD

COLLECTIONS = json.loads((Path(__file__).parents[2] / "fixtures" / "short_memories.json").read_text())


@pytest.mark.parametrize(
    ("use", "least"),
    [
        ("developed on", {"first": 14, "relevant": 17, "wrong": -22, "foreign": -2}),
        ("judged by", {"first": 12, "relevant": 17, "wrong": -24, "foreign": -3}),
    ],
)
def test_short_memories_are_found_as_often_as_is_told(use: str, least: dict[str, int]) -> None:
    counts: Counter[str] = Counter()
    for collection in (each for each in COLLECTIONS.values() if each["use"] == use):
        with eunoe.open(":memory:", llm="none", form=False) as memory:
            scope = {"repository": "r1"}
            memory.remember_many(scope, [{"text": text} for text in collection["memories"]])
            for question in collection["questions"]:
                hits = memory.recall(scope, question["question"], limit=20, kinds=["fact"])
                relevant = [hit.text for hit in hits if hit.score >= DEFAULT_THRESHOLD]
                counts["first"] += hits[0].text == question["answer"]
                counts["relevant"] += question["answer"] in relevant
                counts["wrong"] -= len(set(relevant) - {question["answer"]})
            for text in collection["foreign"]:
                counts["foreign"] -= any(hit.score >= DEFAULT_THRESHOLD for hit in memory.recall(scope, text))
    assert {name: counts[name] for name in least if counts[name] < least[name]} == {}
