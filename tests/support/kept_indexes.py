"""A store whose index is kept, and a process that asks it."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import eunoe
from eunoe.index import cache

SCOPE = "project=shop"
RECIPES = ("default", "lexical", "dense", "associative")
QUESTIONS = (
    "Who restarts the Payment Gateway?",
    "What did Bob Smith tell Anna Jones about the ledger?",
    "the invoice queue of Nora Weber",
    "Wo ist der Rechnungsdienst?",
)
_WORDS = [
    "gateway",
    "ledger",
    "invoice",
    "queue",
    "cache",
    "retry",
    "timeout",
    "login",
    "clock",
    "token",
    "index",
    "backup",
    "merge",
    "schema",
]
_NAMES = (
    "Bob Smith",
    "Anna Jones",
    "Nora Weber",
    "Payment Gateway",
    "Ledger Service",
    "ERR_42",
    "Élise Müller",
    "東京",
)


class HashedWords:
    """An embedder that counts words."""

    name = "hashed-words"

    def embed(self, texts: list[str]) -> np.ndarray[Any, Any]:
        vectors = np.zeros((len(texts), 32), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, blake2b(word.encode(), digest_size=1).digest()[0] % 32] += 1
        return vectors + np.float32(0.01)

    def embed_query(self, text: str) -> np.ndarray[Any, Any]:
        vector: np.ndarray[Any, Any] = self.embed([text])[0]
        return vector


def open_memory(path: Path, keep: bool = True) -> eunoe.Memory:
    return eunoe.open(path, embedder=HashedWords(), llm="none", form=False, keep_indexes=keep)


def passage(chance: random.Random) -> str:
    title = f"{chance.choice(_NAMES)}\n\n" if chance.random() < 0.3 else ""
    lines = [
        f"{chance.choice(_NAMES)} told {chance.choice(_NAMES)} that the {chance.choice(_WORDS)} of the "
        f"{chance.choice(_WORDS)} restarts {chance.randrange(50)} times."
        for _ in range(chance.randint(1, 3))
    ]
    german = " Der Rechnungsdienst ist nicht in Rom und wartet auf die Datenbank." if chance.random() < 0.1 else ""
    return title + " ".join(lines) + german


def passages(count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [f"{passage(chance)} Number {number} of all." for number in range(count)]


def answers(memory: eunoe.Memory, scope: str = SCOPE) -> list[Any]:
    """What every recipe finds, with scores and reasons."""
    return [
        [
            (hit.id, hit.text, round(hit.score, 9), [tuple(reason) for reason in hit.reasons])
            for hit in memory.recall(scope, question, limit=8, recipe=recipe)
        ]
        for question in QUESTIONS
        for recipe in RECIPES
    ]


def kept_bytes(path: Path) -> bytes:
    """All that is kept of indexes."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT data FROM kept_indexes ORDER BY place, stream, part").fetchall()
    return b"".join(data for (data,) in rows)


def main(path: str) -> None:
    """Ask a store from a process of its own."""
    cache.MIN_ROWS = 1
    with open_memory(Path(path)) as memory:
        print(json.dumps(answers(memory)))


if __name__ == "__main__":
    main(sys.argv[1])
