"""A store whose index is kept, and a process that asks it a question or is killed while it keeps the index."""

from __future__ import annotations

import json
import os
import random
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import eunoe
from eunoe.index import cache
from eunoe.store import kept_files

SCOPE = "project=shop"
NOBODY = 65534
SECRET = "The Xylophone Quartet of Zanzibar sings."
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


def held_bytes(path: Path) -> bytes:
    """All that lies in the folder of kept indexes, beside a store or elsewhere."""
    return b"".join(file.read_bytes() for file in path.with_name(f"{path.name}.index").rglob("*") if file.is_file())


def _be_killed_while_writing(part: int) -> None:
    """Have this process end, as by a kill, when so many pieces of a kept file are written."""

    def write_some(file: Any, chunks: Any, key: bytes) -> None:
        for chunk in list(chunks)[:part]:
            file.write(chunk)
        os._exit(9)

    kept_files._write_all = write_some


def _wait_before_writing() -> None:
    """Have this process say that it is about to write a kept file, and wait until it is told to go on."""
    write = kept_files.KeptFiles.write

    def write_later(*arguments: Any, **named: Any) -> None:
        print("writing", flush=True)
        sys.stdin.readline()
        write(*arguments, **named)

    kept_files.KeptFiles.write = write_later


def _be_nobody() -> None:
    """Go on as a user who may do little. What is imported later may not be readable then."""
    with eunoe.open(":memory:", embedder=HashedWords(), llm="none", form=False) as memory:
        memory.remember(SCOPE, "Anna plays the cello.", id="first")
        answers(memory)
        memory.forget(SCOPE, "first", verify=True)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def main(path: str, action: str, value: str = "0") -> None:
    cache.MIN_ROWS = 1
    if action == "killed":
        _be_killed_while_writing(int(value))
    if action == "wait":
        _wait_before_writing()
    if action == "forget":
        _be_nobody()
    with open_memory(Path(path)) as memory:
        if action == "forget":
            report = memory.forget(SCOPE, value, verify=True)
            print(json.dumps([report.verified, report.traces]))
            return
        found = answers(memory)
        if action == "ask":
            print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
